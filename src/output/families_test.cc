#include "output/families.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "hearth_test_paths.h"
#include "output/probe/find_family.h"
#include "output/probe/rendered_answer.h"
#include "output/reader_testing.h"

namespace hearth::output {
namespace {

// The templates of tests/data and of ../shared, and what their calls are.
const std::map<std::string, std::string> kFamilyOf = {
    {"Apertus-8B-Instruct", "apertus"},
    {"ByteDance-Seed-OSS", "seed-oss"},
    {"GLM-4.6", "glm"},
    {"GLM-4.7-Flash", "glm"},
    {"GigaChat3-10B-A1.8B", "gigachat"},
    {"HuggingFaceTB-SmolLM3-3B", ""},  // renders no calls
    {"Kimi-K2-Instruct", ""},  // appends to a list, which the sandbox refuses
    {"MiMo-VL", "hermes"},
    {"Mistral-Small-3.2-24B-Instruct-2506", "mistral"},
    {"Qwen-QwQ-32B", "hermes"},
    {"Qwen-Qwen2.5-7B-Instruct", "hermes"},
    {"Qwen-Qwen3-0.6B", "hermes"},
    {"Qwen3-Coder", "qwen3-coder"},
    {"StepFun3.5-Flash", "qwen3-coder"},
    {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", ""},
    {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek-r1"},
    {"deepseek-ai-DeepSeek-V3.1", "deepseek-v3.1"},
    {"deepseek-ai-DeepSeek-V3.2", "deepseek-v3.2"},
    {"ibm-granite-granite-3.3-2B-Instruct", ""},
    {"llama-cpp-deepseek-r1", "deepseek-r1"},
    {"llama-cpp-rwkv-world", ""},
    {"meetkai-functionary-medium-v3.1", "functionary-v3.1"},
    {"microsoft-Phi-3.5-mini-instruct", ""},
    {"mistral-common-v11", "mistral"},
    {"mistral-common-v13", "mistral"},
    {"mistral-common-v1_spm", ""},
    {"mistral-common-v3_spm", "mistral-list"},
    {"mistral-common-v7_spm", "mistral-list"},
    {"mistralai-Ministral-3-14B-Reasoning-2512", "mistral"},
    {"mistralai-Mistral-Nemo-Instruct-2407", "mistral-list"},
    {"openai-gpt-oss-120b", "harmony"},
    {"unsloth-mistral-Devstral-Small-2507", "mistral"}};

constexpr const char* kTools = R"([{"type": "function", "function": {
  "name": "find_place", "description": "Finds.", "parameters": {
  "type": "object", "properties": {"q": {"type": "string", "description": "Q"},
  "n": {"type": "integer", "description": "N"},
  "flag": {"type": "boolean", "description": "F"},
  "deep": {"type": "object", "description": "D", "properties":
  {"k": {"type": "array", "items": {"type": "string"}}}}},
  "required": ["q"]}}}])";

std::map<std::string, std::string> Templates() {
  std::map<std::string, std::string> found;
  for (const std::string& folder :
       {std::string(HEARTH_TEST_DATA "/chat/templates"),
        std::string(HEARTH_SHARED "/models/chat-templates")}) {
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".jinja") continue;
      found.emplace(entry.path().stem().string(), entry.path().string());
    }
  }
  return found;
}

RenderOptions Options() {
  RenderOptions options;
  options.bos_token = "<BOS>";
  options.eos_token = "<EOS>";
  return options;
}

TEST(Families, EveryDescriptionReads) {
  EXPECT_GE(CallFamilies().size(), 12u);
  for (const auto& family : CallFamilies()) {
    EXPECT_EQ(FamilyNamed(family->family), family);
  }
}

TEST(Families, ATemplateTellsWhichOneItIs) {
  for (const auto& [name, path] : Templates()) {
    const auto expected = kFamilyOf.find(name);
    if (expected == kFamilyOf.end()) continue;
    const auto chat =
        ChatTemplate::Parse(ReadTextFile(path).value(), name).value();
    const FoundFamily found = FindFamily(chat, Options());
    EXPECT_EQ(found.calls ? found.program->family : "", expected->second)
        << name << ": " << found.why_not;
  }
}

// Templates that came as cases of their own.
TEST(Families, NewerTemplatesTellWhichOneTheyAre) {
  const std::string path =
      HEARTH_SHARED "/models/chat-templates/hf-jinja-e2e.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const std::map<std::string, std::string> family_of = {
      // A call's head is the id that the caller gave it, whatever that is.
      {"moonshotai/Kimi-K2-Thinking", ""},
      {"zai-org/GLM-5.1", "glm"},
      {"Qwen/Qwen3.5-4B", "qwen3-coder"}};
  std::size_t n_seen = 0;
  for (const OrderedJson& one : OrderedJson::parse(*ReadTextFile(path))) {
    const auto expected = family_of.find(one["name"]);
    if (expected == family_of.end()) continue;
    ++n_seen;
    const auto chat =
        ChatTemplate::Parse(one["chat_template"], expected->first).value();
    const FoundFamily found = FindFamily(chat, Options());
    EXPECT_EQ(found.calls ? found.program->family : "", expected->second)
        << expected->first << ": " << found.why_not;
  }
  EXPECT_EQ(n_seen, family_of.size());
}

struct Answer {
  std::string text, reasoning, arguments, shown;
  int n_calls = 0;
};

Answer ReadAnswer(const Program& program, const RenderedAnswer& rendered) {
  Walker walker(std::make_shared<const Program>(program), Tools(kTools),
                EndsInThought(program, rendered.prompt_end));
  walker.Push(rendered.text);
  walker.Finish();
  const auto events = walker.Take();
  Answer answer;
  answer.shown = rendered.text + "\n" + Shown(events);
  for (const AnswerEvent& event : events) {
    using Kind = AnswerEvent::Kind;
    // What follows the calls is the end of the turn, as text.
    if (event.kind == Kind::kText && answer.n_calls == 0) {
      answer.text += event.text;
    }
    if (event.kind == Kind::kReasoning) answer.reasoning += event.text;
    if (event.kind == Kind::kCallArguments) answer.arguments += event.text;
    if (event.kind == Kind::kCallEnd) ++answer.n_calls;
  }
  return answer;
}

// What a template makes of an answer is read back as that answer.
TEST(Families, ReadBackWhatTemplatesRender) {
  const OrderedJson tools = OrderedJson::parse(kTools);
  const OrderedJson arguments = {{"q", "a \"b\"\n<c>\xC3\xA9 ' \\"},
                                 {"n", 3},
                                 {"flag", true},
                                 {"deep", {{"k", {"x", "it's"}}}}};
  const OrderedJson call = {
      {"id", "abcdefgh1"},
      {"type", "function"},
      {"function", {{"name", "find_place"}, {"arguments", arguments}}}};
  int n_read = 0;
  for (const auto& [name, path] : Templates()) {
    const auto expected = kFamilyOf.find(name);
    if (expected == kFamilyOf.end() || expected->second.empty()) continue;
    const auto chat =
        ChatTemplate::Parse(ReadTextFile(path).value(), name).value();
    for (const std::string text : {"", "Let me see."}) {
      const OrderedJson messages = {
          {{"role", "user"}, {"content", "Where?"}},
          {{"role", "assistant"},
           {"content", text},
           {"reasoning_content", "I need it."},
           {"tool_calls", OrderedJson::array({call})}}};
      const bool tools_fail = name == "llama-cpp-deepseek-r1";
      const auto rendered = RenderAnswer(
          chat, messages, tools_fail ? nullptr : &tools, Options());
      // Some take no text beside calls, or leave one of the two out.
      const auto at = [&](const char* part) {
        return rendered.ok() ? rendered->text.find(part) : std::string::npos;
      };
      if (at("find_place") == std::string::npos) continue;
      ++n_read;
      const Answer answer =
          ReadAnswer(*FamilyNamed(expected->second), *rendered);
      const std::string what = name + "\n" + answer.shown;
      EXPECT_EQ(answer.n_calls, 1) << what;
      EXPECT_EQ(OrderedJson::parse(answer.arguments, nullptr, false), arguments)
          << what;
      // gpt-oss' template gives text beside calls as a thought.
      const bool as_thought = expected->second == "harmony";
      if (!as_thought && at("Let me see.") < at("find_place")) {
        EXPECT_EQ(answer.text, text) << what;
      }
      if (at("I need it.") != std::string::npos) {
        EXPECT_EQ(answer.reasoning, "I need it.") << what;
      }
    }
  }
  EXPECT_GE(n_read, 4);
}

}  // namespace
}  // namespace hearth::output
