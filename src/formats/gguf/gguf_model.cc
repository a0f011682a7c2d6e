#include "formats/gguf/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "formats/assemble/assemble.h"
#include "formats/describe.h"
#include "formats/families.h"
#include "formats/families/unread.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_kind.h"
#include "formats/gguf/gguf_rope.h"
#include "formats/gguf/gguf_split.h"
#include "formats/mtp.h"
#include "formats/narrow.h"
#include "formats/sampling_defaults.h"
#include "formats/tensors/tensor_names.h"
#include "formats/tensors/tensor_set.h"

namespace hearth {
namespace {

class GgufModelReader {
 public:
  // `others`: the parts of a split model behind `file`, which has the keys.
  GgufModelReader(const GgufFile& file, std::span<const GgufPartFile> others)
      : file_(file),
        others_(others),
        label_(file.label()),
        tensors_(file.label()) {}

  Result<LoadedModel> Run();
  Result<MtpBlock> RunMtp();

 private:
  // "llama.block_count"
  std::string Key(const char* name) const { return prefix_ + name; }
  Error Corrupt(const std::string& what) const {
    return {Code::kCorrupt, label_ + ": " + what};
  }
  Error Unsupported(const std::string& what) const {
    return {Code::kUnsupported, label_ + ": " + what};
  }

  Result<int> Size(const char* name) const {
    return ToInt(name, file_.Int(Key(name)));
  }
  Result<int> Size(const char* name, int fallback) const {
    return ToInt(name, file_.Int(Key(name), fallback));
  }
  Result<int> ToInt(const char* name, Result<std::int64_t> value) const {
    return NarrowToSize(value, label_, "key " + Quoted(Key(name)));
  }

  Result<const Family*> FindFamily();
  Result<void> AddTensors();
  Result<WeightPlan> ReadConfig();
  Result<void> ReadShapes();
  Result<int> SizeOfLayers(const char* key, std::optional<int> fallback) const;
  Result<void> RefuseOtherArithmetic(const Family& family) const;
  Result<void> ReadTokenIds(LoadedModel& model) const;

  const GgufFile& file_;
  std::span<const GgufPartFile> others_;
  const std::string label_;
  TensorSet tensors_;
  const Family* family_ = nullptr;
  std::string prefix_;
  ModelConfig config_;
};

Result<const Family*> GgufModelReader::FindFamily() {
  HEARTH_ASSIGN(const std::string_view architecture,
                file_.Text("general.architecture"));
  const Family* family = FamilyOfGguf(architecture);
  if (family == nullptr) {
    std::string known;
    for (const Family* f : Families()) {
      if (f->gguf_architecture.empty()) continue;
      known += (known.empty() ? "" : ", ") + std::string(f->gguf_architecture);
    }
    const std::string note = UnreadFamilyNote(architecture);
    return Unsupported("architecture " + Quoted(architecture) +
                       " is not supported" + (note.empty() ? "" : ": " + note) +
                       "; supported are " + known);
  }
  config_.architecture = std::string(family->architecture);
  config_.mlp = family->mlp;
  prefix_ = std::string(architecture) + ".";
  return family;
}

Result<void> GgufModelReader::AddTensors() {
  const auto add = [&](const GgufFile& file) -> Result<void> {
    for (const GgufTensor& t : file.tensors()) {
      HEARTH_TRY(tensors_.Add(
          {std::string(t.name), t.type, t.dtype, t.shape, t.bytes, {}}));
    }
    return {};
  };
  HEARTH_TRY(add(file_));
  for (const GgufPartFile& part : others_) HEARTH_TRY(add(part.gguf));
  return {};
}

// One number, or in families that read it themselves, too, a list of one for
// each layer, with 0 where a layer has none: then its first other number.
Result<int> GgufModelReader::SizeOfLayers(const char* key,
                                          std::optional<int> fallback) const {
  const GgufEntry* entry = file_.Find(Key(key));
  const auto& read = family_->gguf_keys;
  if (entry == nullptr || entry->type != GgufType::kArray ||
      std::find(read.begin(), read.end(), key) == read.end()) {
    return fallback.has_value() ? Size(key, *fallback) : Size(key);
  }
  HEARTH_ASSIGN(const std::vector<std::int32_t> list, file_.IntArray(Key(key)));
  for (const std::int32_t n : list) {
    if (n != 0) return ToInt(key, std::int64_t{n});
  }
  return 0;
}

Result<void> GgufModelReader::ReadShapes() {
  HEARTH_ASSIGN(config_.n_layers, Size("block_count"));
  HEARTH_ASSIGN(config_.d_model, Size("embedding_length"));
  HEARTH_ASSIGN(config_.n_heads, Size("attention.head_count"));
  HEARTH_ASSIGN(config_.n_kv_heads,
                SizeOfLayers("attention.head_count_kv", config_.n_heads));
  // Models of experts alone may not have it.
  HEARTH_ASSIGN(const int d_expert, Size("expert_feed_forward_length", 0));
  HEARTH_ASSIGN(
      config_.d_mlp,
      SizeOfLayers("feed_forward_length",
                   d_expert > 0 ? std::optional<int>(d_expert) : std::nullopt));
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
  const auto& read = family_->gguf_keys;
  const bool reads_lengths =
      std::find(read.begin(), read.end(), "attention.key_length") != read.end();
  if (value_length != config_.head_dim && !reads_lengths) {
    return Unsupported("values of " + std::to_string(value_length) +
                       " numbers with keys of " +
                       std::to_string(config_.head_dim) + " are not supported");
  }
  // Of models whose norm is no RMS norm.
  HEARTH_ASSIGN(const double old_eps,
                file_.Float(Key("attention.layer_norm_epsilon"), 1e-5));
  HEARTH_ASSIGN(const double eps,
                file_.Float(Key("attention.layer_norm_rms_epsilon"), old_eps));
  config_.norm_eps = NarrowToFloat(eps);

  // The embedding's rows, not a key, say how many tokens there are.
  const std::string embedding = WeightName(kGgufNames, Role::kTokenEmbedding);
  const SourceTensor* tensor = tensors_.Find(embedding);
  if (tensor == nullptr) {
    return Corrupt("tensor " + Quoted(embedding) + " is missing");
  }
  const auto shape = WithoutOuterOnes(tensor->shape);
  if (shape.size() != 2 || shape[0] > INT32_MAX) {
    return Corrupt("tensor " + Quoted(embedding) +
                   " has the impossible shape " + ShapeText(tensor->shape));
  }
  config_.vocab_size = static_cast<int>(shape[0]);
  config_.tied_head = !tensors_.Has(WeightName(kGgufNames, Role::kHead));
  return {};
}

// Keys that other models use to change the forward pass. Their neutral values
// are fine; anything else is refused by name, unless the family reads it.
Result<void> GgufModelReader::RefuseOtherArithmetic(
    const Family& family) const {
  static constexpr struct {
    std::string_view name;
    double neutral;
  } kKeys[] = {{"expert_count", 0},
               {"expert_shared_count", 0},
               {"expert_weights_scale", 1},
               {"attention.max_alibi_bias", 0},
               {"attention.clamp_kqv", 0},
               {"attention.sliding_window", 0},
               {"attn_logit_softcapping", 0},
               {"final_logit_softcapping", 0},
               {"logit_scale", 1},
               {"embedding_scale", 1},
               {"residual_scale", 1}};
  for (const auto& [name, neutral] : kKeys) {
    if (std::find(family.gguf_keys.begin(), family.gguf_keys.end(), name) !=
        family.gguf_keys.end()) {
      continue;
    }
    const std::string key = prefix_ + std::string(name);
    HEARTH_ASSIGN(const double value, file_.Float(key, neutral));
    // A window that holds the whole context is none.
    const bool harmless =
        name == "attention.sliding_window" && value >= config_.context_length;
    if (value != neutral && !harmless) {
      return Unsupported("key " + Quoted(key) + " = " + std::to_string(value) +
                         " is not supported in this architecture");
    }
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

// Of the family and the tensors that were found.
Result<WeightPlan> GgufModelReader::ReadConfig() {
  const Family* family = family_;
  HEARTH_TRY(ReadShapes());
  HEARTH_TRY(RefuseOtherArithmetic(*family));
  HEARTH_ASSIGN(const double scale,
                file_.Float(Key("attention.scale"),
                            1.0 / std::sqrt(std::max(1, config_.head_dim))));
  config_.attention_scale = NarrowToFloat(scale);
  WeightPlan plan;
  if (family->describe != nullptr) family->describe(config_, plan);
  const GgufInput in{file_, tensors_, prefix_, config_, plan};
  if (!config_.learned_positions) HEARTH_TRY(ReadGgufRope(in, *family));
  if (family->finish_gguf != nullptr) HEARTH_TRY(family->finish_gguf(in));
  HEARTH_TRY(CheckConfig(config_, label_));
  return plan;
}

// The block that the key counts is the last one.
Result<MtpBlock> GgufModelReader::RunMtp() {
  HEARTH_ASSIGN(family_, FindFamily());
  HEARTH_TRY(AddTensors());
  HEARTH_ASSIGN(const int n, Size("nextn_predict_layers", 0));
  HEARTH_TRY(CheckMtp(config_.architecture, n, label_));
  const std::vector<SourceTensor> all = tensors_.tensors();
  HEARTH_ASSIGN(const WeightPlan plan, ReadConfig());
  const std::string prefix = "blk." + std::to_string(config_.n_layers) + ".";
  const std::string last_norm =
      WeightName(family_->gguf_names, Role::kFinalNorm);
  const std::pair<std::string_view, std::string> renamed[] = {
      {"nextn.eh_proj.weight", kMtpProjection},
      {"nextn.enorm.weight", kMtpEmbeddingNorm},
      {"nextn.hnorm.weight", kMtpHiddenNorm},
      {"nextn.shared_head_norm.weight", last_norm}};
  TensorSet block(label_);
  for (SourceTensor tensor : all) {
    if (tensor.name.starts_with(prefix)) {
      const std::string rest = tensor.name.substr(prefix.size());
      tensor.name = "blk.0." + rest;
      for (const auto& [name, here] : renamed) {
        if (rest == name) tensor.name = here;
      }
    } else if (tensor.name.starts_with("blk.") || tensor.name == last_norm) {
      continue;
    }
    HEARTH_TRY(block.Add(std::move(tensor)));
  }
  return AssembleMtp(config_, plan, family_->gguf_names, block);
}

Result<LoadedModel> GgufModelReader::Run() {
  HEARTH_ASSIGN(family_, FindFamily());
  HEARTH_TRY(AddTensors());
  HEARTH_ASSIGN(const WeightPlan plan, ReadConfig());
  LoadedModel model;
  HEARTH_ASSIGN(model.weights,
                AssembleWeights(config_, plan, family_->gguf_names, tensors_));
  HEARTH_TRY(ReadTokenIds(model));
  HEARTH_ASSIGN(model.sampling, ReadGgufSampling(file_));
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
  HEARTH_ASSIGN(std::vector<GgufPartFile> parts,
                OpenSplitParts(parsed, bytes, label));
  if (!parts.empty()) parsed = std::move(parts.front().gguf);
  HEARTH_TRY(RefuseOtherGguf(parsed));
  const auto file = std::make_shared<const GgufFile>(std::move(parsed));
  const auto others =
      std::span<const GgufPartFile>(parts).subspan(parts.empty() ? 0 : 1);
  HEARTH_ASSIGN(LoadedModel model, GgufModelReader(*file, others).Run());
  model.gguf = file;
  for (GgufPartFile& part : parts) model.files.push_back(std::move(part.file));
  return model;
}

Result<MtpBlock> LoadGgufMtp(ByteSpan bytes, const std::string& label) {
  HEARTH_ASSIGN(GgufFile parsed, GgufFile::Parse(bytes, label));
  HEARTH_ASSIGN(std::vector<GgufPartFile> parts,
                OpenSplitParts(parsed, bytes, label));
  if (!parts.empty()) parsed = std::move(parts.front().gguf);
  HEARTH_TRY(RefuseOtherGguf(parsed));
  const auto others =
      std::span<const GgufPartFile>(parts).subspan(parts.empty() ? 0 : 1);
  HEARTH_ASSIGN(MtpBlock block, GgufModelReader(parsed, others).RunMtp());
  for (GgufPartFile& part : parts) {
    block.model.files.push_back(std::move(part.file));
  }
  return block;
}

}  // namespace hearth
