#include "serve/turn/prepare.h"

#include <algorithm>
#include <limits>
#include <random>

#include "hearth/grammar.h"
#include "serve/app/call.h"
#include "serve/turn/infill.h"
#include "serve/turn/timed_constraint.h"

namespace hearth::serve {
namespace {

std::uint64_t NewSeed() {
  std::random_device device;
  // Clients read it as a number of JSON, of which JavaScript keeps 53 bits.
  return ((std::uint64_t{device()} << 32) | std::uint64_t{device()}) >> 11;
}

SamplingOptions SamplingOf(const Core& core, const SamplingWishes& wishes) {
  SamplingOptions s = core.sampling;
  s.temperature = wishes.temperature.value_or(s.temperature);
  s.top_p = wishes.top_p.value_or(s.top_p);
  s.top_k = wishes.top_k.value_or(s.top_k);
  s.min_p = wishes.min_p.value_or(s.min_p);
  s.repeat_penalty = wishes.repeat_penalty.value_or(s.repeat_penalty);
  s.repeat_last_n = wishes.repeat_last_n.value_or(s.repeat_last_n);
  s.presence_penalty = wishes.presence_penalty.value_or(s.presence_penalty);
  s.frequency_penalty = wishes.frequency_penalty.value_or(s.frequency_penalty);
  for (const auto& [id, bias] : wishes.logit_bias) s.logit_bias[id] = bias;
  if (wishes.seed.has_value()) {
    s.seed = *wishes.seed;
  } else if (!core.has_seed) {
    s.seed = NewSeed();
  }
  return s;
}

GenerateOptions OptionsOf(const Core& core, const WireRequest& request) {
  GenerateOptions options;
  const int wanted = request.max_tokens.value_or(-1);
  options.n_tokens_max = wanted < 0 ? std::numeric_limits<int>::max() : wanted;
  options.ignore_eos = request.ignore_eos;
  options.stop_texts = request.stop;
  options.logprobs = request.logprobs;
  options.top_logprobs = request.top_logprobs;
  options.sampling = SamplingOf(core, request.sampling);
  return options;
}

// Of an answer to a plain prompt, which is all text.
Result<MakeConstraint> PlainConstraint(const Core& core, WireRequest& request) {
  const AnswerForm& form = request.form;
  const Stopwatch clock;
  const auto made = [&]() -> Result<GrammarConstraint> {
    switch (form.body) {
      case BodyForm::kGbnf:
        return ConstraintFromGbnf(*core.engine, form.body_grammar);
      case BodyForm::kJsonSchema:
        return ConstraintFromJsonSchema(*core.engine, form.body_grammar);
      case BodyForm::kJsonObject:
        return ConstraintOfJsonObject(*core.engine);
      default:
        return GrammarConstraint{};
    }
  }();
  if (!made.ok()) {
    // The caller's schema that is no JSON is the caller's mistake.
    return {made.error().code == Code::kUnsupported ? Code::kUnsupported
                                                    : Code::kInvalidArgument,
            made.error().message};
  }
  if (made->make) core.metrics->Compiled(clock.ms());
  request.ignored.insert(request.ignored.end(), made->notes.begin(),
                         made->notes.end());
  return Timed(made->make, *core.metrics);
}

Parsed<PreparedPrompt> RawText(const Core& core, const std::string& text) {
  auto ids = core.engine->codec().Encode(text, /*special=*/true);
  if (!ids.ok()) return WireErrorOf(ids.error());
  PreparedPrompt prompt;
  prompt.text = text;
  prompt.ids = *std::move(ids);
  return prompt;
}

Parsed<PreparedPrompt> RawIds(const Core& core,
                              const std::vector<std::int32_t>& ids) {
  auto text = core.engine->codec().Decode(ids);
  if (!text.ok()) return WireErrorOf(text.error());
  PreparedPrompt prompt;
  prompt.text = *std::move(text);
  prompt.ids = ids;
  return prompt;
}

Parsed<RenderedPrompt> Rendered(const Core& core, const WireRequest& request) {
  if (core.dialogue == nullptr) {
    WireError error;
    error.message =
        "this model cannot be asked in messages: " + core.no_dialogue +
        "; /v1/completions takes plain text";
    return error;
  }
  auto rendered = core.dialogue->Render(request.dialogue);
  if (!rendered.ok()) return WireErrorOf(rendered.error());
  return *std::move(rendered);
}

// Where the breakpoints are in tokens.
std::vector<int> SavePoints(const RenderedPrompt& rendered) {
  std::vector<int> points;
  for (const int at : rendered.message_ends) {
    if (at > (points.empty() ? 0 : points.back())) points.push_back(at);
  }
  return points;
}

std::optional<WireError> CheckLengths(
    const Core& core, const WireRequest& request,
    const std::vector<PreparedPrompt>& prompts) {
  const int context = core.engine->context_tokens();
  if (request.context_wanted > context) {
    WireError error;
    error.param = "options.num_ctx";
    error.message = "num_ctx is " + std::to_string(request.context_wanted) +
                    " and this server's context has " +
                    std::to_string(context) +
                    " tokens, which whoever starts it can raise";
    return error;
  }
  for (const PreparedPrompt& prompt : prompts) {
    if (static_cast<int>(prompt.ids.size()) >= context) {
      return ContextExceeded(request.dialect,
                             static_cast<std::int64_t>(prompt.ids.size()),
                             context);
    }
    if (prompt.ids.empty()) {
      WireError error;
      error.param = "prompt";
      error.message = "the prompt has no tokens";
      return error;
    }
  }
  return std::nullopt;
}

// What the answer is held to, and how it is read.
std::optional<WireError> AddForm(const Core& core, WireRequest& request,
                                 const RenderedPrompt& rendered,
                                 Prepared& prepared) {
  const Stopwatch clock;
  auto constraint =
      core.dialogue->Constraint(request.dialogue, request.form, rendered);
  if (!constraint.ok()) return WireErrorOf(constraint.error());
  if (constraint->is_new) core.metrics->Compiled(clock.ms());
  prepared.options.constraint =
      Timed(std::move(constraint->make), *core.metrics);
  request.ignored.insert(request.ignored.end(), constraint->notes.begin(),
                         constraint->notes.end());
  for (int i = 0; i < request.n; ++i) {
    auto reader =
        core.dialogue->Reader(request.dialogue, request.form, rendered);
    if (!reader.ok()) return WireErrorOf(reader.error());
    prepared.prompts.front().readers.push_back(*std::move(reader));
  }
  return std::nullopt;
}

Parsed<std::vector<PreparedPrompt>> RawPrompts(const Core& core,
                                               const WireRequest& request) {
  std::vector<PreparedPrompt> prompts;
  const auto add = [&prompts](Parsed<PreparedPrompt> one) {
    if (!one.ok()) return std::optional<WireError>(one.error());
    prompts.push_back(std::move(one).value());
    return std::optional<WireError>();
  };
  std::optional<WireError> error;
  if (request.has_suffix) {
    auto infill = InfillPrompt(core.engine->codec(), request);
    if (!infill.ok()) return WireErrorOf(infill.error());
    error = add(RawIds(core, *infill));
    if (error.has_value()) return *error;
    return prompts;
  }
  for (const std::string& text : request.prompts) {
    if ((error = add(RawText(core, text)))) return *error;
  }
  for (const auto& ids : request.prompt_ids) {
    if ((error = add(RawIds(core, ids)))) return *error;
  }
  return prompts;
}

}  // namespace

Parsed<std::vector<PreparedPrompt>> PreparePrompts(const Core& core,
                                                   const WireRequest& request) {
  if (request.raw) return RawPrompts(core, request);
  auto rendered = Rendered(core, request);
  if (!rendered.ok()) return rendered.error();
  std::vector<PreparedPrompt> prompts(1);
  prompts.front().text = std::move(rendered->text);
  prompts.front().ids = std::move(rendered->ids);
  return prompts;
}

Parsed<Prepared> Prepare(const Core& core, WireRequest& request) {
  Prepared prepared;
  prepared.options = OptionsOf(core, request);
  if (request.raw) {
    auto prompts = RawPrompts(core, request);
    if (!prompts.ok()) return prompts.error();
    prepared.prompts = std::move(prompts).value();
    auto constraint = PlainConstraint(core, request);
    if (!constraint.ok()) return WireErrorOf(constraint.error());
    prepared.options.constraint = *std::move(constraint);
  } else {
    request.dialogue.ends_after = request.breakpoints;
    auto rendered = Rendered(core, request);
    if (!rendered.ok()) return rendered.error();
    if (core.journal != nullptr) {
      prepared.history =
          UseSampledIds(*core.journal, *core.dialogue, core.engine->codec(),
                        request.dialogue, request.space, *rendered);
    }
    PreparedPrompt& prompt = prepared.prompts.emplace_back();
    prompt.ids = rendered->ids;
    prompt.save_points = SavePoints(*rendered);
    prompt.marks = rendered->marks;
    if (!prompt.save_points.empty()) {
      prepared.breakpoint_tokens = prompt.save_points.back();
    }
    if (auto error = AddForm(core, request, *rendered, prepared)) {
      return *error;
    }
    prepared.rendered =
        std::make_shared<const RenderedPrompt>(std::move(rendered).value());
  }
  if (auto error = CheckLengths(core, request, prepared.prompts)) return *error;
  return prepared;
}

}  // namespace hearth::serve
