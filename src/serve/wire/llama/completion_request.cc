// POST /completion and /infill of llama-server.
#include <climits>

#include "serve/wire/common/content.h"
#include "serve/wire/common/prompts.h"
#include "serve/wire/common/settings.h"
#include "serve/wire/parse.h"

namespace hearth::serve {
namespace {

Checked ReadInfill(ObjectReader& reader, Draft& draft) {
  WireRequest& request = draft.request;
  request.raw = true;
  request.has_suffix = true;
  const auto prefix = reader.Text("input_prefix");
  const auto suffix = reader.Text("input_suffix");
  if (!prefix) reader.Fault("input_prefix", "is missing.");
  if (!suffix) reader.Fault("input_suffix", "is missing.");
  request.middle = reader.Text("prompt").value_or("");
  const OrderedJson* files = reader.FindArray("input_extra");
  HEARTH_TRY(reader.Check());
  request.prompts = {*prefix};
  request.suffix = *suffix;
  for (std::size_t i = 0; files != nullptr && i < files->size(); ++i) {
    const std::string path = At("input_extra", i);
    if (!(*files)[i].is_object()) return BadField(path, "must be an object.");
    ObjectReader file((*files)[i], path, draft.ignored);
    request.context_files.emplace_back(file.Text("filename").value_or(""),
                                       file.Text("text").value_or(""));
    HEARTH_TRY(file.Finish());
  }
  return Done{};
}

}  // namespace

Checked ParseLlamaCompletion(Draft& draft) {
  WireRequest& request = draft.request;
  ObjectReader reader(draft.body, "", draft.ignored);
  HEARTH_TRY(ReadModel(reader, draft.context, draft.ignored, request));
  if (draft.path.ends_with("/infill")) {
    HEARTH_TRY(ReadInfill(reader, draft));
  } else {
    ReadPrompts(reader, "prompt", request);
  }
  ReadSampling(reader, request.sampling);
  // A negative seed asks for a random one.
  const auto seed = draft.body.find("seed");
  if (seed != draft.body.end() && seed->is_number() && *seed < 0) {
    request.sampling.seed.reset();
  }
  ReadStop(reader, "stop", request);
  if (const auto n = reader.Integer("n_predict", -2, INT_MAX)) {
    request.max_tokens = *n < 0 ? -1 : static_cast<int>(*n);
  } else {
    ReadMaxTokens(reader, "max_tokens", 0, request);
  }
  request.ignore_eos = reader.Bool("ignore_eos", false);
  if (const auto n = reader.Integer("n_probs", 0, kTopLogprobsMax)) {
    request.logprobs = *n > 0;
    request.top_logprobs = static_cast<int>(*n);
  }
  if (const OrderedJson* schema = reader.FindObject("json_schema")) {
    if (!schema->empty()) {
      request.form.body = BodyForm::kJsonSchema;
      request.form.body_grammar = Dump(*schema);
    }
  }
  ReadGrammar(reader, request.form);
  request.form.tool_use = ToolUse::kNone;
  request.stream = reader.Bool("stream", false);
  request.return_progress = reader.Bool("return_progress", false);
  request.include_usage = true;
  return reader.Finish();
}

}  // namespace hearth::serve
