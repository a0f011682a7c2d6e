#include "formats/gguf/gguf_rope.h"

#include <algorithm>
#include <string>
#include <vector>

#include "formats/describe.h"
#include "formats/families/settings.h"
#include "formats/rope_scaling.h"

namespace hearth {
namespace {

Error Unsupported(const GgufInput& in, const std::string& what) {
  return {Code::kUnsupported, in.file.label() + ": " + what};
}

// One factor for each pair that turns.
Result<std::vector<float>> RopeFactors(const GgufInput& in, Role role) {
  const std::uint64_t shape[] = {
      static_cast<std::uint64_t>(in.config.rope.rotary_dim / 2)};
  return in.tensors.Floats(WeightName(kGgufNames, role), shape);
}

// The lists are tensors; what multiplies cos and sin is a key.
Result<void> ReadLongrope(const GgufInput& in, double attention_factor) {
  RopeScaling& s = in.config.rope.scaling;
  s.kind = RopeScalingKind::kLongrope;
  s.attention_factor = attention_factor;
  HEARTH_ASSIGN(s.long_factors, RopeFactors(in, Role::kRopeLong));
  HEARTH_ASSIGN(s.factors, RopeFactors(in, Role::kRopeShort));
  return {};
}

// rope.scaling.attn_factor multiplies yarn's own factor.
Result<void> ReadYarn(const GgufInput& in, const Family& family,
                      double attention_factor) {
  RopeScaling& s = in.config.rope.scaling;
  s.kind = RopeScalingKind::kYarn;
  HEARTH_ASSIGN(s.beta_fast,
                in.file.Float(in.Key("rope.scaling.yarn_beta_fast"), 32));
  HEARTH_ASSIGN(s.beta_slow,
                in.file.Float(in.Key("rope.scaling.yarn_beta_slow"), 1));
  s.attention_factor = attention_factor * YarnAttentionFactor(s.factor);
  constexpr char kLogMultiplier[] = "rope.scaling.yarn_log_multiplier";
  HEARTH_ASSIGN(const double log_multiplier,
                in.file.Float(in.Key(kLogMultiplier), 0));
  const auto& read = family.gguf_keys;
  const bool reads_it =
      std::find(read.begin(), read.end(), kLogMultiplier) != read.end();
  if (reads_it && log_multiplier != 0) {
    s.attention_factor /= YarnAttentionFactor(s.factor, log_multiplier);
  }
  HEARTH_ASSIGN(const double extension,
                in.file.Float(in.Key("rope.scaling.yarn_ext_factor"), 1));
  if ((log_multiplier != 0 && !reads_it) ||
      (extension != 1 && extension != -1)) {
    return Unsupported(in,
                       "yarn with yarn_log_multiplier or yarn_ext_factor is "
                       "not supported");
  }
  return {};
}

// By rope.scaling.type, or by the tensors of longrope.
Result<void> ReadScaling(const GgufInput& in, const Family& family) {
  RopeScaling& s = in.config.rope.scaling;
  // A factor without a type is linear; the older key says so in its name.
  HEARTH_ASSIGN(const double old_factor,
                in.file.Float(in.Key("rope.scale_linear"), 1));
  HEARTH_ASSIGN(s.factor,
                in.file.Float(in.Key("rope.scaling.factor"), old_factor));
  HEARTH_ASSIGN(s.original_context,
                in.file.Float(in.Key("rope.scaling.original_context_length"),
                              static_cast<double>(in.config.context_length)));
  HEARTH_ASSIGN(const double attention_factor,
                in.file.Float(in.Key("rope.scaling.attn_factor"), 1));
  HEARTH_ASSIGN(const std::string_view type,
                in.file.Text(in.Key("rope.scaling.type"), "linear"));
  if (in.tensors.Has(WeightName(kGgufNames, Role::kRopeLong))) {
    // Whatever the type is called: files say longrope, su, or nothing.
    HEARTH_TRY(ReadLongrope(in, attention_factor));
  } else if (type == "yarn") {
    HEARTH_TRY(ReadYarn(in, family, attention_factor));
  } else if (type == "linear") {
    // 0 is written for "not scaled".
    if (s.factor != 0 && s.factor != 1) s.kind = RopeScalingKind::kLinear;
  } else if (type != "none") {
    return Unsupported(in, "rope scaling type " + Quoted(type) +
                               " is not supported; supported are none, linear, "
                               "yarn, longrope with its tensors, and "
                               "rope_freqs.weight (llama3)");
  }
  if (attention_factor != 1 && s.attention_factor == 0) {
    return Unsupported(in, "key " + Quoted(in.Key("rope.scaling.attn_factor")) +
                               " is not supported with this scaling");
  }
  return {};
}

}  // namespace

Result<void> ReadGgufRope(const GgufInput& in, const Family& family) {
  RopeConfig& rope = in.config.rope;
  RopeScaling& s = rope.scaling;
  HEARTH_ASSIGN(rope.rotary_dim,
                GgufSize(in, "rope.dimension_count", in.config.head_dim));
  if (rope.rotary_dim == 0) {
    return {Code::kCorrupt,
            in.file.label() + ": key " +
                Quoted(in.Key("rope.dimension_count")) +
                " is 0, but models of this architecture rotate their heads"};
  }
  rope.interleaved = family.gguf_interleaved;
  HEARTH_ASSIGN(s.base, in.file.Float(in.Key("rope.freq_base"), 10000));
  HEARTH_TRY(ReadScaling(in, family));
  const std::string factors = WeightName(kGgufNames, Role::kRopeFactors);
  if (in.tensors.Has(factors)) {
    if (s.kind != RopeScalingKind::kNone) {
      return Unsupported(in, "tensor " + Quoted(factors) +
                                 " together with another rope scaling is not "
                                 "supported");
    }
    s.kind = RopeScalingKind::kFactors;
    HEARTH_ASSIGN(s.factors, RopeFactors(in, Role::kRopeFactors));
    UseProportional(s);
  }
  return BuildRope(rope, in.file.label());
}

}  // namespace hearth
