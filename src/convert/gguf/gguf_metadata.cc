// The keys that say in GGUF what ModelConfig says.
#include <algorithm>
#include <cmath>
#include <utility>

#include "convert/gguf/gguf_export.h"
#include "formats/families.h"
#include "formats/gguf/gguf.h"
#include "formats/rope_scaling.h"

namespace hearth {
namespace {

class MetadataWriter {
 public:
  MetadataWriter(const LoadedModel& model, const Family& family)
      : config_(model.config),
        family_(family),
        label_(model.path),
        prefix_(std::string(family.gguf_architecture) + "."),
        gguf_(model.gguf.get()) {}

  Result<std::vector<GgufMetadata>> Run() {
    Add("general.architecture", std::string(family_.gguf_architecture));
    HEARTH_TRY(AddName());
    AddShapes();
    AddExperts();
    HEARTH_TRY(AddScales());
    HEARTH_TRY(AddLayerKinds());
    if (config_.rope.rotary_dim > 0) HEARTH_TRY(AddRope());
    AddOwnKeys();
    return std::move(out_);
  }

 private:
  Error Unsupported(const std::string& what) const {
    return {Code::kUnsupported, label_ + ": GGUF has no way to say " + what +
                                    " of " +
                                    std::string(family_.gguf_architecture)};
  }
  void Add(std::string key, GgufValue value) {
    out_.push_back({std::move(key), std::move(value)});
  }
  void Size(const char* key, std::int64_t value) {
    Add(prefix_ + key, static_cast<std::uint32_t>(value));
  }
  void Number(const char* key, double value) {
    Add(prefix_ + key, static_cast<float>(value));
  }

  // What one family alone has keys for.
  void AddOwnKeys() {
    if (family_.write_gguf == nullptr) return;
    const auto key = [this](const char* name) { return prefix_ + name; };
    family_.write_gguf(
        config_,
        {.size = [this](const char* name,
                        std::int64_t value) { Size(name, value); },
         .number = [this](const char* name,
                          double value) { Number(name, value); },
         .flag = [this, key](const char* name,
                             bool value) { Add(key(name), value); },
         .sizes =
             [this, key](const char* name, std::vector<std::int32_t> values) {
               Add(key(name), std::move(values));
             }});
  }

  // A name that a GGUF has is carried as it is, in the place where every GGUF
  // of this program has it: a second conversion changes no byte.
  Result<void> AddName() {
    std::string name = config_.name;
    if (gguf_ != nullptr && gguf_->Has("general.name")) {
      HEARTH_ASSIGN(const auto carried, gguf_->Text("general.name"));
      name = carried;
    }
    Add("general.name", std::move(name));
    return {};
  }

  void AddShapes() {
    const ModelConfig& c = config_;
    Size("context_length", c.context_length);
    Size("embedding_length", c.d_model);
    Size("block_count", c.n_layers);
    // Else the family writes a list of all layers'.
    if (!Reads("feed_forward_length")) Size("feed_forward_length", c.d_mlp);
    Size("vocab_size", c.vocab_size);
    Size("attention.head_count", c.n_heads);
    if (!Reads("attention.head_count_kv")) {
      Size("attention.head_count_kv", c.n_kv_heads);
    }
    if (!Reads("attention.key_length")) {
      Size("attention.key_length", c.head_dim);
      Size("attention.value_length", c.head_dim);
    }
    Number(c.norm == NormKind::kRmsNorm ? "attention.layer_norm_rms_epsilon"
                                        : "attention.layer_norm_epsilon",
           static_cast<double>(c.norm_eps));
  }

  void AddExperts() {
    if (config_.n_experts == 0) return;
    Size("expert_count", config_.n_experts);
    Size("expert_used_count", config_.n_experts_used);
    Size("expert_feed_forward_length", config_.d_expert);
  }

  bool Reads(std::string_view key) const {
    return std::find(family_.gguf_keys.begin(), family_.gguf_keys.end(), key) !=
           family_.gguf_keys.end();
  }

  // A number that only some families have a key for.
  Result<void> Optional(const char* key, float value, float neutral,
                        float written) {
    if (Reads(key)) {
      Number(key, static_cast<double>(written));
    } else if (value != neutral) {
      return Unsupported(key);
    }
    return {};
  }

  Result<void> AddScales() {
    const ModelConfig& c = config_;
    if (c.mlp != family_.mlp) return Unsupported("the activation");
    if (c.router == RouterKind::kSoftmaxOfAll && c.n_experts > 0 &&
        !Reads("expert_weights_scale")) {
      return Unsupported("weights of experts that do not sum to 1");
    }
    if (family_.gguf_folded_scales) return {};
    if (c.part_scales != PartScales{}) return Unsupported("the multipliers");
    const auto usual = static_cast<float>(1.0 / std::sqrt(c.head_dim));
    if (c.attention_scale != usual && c.latent.kv_rank == 0) {
      Number("attention.scale", static_cast<double>(c.attention_scale));
    }
    HEARTH_TRY(Optional("attn_logit_softcapping", c.attention_softcap, 0,
                        c.attention_softcap));
    HEARTH_TRY(Optional("final_logit_softcapping", c.logit_softcap, 0,
                        c.logit_softcap));
    HEARTH_TRY(
        Optional("residual_scale", c.residual_scale, 1, c.residual_scale));
    HEARTH_TRY(Optional("logit_scale", c.logit_scale, 1, 1 / c.logit_scale));
    // Gemma's scale follows from its width.
    if (c.embedding_scale == 1 || Reads("embedding_scale")) {
      return Optional("embedding_scale", c.embedding_scale, 1,
                      c.embedding_scale);
    }
    return {};
  }

  Result<void> AddLayerKinds() {
    int window = 0;
    std::vector<bool> windowed;
    bool usual = true;
    for (int i = 0; i < config_.n_layers; ++i) {
      const LayerKind kind = config_.KindOf(i);
      window = std::max(window, kind.window);
      windowed.push_back(kind.window > 0);
      const int period = family_.gguf_window_period;
      usual =
          usual && windowed.back() == (period == 0 || i % period < period - 1);
    }
    for (int i = 0; i < config_.n_layers; ++i) {
      const int interval = family_.gguf_no_rope_interval;
      const bool plain = (interval > 0 && (i + 1) % interval == 0) ||
                         (family_.gguf_no_rope_without_window && window > 0 &&
                          config_.KindOf(i).window == 0);
      if ((config_.KindOf(i).rope == RopeUse::kNone) != plain) {
        return Unsupported("the layers without rotation");
      }
    }
    if (window == 0) return {};
    if (!Reads("attention.sliding_window")) return Unsupported("a window");
    for (const LayerKind& kind : config_.layer_kinds) {
      if (kind.window != 0 && kind.window != window) {
        return Unsupported("windows of several sizes");
      }
    }
    Size("attention.sliding_window", window);
    if (!usual || family_.gguf_window_list) {
      Add(prefix_ + "attention.sliding_window_pattern", std::move(windowed));
    }
    return {};
  }

  Result<void> AddRope() {
    const RopeScaling& s = config_.rope.scaling;
    Size("rope.dimension_count", config_.rope.rotary_dim);
    Number("rope.freq_base", s.base);
    if (config_.local_rope.rotary_dim > 0 && !family_.gguf_windows_unscaled) {
      if (config_.local_rope.scaling.kind != RopeScalingKind::kNone) {
        return Unsupported("a scaling of the local rotary frequencies");
      }
      Number("rope.freq_base_swa", config_.local_rope.scaling.base);
    }
    switch (s.kind) {
      case RopeScalingKind::kNone:
      case RopeScalingKind::kLlama3:  // a tensor
      case RopeScalingKind::kFactors:
      case RopeScalingKind::kProportional:
        break;
      case RopeScalingKind::kLinear:
        Add(prefix_ + "rope.scaling.type", std::string("linear"));
        Number("rope.scaling.factor", s.factor);
        break;
      case RopeScalingKind::kYarn:
        return AddYarn(s);
      case RopeScalingKind::kLongrope:
        Add(prefix_ + "rope.scaling.type", std::string("longrope"));
        Size("rope.scaling.original_context_length",
             static_cast<std::int64_t>(s.original_context));
        Number("rope.scaling.attn_factor",
               static_cast<double>(config_.rope.cos_sin_factor));
        break;
    }
    return {};
  }

  Result<void> AddYarn(const RopeScaling& s) {
    ModelConfig usual;
    WeightPlan ignored;
    if (family_.describe != nullptr) family_.describe(usual, ignored);
    if (s.truncate != usual.rope.scaling.truncate) {
      return Unsupported("yarn's \"truncate\"");
    }
    Add(prefix_ + "rope.scaling.type", std::string("yarn"));
    Number("rope.scaling.factor", s.factor);
    Size("rope.scaling.original_context_length",
         static_cast<std::int64_t>(s.original_context));
    Number("rope.scaling.yarn_beta_fast", s.beta_fast);
    Number("rope.scaling.yarn_beta_slow", s.beta_slow);
    // There it is in the scale of scores, which the family writes.
    if (config_.latent.kv_rank > 0) return {};
    const double own = YarnAttentionFactor(s.factor);
    const double factor = static_cast<double>(config_.rope.cos_sin_factor);
    constexpr char kLogMultiplier[] = "rope.scaling.yarn_log_multiplier";
    if (std::abs(factor - 1) < 1e-6 && Reads(kLogMultiplier)) {
      Number(kLogMultiplier, 1);
    } else if (std::abs(factor - own) > 1e-6) {
      Number("rope.scaling.attn_factor", factor / own);
    }
    return {};
  }

  const ModelConfig& config_;
  const Family& family_;
  const std::string label_, prefix_;
  const GgufFile* gguf_;  // null: the model was no GGUF
  std::vector<GgufMetadata> out_;
};

}  // namespace

Result<std::vector<GgufMetadata>> GgufModelMetadata(const LoadedModel& model) {
  HEARTH_ASSIGN(const Family* family, GgufFamilyOf(model));
  return MetadataWriter(model, *family).Run();
}

}  // namespace hearth
