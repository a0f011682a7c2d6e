// Adapters as Hugging Face's PEFT saves them: adapter_config.json beside
// adapter_model.safetensors.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "formats/adapter/adapter_file.h"
#include "formats/describe.h"
#include "formats/huggingface/safetensors.h"

namespace hearth {
namespace {

// Numbers for the layers whose name ends in so many whole words.
using Pattern = std::vector<std::pair<std::string, double>>;

struct PeftConfig {
  std::int64_t rank = 0;
  double alpha = 0;
  bool by_root = false;  // alpha / sqrt(rank)
  Pattern ranks, alphas;
};

class ConfigReader {
 public:
  ConfigReader(const Json& json, const std::string& label)
      : json_(json), label_(label + ": adapter_config.json") {}

  Result<PeftConfig> Run() const {
    if (!json_.is_object()) {
      return Error{Code::kCorrupt, label_ + " is not an object"};
    }
    HEARTH_TRY(CheckKind());
    PeftConfig config;
    HEARTH_ASSIGN(config.rank, JsonInt(json_, "r", label_));
    HEARTH_ASSIGN(config.alpha, JsonNumber(json_, "lora_alpha", label_, 8));
    HEARTH_ASSIGN(config.by_root, JsonBool(json_, "use_rslora", label_, false));
    HEARTH_ASSIGN(config.ranks, PatternOf("rank_pattern"));
    HEARTH_ASSIGN(config.alphas, PatternOf("alpha_pattern"));
    if (!std::isfinite(config.alpha)) {
      return Error{Code::kCorrupt, label_ + ": lora_alpha is not a number"};
    }
    return config;
  }

 private:
  Error Unsupported(const std::string& what) const {
    return {Code::kUnsupported, label_ + ": " + what + "; " + kMergeIt};
  }

  bool Says(const char* key) const {
    const Json* value = JsonFind(json_, key);
    if (value == nullptr || (value->is_boolean() && !value->get<bool>())) {
      return false;
    }
    return !((value->is_array() || value->is_object()) && value->empty());
  }

  Result<void> CheckKind() const {
    HEARTH_ASSIGN(const std::string type,
                  JsonText(json_, "peft_type", label_, "LORA"));
    if (type != "LORA") {
      return Unsupported("an adapter of type " + Quoted(type) +
                         ", of which only LORA is supported");
    }
    HEARTH_ASSIGN(const std::string bias,
                  JsonText(json_, "bias", label_, "none"));
    if (bias != "none") {
      return Unsupported("bias = " + Quoted(bias) +
                         " changes the model's biases, which is not supported");
    }
    static constexpr std::pair<const char*, const char*> kOther[] = {
        {"use_dora", "magnitudes of weights (DoRA) are not supported"},
        {"use_qalora", "QA-LoRA is not supported"},
        {"lora_bias", "biases of adapters are not supported"},
        {"modules_to_save",
         "whole layers beside the low-rank ones (modules_to_save) are not "
         "supported"},
        {"trainable_token_indices", "changed embeddings are not supported"},
        {"layer_replication", "layers used twice are not supported"},
        {"alora_invocation_tokens",
         "adapters that act from certain tokens on (aLoRA) are not supported"},
        {"target_parameters",
         "adapters of experts (target_parameters) are not supported"},
    };
    for (const auto& [key, what] : kOther) {
      if (Says(key)) return Unsupported(what);
    }
    // These starts take from the model's own weights what they put into the
    // adapter.
    const Json* start = JsonFind(json_, "init_lora_weights");
    if (start != nullptr && start->is_string()) {
      const auto name = start->get<std::string>();
      for (const char* other : {"pissa", "olora", "corda", "loftq"}) {
        if (name.starts_with(other)) {
          return Unsupported("init_lora_weights = " + Quoted(name) +
                             " goes with changed weights of the model, which "
                             "the file does not have");
        }
      }
    }
    return {};
  }

  // PEFT reads keys as regular expressions; names are what is written in fact.
  Result<Pattern> PatternOf(const char* key) const {
    Pattern pattern;
    const Json* object = JsonFind(json_, key);
    if (object == nullptr) return pattern;
    if (!object->is_object()) {
      return Error{Code::kCorrupt, label_ + ": " + key + " is not an object"};
    }
    for (const auto& [name, value] : object->items()) {
      if (!value.is_number() || !std::isfinite(value.get<double>())) {
        return Error{Code::kCorrupt, label_ + ": " + key + " of " +
                                         Quoted(name) + " is not a number"};
      }
      const bool plain =
          !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                   (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
          });
      if (!plain) {
        return Unsupported(std::string(key) + " has the regular expression " +
                           Quoted(name) + ", where only names are supported");
      }
      pattern.emplace_back(name, value.get<double>());
    }
    return pattern;
  }

  const Json& json_;
  const std::string label_;
};

// The first that fits, as PEFT takes it.
double Of(const Pattern& pattern, std::string_view module, double fallback) {
  for (const auto& [name, value] : pattern) {
    if (!module.ends_with(name)) continue;
    const std::size_t rest = module.size() - name.size();
    if (rest == 0 || module[rest - 1] == '.') return value;
  }
  return fallback;
}

// "base_model.model.NAME.lora_A.weight": NAME and whether it is the first
// matrix. kUnsupported for any other tensor.
Result<std::pair<std::string, bool>> PlaceOf(const std::string& tensor,
                                             const std::string& label) {
  const auto refuse = [&](const std::string& what) {
    return Error{Code::kUnsupported, label + ": tensor " + Quoted(tensor) +
                                         " " + what + "; " + kMergeIt};
  };
  constexpr std::string_view kStart = "base_model.model.";
  if (tensor.find("lora_embedding_") != std::string::npos) {
    return refuse("changes the embedding, which is not supported");
  }
  if (tensor.find("lora_magnitude_vector") != std::string::npos) {
    return refuse("is a magnitude of weights (DoRA), which is not supported");
  }
  for (const bool down : {true, false}) {
    for (const std::string_view between : {".", ".default."}) {
      std::string end = down ? ".lora_A" : ".lora_B";
      end.append(between).append("weight");
      if (!tensor.starts_with(kStart) || !tensor.ends_with(end) ||
          tensor.size() <= kStart.size() + end.size()) {
        continue;
      }
      return std::pair{
          tensor.substr(kStart.size(),
                        tensor.size() - kStart.size() - end.size()),
          down};
    }
  }
  return refuse("is no part of a low-rank pair");
}

}  // namespace

Result<AdapterFile> ParsePeftAdapter(const Json& json, ByteSpan bytes,
                                     const std::string& label) {
  HEARTH_ASSIGN(const PeftConfig config, ConfigReader(json, label).Run());
  HEARTH_ASSIGN(const SafetensorsFile file,
                SafetensorsFile::Parse(bytes, label));
  AdapterFile adapter;
  adapter.path = label;
  adapter.form = AdapterForm::kHuggingFace;
  std::map<std::string, AdapterPair> pairs;
  for (const SafetensorsEntry& t : file.tensors()) {
    HEARTH_ASSIGN(const auto place, PlaceOf(t.name, label));
    HEARTH_ASSIGN(const AdapterMatrix matrix,
                  MatrixOf({t.name, t.type, t.dtype, t.shape, t.bytes}, label));
    AdapterPair& pair = pairs[place.first];
    AdapterMatrix& mine = place.second ? pair.down : pair.up;
    if (!mine.bytes.empty()) {
      return Error{Code::kCorrupt, label + ": a matrix of " +
                                       Quoted(place.first) + " is there twice"};
    }
    mine = matrix;
  }
  for (auto& [name, pair] : pairs) {
    pair.name = name;
    HEARTH_TRY(CheckPair(pair, label));
    const auto rank = static_cast<double>(pair.up.n_in);
    const double said =
        Of(config.ranks, name, static_cast<double>(config.rank));
    if (said != rank) {
      return Error{Code::kCorrupt,
                   label + ": the adapter of " + Quoted(name) + " has rank " +
                       std::to_string(pair.up.n_in) +
                       ", which is not what adapter_config.json says"};
    }
    pair.factor = Of(config.alphas, name, config.alpha) /
                  (config.by_root ? std::sqrt(rank) : rank);
    adapter.pairs.push_back(std::move(pair));
  }
  if (adapter.pairs.empty()) {
    return Error{Code::kCorrupt, label + ": the adapter has no matrices"};
  }
  return adapter;
}

}  // namespace hearth
