#include "convert/huggingface/carried_config.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/file.h"
#include "formats/gguf/gguf.h"
#include "formats/huggingface/python_json.h"

namespace hearth {
namespace {

constexpr std::string_view kCarried[] = {
    "attention_dropout", "attn_pdrop",        "classifier_dropout",
    "embd_pdrop",        "embedding_dropout", "hidden_dropout",
    "initializer_range", "pad_token_id",      "resid_pdrop",
    "residual_dropout",  "use_cache"};

// Said anew, whether or not under the same name, or about the writer alone.
constexpr std::string_view kSaid[] = {
    "_name_or_path",   "quantization_config",
    "dtype",           "torch_dtype",
    "rope_parameters", "rope_scaling",
    "rope_theta",      "head_dim",
    "layer_types",     "mlp_bias",
    "attention_bias",  "transformers_version"};

bool Holds(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Of the matrices as they are written: block formats become F32.
const char* MatrixType(const LoadedModel& model) {
  const LayerWeights& layer = model.weights.layers[0];
  const WeightMatrix& w = layer.q.w.data != nullptr ? layer.q.w : layer.qkv.w;
  if (w.dtype == DType::kF16) return "float16";
  return w.dtype == DType::kBF16 ? "bfloat16" : "float32";
}

}  // namespace

Result<void> AddCarriedConfig(const LoadedModel& model, Json& config,
                              std::vector<std::string>& notes) {
  // The second since version 4.56.
  config["torch_dtype"] = config["dtype"] = MatrixType(model);
  if (model.gguf != nullptr) {
    HEARTH_ASSIGN(const std::int64_t pad,
                  model.gguf->Int("tokenizer.ggml.padding_token_id", -1));
    if (pad >= 0 && pad < model.config.vocab_size) config["pad_token_id"] = pad;
    return {};
  }
  if (model.tokenizer_source != TokenizerSource::kDirectory) return {};
  const std::string path = model.tokenizer_dir + "/config.json";
  const auto text = ReadTextFile(path);
  if (!text.ok()) return {};  // a tokenizer alone
  HEARTH_ASSIGN(const Json source, ParsePythonJson(*text, path));
  std::string lost;
  for (const auto& [name, value] : source.items()) {
    if (Holds(kCarried, name) && (value.is_number() || value.is_boolean())) {
      config[name] = value;
    } else if (!value.is_null() && !config.contains(name) &&
               !Holds(kSaid, name)) {
      lost += (lost.empty() ? "" : ", ") + name;
    }
  }
  if (!lost.empty()) {
    notes.push_back(path + ": members that are not carried: " + lost);
  }
  return {};
}

}  // namespace hearth
