// POST /v1/completions.
#include "serve/wire/common/prompts.h"
#include "serve/wire/common/settings.h"
#include "serve/wire/parse.h"

namespace hearth::serve {
namespace {

constexpr int kMaxTokensDefault = 16;  // as published

void ReadAnswers(ObjectReader& reader, WireRequest& request) {
  request.n = static_cast<int>(reader.Integer("n", 1, kChoicesMax).value_or(1));
  if (reader.Integer("best_of", 1, kChoicesMax).value_or(request.n) !=
      request.n) {
    reader.Fault("best_of", "must be equal to n: no answer is thrown away.");
  }
  request.echo = reader.Bool("echo", false);
  if (const auto n = reader.Integer("logprobs", 0, kTopLogprobsMax)) {
    request.logprobs = true;
    request.top_logprobs = static_cast<int>(*n);
  }
  if (request.echo && request.logprobs) {
    reader.Fault("logprobs",
                 "a prompt's own are not computed. Leave out echo or it.");
  }
}

}  // namespace

Checked ParseCompletions(Draft& draft) {
  WireRequest& request = draft.request;
  ObjectReader reader(draft.body, "", draft.ignored);
  HEARTH_TRY(ReadModel(reader, draft.context, draft.ignored, request));
  ReadPrompts(reader, "prompt", request);
  if (const auto suffix = reader.Text("suffix")) {
    request.suffix = *suffix;
    request.has_suffix = !suffix->empty();
    if (request.has_suffix && !request.prompt_ids.empty()) {
      reader.Fault("suffix", "needs the prompt as text.");
    }
  }
  request.max_tokens = kMaxTokensDefault;
  ReadMaxTokens(reader, "max_tokens", 0, request);
  ReadSampling(reader, request.sampling);
  ReadStop(reader, "stop", request);
  ReadAnswers(reader, request);
  request.ignore_eos = reader.Bool("ignore_eos", false);
  request.stream = reader.Bool("stream", false);
  request.return_progress = reader.Bool("return_progress", false);
  if (const OrderedJson* options = reader.FindObject("stream_options")) {
    ObjectReader inner(*options, "stream_options", draft.ignored);
    request.include_usage = inner.Bool("include_usage", false);
    HEARTH_TRY(inner.Finish());
  }
  ReadGrammar(reader, request.form);
  request.form.tool_use = ToolUse::kNone;
  return reader.Finish();
}

}  // namespace hearth::serve
