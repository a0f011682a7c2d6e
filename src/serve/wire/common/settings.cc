#include "serve/wire/common/settings.h"

#include <algorithm>
#include <charconv>
#include <climits>

#include "serve/wire/common/content.h"

namespace hearth::serve {
namespace {

std::optional<std::int32_t> TokenId(const std::string& text) {
  std::int32_t id = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0) {
    return std::nullopt;
  }
  return id;
}

bool IsBias(const OrderedJson& value) {
  return value.is_number() && value.get<double>() >= -100 &&
         value.get<double>() <= 100;
}

// A map as published, or llama-server's list of [id, bias], where false is
// "never".
bool TakeLogitBias(const OrderedJson& bias, SamplingWishes& sampling) {
  if (bias.is_object()) {
    for (const auto& [key, value] : bias.items()) {
      const auto id = TokenId(key);
      if (!id || !IsBias(value)) return false;
      sampling.logit_bias[*id] = value.get<double>();
    }
    return true;
  }
  if (!bias.is_array()) return false;
  for (const OrderedJson& pair : bias) {
    if (!pair.is_array() || pair.size() != 2) return false;
    if (!pair[0].is_number_integer()) return false;
    const auto id = TokenId(pair[0].dump());
    const bool never = pair[1] == false;
    if (!id || (!never && !IsBias(pair[1]))) return false;
    sampling.logit_bias[*id] = never ? -100.0 : pair[1].get<double>();
  }
  return true;
}

void ReadLogitBias(ObjectReader& reader, SamplingWishes& sampling) {
  const OrderedJson* bias = reader.Find("logit_bias");
  if (bias == nullptr) return;
  if (bias->size() > kLogitBiasMax) {
    reader.Fault("logit_bias",
                 "has more than " + std::to_string(kLogitBiasMax) + " tokens.");
  } else if (!TakeLogitBias(*bias, sampling)) {
    reader.Fault("logit_bias",
                 "must map token ids to numbers from -100 to 100.");
  }
}

}  // namespace

void ReadSampling(ObjectReader& reader, SamplingWishes& sampling) {
  sampling.temperature = reader.Number("temperature", 0, 100);
  sampling.top_p = reader.Number("top_p", 0, 1);
  sampling.min_p = reader.Number("min_p", 0, 1);
  sampling.repeat_penalty = reader.Number("repeat_penalty", 0, 100);
  sampling.presence_penalty = reader.Number("presence_penalty", -2, 2);
  sampling.frequency_penalty = reader.Number("frequency_penalty", -2, 2);
  if (const auto top_k = reader.Integer("top_k", -1, INT_MAX)) {
    sampling.top_k = std::max(static_cast<int>(*top_k), 0);
  }
  if (const auto last = reader.Integer("repeat_last_n", -1, INT_MAX)) {
    sampling.repeat_last_n = static_cast<int>(*last);
  }
  if (const auto seed = reader.Integer("seed", INT64_MIN, INT64_MAX)) {
    sampling.seed = static_cast<std::uint64_t>(*seed);
  }
  ReadLogitBias(reader, sampling);
}

void ReadStop(ObjectReader& reader, const char* name, WireRequest& request) {
  const OrderedJson* stop = reader.Find(name);
  if (stop == nullptr) return;
  const auto add = [&](const OrderedJson& text) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty() ||
        text.get_ref<const std::string&>().size() > kStopBytesMax) {
      reader.Fault(name, "must be texts of 1 to " +
                             std::to_string(kStopBytesMax) + " bytes.");
      return;
    }
    request.stop.push_back(text.get<std::string>());
  };
  if (!stop->is_array()) return add(*stop);
  if (stop->size() > kStopTextsMax) {
    reader.Fault(name, "has more than " + std::to_string(kStopTextsMax) +
                           " texts. Send fewer.");
    return;
  }
  for (const OrderedJson& text : *stop) add(text);
}

void ReadMaxTokens(ObjectReader& reader, const char* name, int min,
                   WireRequest& request) {
  const auto count = reader.Integer(name, -1, INT64_MAX);
  if (!count) return;
  if (*count != -1 && *count < min) {
    reader.Fault(name, "must be " + std::to_string(min) + " or more.");
  }
  request.max_tokens =
      static_cast<int>(std::min<std::int64_t>(*count, INT_MAX));
}

bool TemplateVariables::Reads(const std::string& name) const {
  return !context_.reads || context_.reads(name);
}

bool TemplateVariables::Set(const std::string& name, OrderedJson value) {
  if (!Reads(name)) return false;
  if (values_.find(name) == values_.end()) values_[name] = std::move(value);
  return true;
}

void TemplateVariables::Take(const OrderedJson& object,
                             const std::string& path) {
  for (const auto& [name, value] : object.items()) {
    if (!Set(name, value)) ignored_.Add(path + "." + name);
  }
}

void TemplateVariables::Think(bool on, const std::string& field) {
  thoughts_ = on;
  const bool enable = Set("enable_thinking", on);
  const bool thinking = Set("thinking", on);
  if (!enable && !thinking) ignored_.Add(field);
}

void TemplateVariables::Effort(const std::string& effort,
                               const std::string& field) {
  if (effort == "none") return Think(false, field);
  if (!Set("reasoning_effort", effort)) ignored_.Add(field);
}

void TemplateVariables::Give(WireRequest& request) {
  if (context_.reads) Set("preserve_thinking", true);
  // What the template is told, where it is told anything.
  for (const char* name : {"enable_thinking", "thinking"}) {
    const auto value = values_.find(name);
    if (value != values_.end() && value->is_boolean()) {
      thoughts_ = value->get<bool>();
    }
  }
  request.form.thoughts = thoughts_;
  if (!values_.empty()) request.dialogue.kwargs_json = Dump(values_);
}

Checked ReadFormat(const OrderedJson& format, const std::string& path,
                   bool schema_inside, Ignored& ignored, AnswerForm& form) {
  HEARTH_ASSIGN(const std::string type, TypeOf(format, path));
  ObjectReader reader(format, path, ignored);
  reader.Take({"type"});
  if (type == "text") return reader.Finish();
  if (type == "json_object") {
    form.body = BodyForm::kJsonObject;
    return reader.Finish();
  }
  if (type != "json_schema") {
    return BadField(path + ".type", "\"" + type +
                                        "\" is not known. Use text, "
                                        "json_object or json_schema.");
  }
  const OrderedJson* inner = &format;
  std::string inner_path = path;
  if (schema_inside) {
    inner = reader.FindObject("json_schema");
    if (inner == nullptr) reader.Fault("json_schema", "is missing.");
    HEARTH_TRY(reader.Finish());
    inner_path += ".json_schema";
  }
  ObjectReader schema_reader(*inner, inner_path, ignored);
  // An answer under a schema always fits it, so `strict` needs no word; the
  // name is for the caller.
  schema_reader.Take({"type", "name", "strict"});
  const OrderedJson* schema = schema_reader.FindObject("schema");
  if (schema == nullptr) schema_reader.Fault("schema", "is missing.");
  HEARTH_TRY(schema_reader.Finish());
  form.body = BodyForm::kJsonSchema;
  form.body_grammar = Dump(*schema);
  return Done{};
}

void ReadGrammar(ObjectReader& reader, AnswerForm& form) {
  const auto grammar = reader.Text("grammar");
  if (!grammar || grammar->empty()) return;
  if (form.body != BodyForm::kText) {
    reader.Fault("grammar", "cannot be had together with a JSON format.");
    return;
  }
  form.body = BodyForm::kGbnf;
  form.body_grammar = *grammar;
}

Checked ReadModel(ObjectReader& reader, const ParseContext& context,
                  Ignored& ignored, WireRequest& request) {
  request.model = reader.Text("model").value_or("");
  if (request.model == context.served_model) return Done{};
  if (!context.strict_model) {
    if (!context.served_model.empty() && !request.model.empty()) {
      ignored.Add("model");
    }
    return Done{};
  }
  return WireError{.status = 404,
                   .code = "model_not_found",
                   .param = "model",
                   .message = "The model \"" + request.model +
                              "\" is not served here: \"" +
                              context.served_model + "\" is."};
}

}  // namespace hearth::serve
