#include "output/probe/find_family.h"

#include <array>
#include <utility>
#include <vector>

#include "base/json.h"
#include "output/families.h"
#include "output/probe/rendered_answer.h"
#include "output/reader/walker.h"

namespace hearth::output {
namespace {

constexpr const char* kTools = R"([{"type": "function", "function": {
  "name": "look_up", "description": "Looks.", "parameters": {"type": "object",
  "properties": {"place": {"type": "string", "description": "Where."},
  "days": {"type": "integer", "description": "How many."}},
  "required": ["place"]}}}, {"type": "function", "function": {
  "name": "wait_for", "description": "Waits.", "parameters": {"type": "object",
  "properties": {"event": {"type": "string", "description": "What."}},
  "required": ["event"]}}}])";

OrderedJson Call(const char* id, const char* name, OrderedJson arguments) {
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", std::move(arguments)}}}};
}

OrderedJson KnownCalls(int n) {
  OrderedJson calls = OrderedJson::array();
  calls.push_back(
      Call("abcdefgh1", "look_up", {{"place", "Paris"}, {"days", 3}}));
  if (n > 1)
    calls.push_back(Call("abcdefgh2", "wait_for", {{"event", "rain"}}));
  return calls;
}

// Whether the events hold exactly these calls, whole.
bool Holds(const std::vector<AnswerEvent>& events, const OrderedJson& calls) {
  std::vector<std::pair<std::string, std::string>> found;
  std::size_t n_ended = 0;
  for (const AnswerEvent& event : events) {
    if (event.kind == AnswerEvent::Kind::kCallBegin) {
      found.emplace_back(event.text, "");
    } else if (event.kind == AnswerEvent::Kind::kCallArguments) {
      found.back().second += event.text;
    } else if (event.kind == AnswerEvent::Kind::kCallEnd) {
      ++n_ended;
    }
  }
  if (found.size() != calls.size() || n_ended != calls.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const OrderedJson& function = calls[i]["function"];
    const Json arguments = Json::parse(found[i].second, nullptr, false);
    if (function["name"] != found[i].first ||
        arguments != Json::parse(function["arguments"].dump())) {
      return false;
    }
  }
  return true;
}

struct Variant {
  int n_calls;
  bool with_text, with_tools;
};
// Some templates take no text beside calls, one call at most, or fail on tools
// and render calls all the same.
constexpr std::array<Variant, 8> kVariants = {{{2, false, true},
                                               {2, true, true},
                                               {1, false, true},
                                               {1, true, true},
                                               {2, false, false},
                                               {2, true, false},
                                               {1, false, false},
                                               {1, true, false}}};

std::vector<std::shared_ptr<const Program>> GivesBack(
    const RenderedAnswer& answer, const OrderedJson& calls) {
  static const auto tools =
      std::make_shared<const ToolSet>(ToolSet::Parse(kTools).value());
  std::vector<std::shared_ptr<const Program>> found;
  for (const auto& family : CallFamilies()) {
    Walker walker(family, tools, EndsInThought(*family, answer.prompt_end));
    walker.Push(answer.text);
    walker.Finish();
    if (Holds(walker.Take(), calls)) found.push_back(family);
  }
  return found;
}

std::shared_ptr<const Program> ThoughtOf(const std::string& source) {
  for (const auto& [begin, end] :
       {std::pair{"<think>", "</think>"}, std::pair{"[THINK]", "[/THINK]"},
        std::pair{"<seed:think>", "</seed:think>"}}) {
    if (source.find(end) != std::string::npos) return ThoughtFamily(begin, end);
  }
  return ThoughtFamily({}, {});
}

bool EndsWithMarker(std::string_view prompt, const std::string& marker) {
  while (!prompt.empty() && IsBlank(prompt.back())) prompt.remove_suffix(1);
  return !marker.empty() && prompt.ends_with(marker);
}

}  // namespace

bool EndsInThought(const Program& program, std::string_view prompt) {
  return EndsWithMarker(prompt, program.thought_begin);
}

bool EndsBehindThought(const Program& program, std::string_view prompt) {
  return EndsWithMarker(prompt, program.thought_end);
}

FoundFamily FindFamily(const ChatTemplate& chat, const RenderOptions& options) {
  const OrderedJson tools = OrderedJson::parse(kTools);
  FoundFamily out;
  out.why_not = "the chat template renders no calls in a known form";
  for (const Variant& variant : kVariants) {
    const OrderedJson calls = KnownCalls(variant.n_calls);
    OrderedJson messages = OrderedJson::array();
    messages.push_back({{"role", "user"}, {"content", "Weather?"}});
    messages.push_back({{"role", "assistant"},
                        {"content", variant.with_text ? "Let me see." : ""},
                        {"tool_calls", calls}});
    const auto answer = RenderAnswer(
        chat, messages, variant.with_tools ? &tools : nullptr, options);
    if (!answer.ok()) continue;
    const auto found = GivesBack(*answer, calls);
    if (found.size() == 1) return {.program = found[0], .calls = true};
    if (found.size() > 1) {
      out.why_not = "the chat template's calls are of several known forms: " +
                    found[0]->family + ", " + found[1]->family;
      break;
    }
  }
  out.program = ThoughtOf(chat.source());
  return out;
}

}  // namespace hearth::output
