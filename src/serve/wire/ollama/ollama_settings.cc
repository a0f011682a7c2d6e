#include "serve/wire/ollama/ollama_settings.h"

#include <climits>

#include "serve/wire/common/settings.h"

namespace hearth::serve {
namespace {

Checked ReadOptions(const OrderedJson& options, Draft& draft) {
  WireRequest& request = draft.request;
  ObjectReader reader(options, "options", draft.ignored);
  ReadSampling(reader, request.sampling);
  // A negative seed asks for a random one.
  const auto seed = options.find("seed");
  if (seed != options.end() && seed->is_number() && *seed < 0) {
    request.sampling.seed.reset();
  }
  ReadStop(reader, "stop", request);
  if (const auto n = reader.Integer("num_predict", -2, INT_MAX)) {
    request.max_tokens = *n < 0 ? -1 : static_cast<int>(*n);
  }
  request.context_wanted =
      static_cast<int>(reader.Integer("num_ctx", 1, INT_MAX).value_or(0));
  return reader.Finish();
}

void ReadFormat(ObjectReader& reader, AnswerForm& form) {
  const OrderedJson* format = reader.Find("format");
  if (format == nullptr || *format == "") return;
  if (*format == "json") {
    form.body = BodyForm::kJsonObject;
  } else if (format->is_object()) {
    form.body = BodyForm::kJsonSchema;
    form.body_grammar = Dump(*format);
  } else {
    reader.Fault("format", "must be \"json\" or a JSON Schema.");
  }
}

void ReadThink(ObjectReader& reader, Draft& draft) {
  TemplateVariables variables(draft.context, draft.ignored);
  if (const OrderedJson* think = reader.Find("think")) {
    if (think->is_boolean()) {
      variables.Think(think->get<bool>(), "think");
    } else if (think->is_string()) {
      variables.Effort(think->get<std::string>(), "think");
    } else {
      reader.Fault("think", "must be true, false or an effort.");
    }
  }
  variables.Give(draft.request);
}

}  // namespace

Checked ReadOllamaSettings(ObjectReader& reader, Draft& draft) {
  WireRequest& request = draft.request;
  HEARTH_TRY(ReadModel(reader, draft.context, draft.ignored, request));
  if (const OrderedJson* options = reader.FindObject("options")) {
    HEARTH_TRY(ReadOptions(*options, draft));
  }
  ReadFormat(reader, request.form);
  ReadThink(reader, draft);
  request.stream = reader.Bool("stream", true);
  request.include_usage = true;
  request.logprobs = reader.Bool("logprobs", false);
  request.top_logprobs = static_cast<int>(
      reader.Integer("top_logprobs", 0, kTopLogprobsMax).value_or(0));
  return reader.Check();
}

}  // namespace hearth::serve
