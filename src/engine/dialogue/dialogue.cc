#include "hearth/dialogue.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/mutex.h"
#include "engine/dialogue/form_cache.h"
#include "engine/dialogue/message_marks.h"
#include "engine/dialogue/opened_template.h"
#include "engine/dialogue/prompt_places.h"
#include "engine/engine_core.h"
#include "output/mask/answer_constraint.h"
#include "output/reader/token_reader.h"

namespace hearth {
namespace {

class DialogueImpl final : public Dialogue {
 public:
  DialogueImpl(std::shared_ptr<EngineCore> core, OpenedTemplate plain,
               std::optional<OpenedTemplate> with_tools)
      : core_(std::move(core)),
        plain_(std::move(plain)),
        with_tools_(std::move(with_tools)) {}

  Result<RenderedPrompt> Render(const DialogueRequest& request) const override {
    HEARTH_ASSIGN(OrderedJson messages, ReadMessages(request.messages_json));
    OrderedJson tools;
    if (!request.tools_json.empty()) {
      HEARTH_ASSIGN(tools, ParseOrderedJson(request.tools_json, "tools"));
    }
    const bool has_tools = tools.is_array() && !tools.empty();
    const OpenedTemplate& opened = TemplateFor(has_tools);
    messages = FormFor(opened.traits, std::move(messages));
    RenderOptions options = opened.source.options;
    options.add_generation_prompt = request.add_generation_prompt;
    // The time of day would make every prompt a new one.
    options.now = std::chrono::floor<std::chrono::days>(LocalNow());
    HEARTH_ASSIGN(options.kwargs, KwargsOf(request, opened));
    const OrderedJson* given = has_tools ? &tools : nullptr;
    RenderedPrompt prompt;
    HEARTH_ASSIGN(prompt.text,
                  opened.source.chat.Render(messages, given, options));
    HEARTH_TRY(CheckTraces(opened.traits, messages, prompt.text));
    // Templates write their own special tokens, so none are added around.
    HEARTH_ASSIGN(prompt.ids, core_->tokenizer->Encode(
                                  prompt.text, {.add_special = false,
                                                .parse_special = true}));
    HEARTH_TRY(FindPlaces(request, opened, {messages, given, options}, prompt));
    prompt.in_reasoning =
        output::EndsInThought(*opened.family.program, prompt.text);
    return prompt;
  }

  bool Reads(std::string_view variable) const override {
    return plain_.source.chat.Reads(variable) ||
           TemplateFor(true).source.chat.Reads(variable);
  }

  std::string tool_format() const override {
    return TemplateFor(true).family_name;
  }

  Result<std::unique_ptr<AnswerReader>> Reader(
      const DialogueRequest& request, const AnswerForm& form,
      const RenderedPrompt& prompt) const override {
    HEARTH_ASSIGN(output::ToolSet tools, ToolsOf(request, form));
    const OpenedTemplate& opened = TemplateFor(!request.tools_json.empty());
    return output::MakeTokenReader(
        opened.family.program,
        std::make_shared<const output::ToolSet>(std::move(tools)),
        core_->tokenizer, prompt.in_reasoning);
  }

  Result<AnswerConstraint> Constraint(
      const DialogueRequest& request, const AnswerForm& form,
      const RenderedPrompt& prompt) const override {
    const OpenedTemplate& opened = TemplateFor(!request.tools_json.empty());
    // A form lets an answer begin with a thought; here it may have had one.
    const bool thought_over =
        output::EndsBehindThought(*opened.family.program, prompt.text);
    const int thought_max =
        thought_over || !form.thoughts ? 0 : form.reasoning_tokens_max;
    const Digest name =
        NameOfForm(request, form, prompt.in_reasoning, thought_max);
    if (auto kept = forms_.Find(name)) return *std::move(kept);
    AnswerConstraint made;
    HEARTH_ASSIGN(const output::ToolSet tools, ToolsOf(request, form));
    output::AnswerRules rules;
    rules.calls = !opened.family_name.empty();
    rules.calls_required =
        form.tool_use == ToolUse::kRequired || form.tool_use == ToolUse::kNamed;
    rules.parallel = form.parallel_calls;
    rules.strict = form.strict_tools;
    rules.body = form.body;
    rules.body_grammar = form.body_grammar;
    if (rules.calls_required && !rules.calls) {
      return {Code::kUnsupported,
              opened.family.why_not + "; name the form of this model's calls"};
    }
    const bool free = (tools.tools().empty() || !rules.calls) &&
                      !rules.calls_required && rules.body == BodyForm::kText &&
                      form.reasoning_tokens_max < 0;
    if (free) return made;
    HEARTH_ASSIGN(made.make,
                  output::ConstrainAnswer({.program = opened.family.program,
                                           .tokenizer = core_->tokenizer,
                                           .trie = TrieOf(opened),
                                           .in_thought = prompt.in_reasoning,
                                           .reasoning_tokens_max = thought_max},
                                          tools, rules, made.notes));
    forms_.Keep(name, made);
    made.is_new = true;
    return made;
  }

 private:
  const OpenedTemplate& TemplateFor(bool has_tools) const {
    return has_tools && with_tools_.has_value() ? *with_tools_ : plain_;
  }

  // Made at the first use: a vocabulary takes a while.
  std::shared_ptr<const grammar::TokenTrie> TrieOf(
      const OpenedTemplate& opened) const {
    const MutexLock lock(tries_mutex_);
    auto& trie = tries_[&opened];
    if (trie == nullptr) {
      trie = output::TrieFor(*opened.family.program, *core_->tokenizer);
    }
    return trie;
  }

  static Result<OrderedJson> KwargsOf(const DialogueRequest& request,
                                      const OpenedTemplate& opened) {
    OrderedJson kwargs;
    if (!request.kwargs_json.empty()) {
      HEARTH_ASSIGN(kwargs,
                    ParseOrderedJson(request.kwargs_json, "template kwargs"));
      if (!kwargs.is_object() && !kwargs.is_null()) {
        return {Code::kInvalidArgument, "template kwargs: no JSON object"};
      }
    }
    // Thoughts that a template drops from earlier answers make the next prompt
    // differ from what was computed.
    constexpr const char* kPreserve = "preserve_thinking";
    if (opened.source.chat.Reads(kPreserve) && !kwargs.contains(kPreserve)) {
      kwargs[kPreserve] = true;
    }
    return kwargs;
  }

  // Of all that a constraint is compiled from.
  static Digest NameOfForm(const DialogueRequest& request,
                           const AnswerForm& form, bool in_thought,
                           int thought_max) {
    Sha256 name;
    name.Field(request.tools_json)
        .Field(static_cast<std::uint64_t>(form.tool_use))
        .Field(static_cast<std::uint64_t>(form.allowed_tools.size()));
    for (const std::string& tool : form.allowed_tools) name.Field(tool);
    return name.Field(std::uint64_t{form.parallel_calls})
        .Field(static_cast<std::uint64_t>(form.body))
        .Field(form.body_grammar)
        .Field(std::uint64_t{form.strict_tools})
        .Field(std::uint64_t{in_thought})
        .Field(static_cast<std::uint64_t>(thought_max + 1))
        // Whether thoughts have an end makes a free answer one with a form.
        .Field(std::uint64_t{form.reasoning_tokens_max >= 0})
        .Finish();
  }

  // The tools that a call may name.
  static Result<output::ToolSet> ToolsOf(const DialogueRequest& request,
                                         const AnswerForm& form) {
    HEARTH_ASSIGN(output::ToolSet tools,
                  output::ToolSet::Parse(request.tools_json));
    if (form.tool_use == ToolUse::kNone) return output::ToolSet();
    if (!form.allowed_tools.empty()) {
      HEARTH_TRY(tools.KeepOnly(form.allowed_tools));
    }
    return tools;
  }

  // What a prompt was rendered from.
  struct Rendering {
    const OrderedJson& messages;
    const OrderedJson* tools;
    RenderOptions options;
  };

  // Fills in `prompt`'s message ends, marks and answers.
  Result<void> FindPlaces(const DialogueRequest& request,
                          const OpenedTemplate& opened, Rendering rendering,
                          RenderedPrompt& prompt) const {
    const Tokenizer& tokenizer = *core_->tokenizer;
    if (request.add_generation_prompt) {
      const std::size_t opens_at = OpeningAt(opened, rendering, prompt.text);
      if (opens_at < prompt.text.size()) {
        HEARTH_ASSIGN(
            const int n_before,
            IdsOfBeginning(tokenizer, prompt.ids,
                           std::string_view(prompt.text).substr(0, opens_at)));
        const std::span<const std::int32_t> ids = prompt.ids;
        prompt.answers = FindAnswers(
            tokenizer, ids, ids.subspan(static_cast<std::size_t>(n_before)),
            opened.closing_id);
      }
    }
    const bool has_states = core_->model.config.HasStates();
    if (request.ends_after.empty() && !has_states) return {};
    rendering.options.add_generation_prompt = false;
    HEARTH_ASSIGN(const OrderedJson all, ReadMessages(request.messages_json));
    const auto render = [&](std::size_t n) {
      const auto end = all.begin() + static_cast<std::ptrdiff_t>(n);
      return opened.source.chat.Render(
          FormFor(opened.traits, OrderedJson(all.begin(), end)),
          rendering.tools, rendering.options);
    };
    if (has_states) {
      HEARTH_ASSIGN(prompt.marks, MessageMarks(tokenizer, prompt.text,
                                               prompt.ids, all.size(), render));
    }
    for (const int n : request.ends_after) {
      int& end = prompt.message_ends.emplace_back(0);
      if (n < 1 || static_cast<std::size_t>(n) > all.size()) continue;
      const auto text = render(static_cast<std::size_t>(n));
      if (!text.ok() || !prompt.text.starts_with(*text)) continue;
      HEARTH_ASSIGN(end, IdsOfBeginning(tokenizer, prompt.ids, *text));
    }
    return {};
  }

  // Where in `text` begins what opens an answer: the generation prompt or,
  // where the template has none, what is behind the last message. Its end when
  // there are no earlier answers to look for.
  static std::size_t OpeningAt(const OpenedTemplate& opened,
                               Rendering rendering, const std::string& text) {
    const OrderedJson& messages = rendering.messages;
    const bool answered = std::any_of(
        messages.begin(), messages.end(),
        [](const OrderedJson& one) { return one["role"] == "assistant"; });
    if (!answered) return text.size();
    rendering.options.add_generation_prompt = false;
    const auto closed =
        opened.source.chat.Render(messages, rendering.tools, rendering.options);
    if (closed.ok() && closed->size() < text.size() &&
        text.starts_with(*closed)) {
      return closed->size();
    }
    const auto& last = messages.back()["content"].get_ref<const std::string&>();
    const std::size_t n_last = last.find_last_not_of(" \n\t\r") + 1;
    const std::size_t at = text.rfind(last.substr(0, n_last));
    return at == std::string::npos || n_last == 0 ? text.size() : at + n_last;
  }

  std::shared_ptr<EngineCore> core_;
  OpenedTemplate plain_;
  std::optional<OpenedTemplate> with_tools_;  // none: the same
  mutable FormCache forms_;
  mutable Mutex tries_mutex_;
  mutable std::map<const OpenedTemplate*,
                   std::shared_ptr<const grammar::TokenTrie>>
      tries_ HEARTH_GUARDED_BY(tries_mutex_);
};

}  // namespace

Result<std::unique_ptr<Dialogue>> Dialogue::Open(
    Engine& engine, const std::string& template_path,
    const std::string& tool_format) {
  const std::shared_ptr<EngineCore> core = EngineAccess::Shared(engine);
  const auto open = [&](bool with_tools) -> Result<OpenedTemplate> {
    auto source =
        template_path.empty()
            ? FindChatSource(core->model, *core->tokenizer, with_tools)
            : ReadChatSource(template_path);
    if (!source.ok()) return source.error();
    return ProbeSource(std::move(*source), *core->tokenizer, tool_format);
  };
  HEARTH_ASSIGN(OpenedTemplate plain, open(false));
  std::optional<OpenedTemplate> with_tools;
  if (template_path.empty()) {
    HEARTH_ASSIGN(OpenedTemplate other, open(true));
    if (other.source.chat.source() != plain.source.chat.source()) {
      with_tools = std::move(other);
    }
  }
  return std::unique_ptr<Dialogue>(std::make_unique<DialogueImpl>(
      core, std::move(plain), std::move(with_tools)));
}

}  // namespace hearth
