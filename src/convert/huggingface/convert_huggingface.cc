#include "convert/huggingface/convert_huggingface.h"

#include <optional>
#include <string>

#include "base/file.h"
#include "base/files/output.h"
#include "convert/gguf/carried_keys.h"
#include "convert/huggingface/carried_config.h"
#include "convert/huggingface/convert_tokenizer_json.h"
#include "convert/huggingface/hf_export.h"
#include "formats/families/settings.h"
#include "formats/gguf/gguf.h"

namespace hearth {
namespace {

// Files that loaders read beside a model's weights. Left from another model
// they would be taken for this one's.
bool BelongsToAModel(const std::string& name) {
  for (const char* known :
       {"config.json", "generation_config.json", "tokenizer.json",
        "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
        "vocab.json", "merges.txt", "vocab.txt", "tokenizer.model",
        "spiece.model", "chat_template.jinja", "chat_template.json",
        "preprocessor_config.json", "processor_config.json",
        "quantize_config.json", "quant_config.json"}) {
    if (name == known) return true;
  }
  return name.ends_with(".safetensors") ||
         name.ends_with(".safetensors.index.json") ||
         (name.starts_with("pytorch_model") &&
          (name.ends_with(".bin") || name.ends_with(".bin.index.json")));
}

// generation_config.json and the model card of a model from GGUF.
Result<void> WriteSettings(const LoadedModel& model,
                           const std::string& directory,
                           std::vector<std::string>& notes) {
  const SamplingDefaults& s = model.sampling;
  Json json = Json::object();
  if (model.bos_id >= 0) json["bos_token_id"] = model.bos_id;
  HEARTH_ASSIGN(const auto extra, model.gguf->Text("hearth.tokenizer", "{}"));
  HEARTH_ASSIGN(const Json carried, ParseJson(extra, model.path));
  Json ends = model.eos_ids;
  if (const Json* more = JsonFind(carried, "ends")) {
    ends.insert(ends.end(), more->begin(), more->end());
  }
  if (!ends.empty()) json["eos_token_id"] = ends;
  HEARTH_ASSIGN(const std::int64_t pad,
                model.gguf->Int("tokenizer.ggml.padding_token_id", -1));
  if (pad >= 0 && pad < model.config.vocab_size) json["pad_token_id"] = pad;
  const auto number = [&json](const char* name, std::optional<double> value) {
    if (value) json[name] = HfNumber(static_cast<float>(*value));
  };
  // Greedy is said by a switch there, and a temperature of 0 refused.
  if (s.temperature) json["do_sample"] = *s.temperature > 0;
  if (s.temperature.value_or(0) > 0) number("temperature", s.temperature);
  if (s.top_k) json["top_k"] = *s.top_k;
  number("top_p", s.top_p);
  number("min_p", s.min_p);
  number("repetition_penalty", s.repetition_penalty);
  std::string lost;
  for (const GgufEntry& entry : model.gguf->entries()) {
    if (!entry.key.starts_with("general.sampling.")) continue;
    const std::string name(entry.key.substr(17));
    if (name == "temp" || name == "top_k" || name == "top_p" ||
        name == "min_p" || name == "penalty_repeat") {
      continue;
    }
    lost += (lost.empty() ? "" : ", ") + name;
  }
  if (!lost.empty()) {
    notes.push_back("general.sampling: no members in generation_config.json: " +
                    lost);
  }
  if (!json.empty()) {
    HEARTH_TRY(WriteJsonFile(directory + "/generation_config.json", json));
  }
  HEARTH_ASSIGN(const std::string card, ModelCardOf(*model.gguf, notes));
  if (card.empty()) return {};
  return WriteOutput(directory + "/README.md", {}, card);
}

}  // namespace

Result<void> WriteHuggingFace(const LoadedModel& model,
                              const std::string& directory,
                              const WriteOptions& options,
                              std::vector<std::string>& notes) {
  HEARTH_ASSIGN(const HfDescription description, DescribeForHf(model));
  HEARTH_ASSIGN(
      OutputDirectory out,
      OutputDirectory::Create(directory, options.replace, BelongsToAModel));
  HEARTH_TRY(WriteTokenizerFiles(model, out.path(), notes));
  if (model.gguf != nullptr)
    HEARTH_TRY(WriteSettings(model, out.path(), notes));
  HEARTH_TRY(WriteHfTensors(model, description,
                            out.path() + "/model.safetensors", options));
  Json config = description.json;
  HEARTH_TRY(AddCarriedConfig(model, config, notes));
  HEARTH_TRY(WriteJsonFile(out.path() + "/config.json", config));
  return out.Commit();
}

}  // namespace hearth
