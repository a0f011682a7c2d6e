#include "model/io/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "model/io/assemble.h"
#include "model/io/describe.h"
#include "model/io/families.h"
#include "model/io/gguf.h"
#include "model/io/narrow.h"
#include "model/io/rope_scaling.h"
#include "model/io/tensor_names.h"
#include "model/io/tensor_set.h"

namespace hearth {
namespace {

class GgufModelReader {
 public:
  explicit GgufModelReader(const GgufFile& file)
      : file_(file), label_(file.label()), tensors_(file.label()) {}

  Result<LoadedModel> Run();

 private:
  // "llama.block_count"
  std::string Key(const char* name) const { return prefix_ + name; }
  Error Corrupt(const std::string& what) const {
    return {Code::kCorrupt, label_ + ": " + what};
  }
  Error Unsupported(const std::string& what) const {
    return {Code::kUnsupported, label_ + ": " + what};
  }

  // A size that must fit an int; its range is CheckConfig's business.
  Result<int> Size(const char* name) const {
    return ToInt(name, file_.Int(Key(name)));
  }
  Result<int> Size(const char* name, int fallback) const {
    return ToInt(name, file_.Int(Key(name), fallback));
  }
  Result<int> ToInt(const char* name, Result<std::int64_t> value) const;

  Result<const Family*> FindFamily();
  Result<void> AddTensors();
  Result<void> ReadShapes();
  Result<void> RefuseOtherArithmetic() const;
  Result<void> ReadRope(const Family& family);
  Result<void> ReadTokenIds(LoadedModel& model) const;

  const GgufFile& file_;
  const std::string label_;
  TensorSet tensors_;
  std::string prefix_;
  ModelConfig config_;
};

Result<int> GgufModelReader::ToInt(const char* name,
                                   Result<std::int64_t> value) const {
  if (!value.ok()) return value.error();
  if (*value < 0 || *value > INT32_MAX) {
    return Corrupt("key " + Quoted(Key(name)) + " has the impossible value " +
                   std::to_string(*value));
  }
  return static_cast<int>(*value);
}

Result<const Family*> GgufModelReader::FindFamily() {
  HEARTH_ASSIGN(const std::string_view architecture,
                file_.Text("general.architecture"));
  const Family* family = FamilyOfGguf(architecture);
  if (family == nullptr) {
    std::string known;
    for (const Family& f : Families()) {
      known += (known.empty() ? "" : ", ") + std::string(f.architecture);
    }
    return Unsupported("architecture " + Quoted(architecture) +
                       " is not supported; supported are " + known);
  }
  config_.architecture = std::string(architecture);
  prefix_ = config_.architecture + ".";
  return family;
}

Result<void> GgufModelReader::AddTensors() {
  for (const GgufTensor& t : file_.tensors()) {
    HEARTH_TRY(tensors_.Add(
        {std::string(t.name), t.type, t.dtype, t.shape, t.bytes, {}}));
  }
  return {};
}

Result<void> GgufModelReader::ReadShapes() {
  HEARTH_ASSIGN(config_.n_layers, Size("block_count"));
  HEARTH_ASSIGN(config_.d_model, Size("embedding_length"));
  HEARTH_ASSIGN(config_.n_heads, Size("attention.head_count"));
  HEARTH_ASSIGN(config_.n_kv_heads,
                Size("attention.head_count_kv", config_.n_heads));
  HEARTH_ASSIGN(config_.d_mlp, Size("feed_forward_length"));
  HEARTH_ASSIGN(config_.context_length, Size("context_length"));
  const int split = config_.n_heads > 0 ? config_.d_model / config_.n_heads : 0;
  if (!file_.Has(Key("attention.key_length")) && config_.n_heads > 0 &&
      config_.d_model % config_.n_heads != 0) {
    return Corrupt("the model width is no multiple of the head count and key " +
                   Quoted(Key("attention.key_length")) + " is missing");
  }
  HEARTH_ASSIGN(config_.head_dim, Size("attention.key_length", split));
  HEARTH_ASSIGN(const int value_length,
                Size("attention.value_length", config_.head_dim));
  if (value_length != config_.head_dim) {
    return Unsupported("values of " + std::to_string(value_length) +
                       " numbers with keys of " +
                       std::to_string(config_.head_dim) + " are not supported");
  }
  HEARTH_ASSIGN(const double eps,
                file_.Float(Key("attention.layer_norm_rms_epsilon"), 1e-5));
  config_.norm_eps = NarrowToFloat(eps);

  // The embedding's rows, not a key, say how many tokens there are.
  const std::string embedding = WeightName(kGgufNames, Role::kTokenEmbedding);
  const SourceTensor* tensor = tensors_.Find(embedding);
  if (tensor == nullptr) {
    return Corrupt("tensor " + Quoted(embedding) + " is missing");
  }
  if (tensor->shape.size() != 2 || tensor->shape[0] > INT32_MAX) {
    return Corrupt("tensor " + Quoted(embedding) +
                   " has the impossible shape " + ShapeText(tensor->shape));
  }
  config_.vocab_size = static_cast<int>(tensor->shape[0]);
  config_.tied_head = !tensors_.Has(WeightName(kGgufNames, Role::kHead));
  return {};
}

// Keys that other models use to change the forward pass. Their neutral values
// are fine; anything else is refused by name.
Result<void> GgufModelReader::RefuseOtherArithmetic() const {
  static constexpr struct {
    const char* name;
    double neutral;
  } kKeys[] = {{"expert_count", 0},
               {"attention.max_alibi_bias", 0},
               {"attention.clamp_kqv", 0},
               {"attn_logit_softcapping", 0},
               {"final_logit_softcapping", 0},
               {"logit_scale", 1},
               {"embedding_scale", 1},
               {"residual_scale", 1},
               {"rope.scaling.attn_factor", 1}};
  for (const auto& key : kKeys) {
    HEARTH_ASSIGN(const double value, file_.Float(Key(key.name), key.neutral));
    if (value != key.neutral) {
      return Unsupported("key " + Quoted(Key(key.name)) + " = " +
                         std::to_string(value) + " is not supported");
    }
  }
  HEARTH_ASSIGN(const std::int64_t window,
                file_.Int(Key("attention.sliding_window"), 0));
  if (window != 0 && window < config_.context_length) {
    return Unsupported("key " + Quoted(Key("attention.sliding_window")) +
                       ": sliding-window attention is not supported");
  }
  HEARTH_ASSIGN(const bool causal, file_.Bool(Key("attention.causal"), true));
  HEARTH_ASSIGN(const bool parallel,
                file_.Bool(Key("use_parallel_residual"), false));
  if (!causal || parallel) {
    return Unsupported(
        "key " +
        Quoted(Key(causal ? "use_parallel_residual" : "attention.causal")) +
        " asks for a forward pass that is not supported");
  }
  return {};
}

Result<void> GgufModelReader::ReadRope(const Family& family) {
  RopeConfig& rope = config_.rope;
  HEARTH_ASSIGN(rope.rotary_dim,
                Size("rope.dimension_count", config_.head_dim));
  rope.interleaved = family.gguf_interleaved;
  HEARTH_ASSIGN(const double base, file_.Float(Key("rope.freq_base"), 10000));
  HEARTH_ASSIGN(rope.inv_freq, PlainFrequencies(base, rope.rotary_dim, label_));

  // A factor without a type is linear; the older key says so in its name.
  HEARTH_ASSIGN(const double old_factor,
                file_.Float(Key("rope.scale_linear"), 1));
  HEARTH_ASSIGN(const double factor,
                file_.Float(Key("rope.scaling.factor"), old_factor));
  HEARTH_ASSIGN(const std::string_view type,
                file_.Text(Key("rope.scaling.type"), "linear"));
  if (type == "linear") {
    // 0 is written for "not scaled".
    if (factor != 0 && factor != 1) {
      HEARTH_TRY(ScaleLinear(factor, rope.inv_freq, label_));
    }
  } else if (type != "none") {
    return Unsupported("rope scaling type " + Quoted(type) +
                       " is not supported; supported are none, linear and "
                       "rope_freqs.weight (llama3)");
  }
  const std::string factors = WeightName(kGgufNames, Role::kRopeFactors);
  if (tensors_.Has(factors)) {
    const std::uint64_t shape[] = {rope.inv_freq.size()};
    HEARTH_ASSIGN(const std::vector<float> values,
                  tensors_.Floats(factors, shape));
    HEARTH_TRY(ScaleByFactors(values, rope.inv_freq, label_));
  }
  return {};
}

Result<void> GgufModelReader::ReadTokenIds(LoadedModel& model) const {
  // Ids outside the vocabulary (some files write -1 for "none") end nothing.
  const auto in_vocabulary = [&](std::int64_t id) {
    return id >= 0 && id < config_.vocab_size;
  };
  HEARTH_ASSIGN(const std::int64_t bos,
                file_.Int("tokenizer.ggml.bos_token_id", -1));
  if (in_vocabulary(bos)) model.bos_id = static_cast<std::int32_t>(bos);
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id"}) {
    HEARTH_ASSIGN(const std::int64_t id, file_.Int(key, -1));
    const auto eos = static_cast<std::int32_t>(id);
    if (in_vocabulary(id) &&
        std::find(model.eos_ids.begin(), model.eos_ids.end(), eos) ==
            model.eos_ids.end()) {
      model.eos_ids.push_back(eos);
    }
  }
  return {};
}

Result<LoadedModel> GgufModelReader::Run() {
  HEARTH_ASSIGN(const std::int64_t parts, file_.Int("split.count", 1));
  if (parts > 1) {
    return Unsupported("this is one of " + std::to_string(parts) +
                       " parts of a split model; merge them into one file");
  }
  HEARTH_ASSIGN(const Family* family, FindFamily());
  HEARTH_TRY(AddTensors());
  HEARTH_TRY(ReadShapes());
  HEARTH_TRY(RefuseOtherArithmetic());
  HEARTH_ASSIGN(const double scale,
                file_.Float(Key("attention.scale"),
                            1.0 / std::sqrt(std::max(1, config_.head_dim))));
  config_.attention_scale = NarrowToFloat(scale);
  HEARTH_TRY(ReadRope(*family));
  HEARTH_TRY(CheckConfig(config_, label_));
  WeightPlan plan;
  HEARTH_TRY(family->finish_gguf(file_, tensors_, config_, plan));

  LoadedModel model;
  HEARTH_ASSIGN(model.weights,
                AssembleWeights(config_, plan, kGgufNames, tensors_));
  HEARTH_TRY(ReadTokenIds(model));
  HEARTH_ASSIGN(const std::string_view name, file_.Text("general.name", ""));
  config_.name = NameForFiles(name);
  if (config_.name.empty()) config_.name = NameFromShape(config_);
  model.path = label_;
  model.file_format = "GGUF v" + std::to_string(file_.version());
  model.tensors = tensors_.Records();
  model.n_parameters = tensors_.CountParameters();
  model.config = std::move(config_);
  model.tokenizer_source = TokenizerSource::kGguf;
  return model;
}

}  // namespace

Result<LoadedModel> LoadGguf(ByteSpan bytes, const std::string& label) {
  HEARTH_ASSIGN(GgufFile parsed, GgufFile::Parse(bytes, label));
  const auto file = std::make_shared<const GgufFile>(std::move(parsed));
  HEARTH_ASSIGN(LoadedModel model, GgufModelReader(*file).Run());
  model.gguf = file;
  return model;
}

}  // namespace hearth
