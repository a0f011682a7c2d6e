#include "formats/families/hybrid/mamba2.h"

#include "formats/families/settings.h"

namespace hearth {

Result<void> GgufMamba2(const GgufInput& in, const NameScheme& names) {
  ModelConfig& c = in.config;
  Mamba2Shape& m = c.mamba2;
  HEARTH_ASSIGN(c.conv_taps, GgufSize(in, "ssm.conv_kernel", 4));
  HEARTH_ASSIGN(m.n_state, GgufSize(in, "ssm.state_size", 0));
  HEARTH_ASSIGN(m.n_groups, GgufSize(in, "ssm.group_count", 1));
  HEARTH_ASSIGN(m.n_heads, GgufSize(in, "ssm.time_step_rank", 0));
  HEARTH_ASSIGN(const int width, GgufSize(in, "ssm.inner_size", 0));
  if (m.n_heads > 0) m.head_dim = width / m.n_heads;
  for (int i = 0; i < static_cast<int>(c.layer_kinds.size()); ++i) {
    if (!HasMamba2(c.KindOf(i).mixer)) continue;
    in.plan.conv_bias = in.tensors.Has(BiasName(names, Role::kMambaTaps, i));
    m.norm = in.tensors.Has(WeightName(names, Role::kMambaNorm, i));
    break;
  }
  return {};
}

void WriteGgufMamba2(const ModelConfig& config, const GgufKeyWriter& key) {
  const Mamba2Shape& m = config.mamba2;
  key.size("ssm.conv_kernel", config.conv_taps);
  key.size("ssm.state_size", m.n_state);
  key.size("ssm.group_count", m.n_groups);
  key.size("ssm.time_step_rank", m.n_heads);
  key.size("ssm.inner_size", m.width());
}

Result<void> HfMamba2(const HfInput& in, const HfMamba2Keys& keys) {
  ModelConfig& c = in.config;
  Mamba2Shape& m = c.mamba2;
  in.plan.decay_is_log = true;
  HEARTH_ASSIGN(m.n_heads, HfSize(in, keys.n_heads));
  HEARTH_ASSIGN(m.head_dim, HfSize(in, keys.head_dim));
  HEARTH_ASSIGN(m.n_groups, HfSize(in, keys.n_groups, 1));
  HEARTH_ASSIGN(m.n_state, HfSize(in, keys.n_state));
  HEARTH_ASSIGN(c.conv_taps, HfSize(in, keys.taps, 4));
  HEARTH_TRY(HfRequire(in, keys.conv_bias, true));
  in.plan.conv_bias = true;
  HEARTH_TRY(HfRequire(in, "mamba_proj_bias", false));
  // Time steps are at least 0 as they are.
  const Json* limit = JsonFind(in.json, "time_step_limit");
  const bool none =
      limit == nullptr ||
      (limit->is_array() && limit->size() == 2 && (*limit)[0].is_number() &&
       (*limit)[0].get<double>() <= 0 &&
       (!(*limit)[1].is_number() || (*limit)[1].get<double>() > 1e30));
  if (!none) {
    return UnsupportedSetting(in.label,
                              "time_step_limit other than 0 to infinity");
  }
  return {};
}

void WriteHfMamba2(const ModelConfig& config, const HfMamba2Keys& keys,
                   Json& json) {
  const Mamba2Shape& m = config.mamba2;
  json[keys.n_heads] = m.n_heads;
  json[keys.head_dim] = m.head_dim;
  json[keys.n_groups] = m.n_groups;
  json[keys.n_state] = m.n_state;
  json[keys.taps] = config.conv_taps;
  json[keys.conv_bias] = true;
}

}  // namespace hearth
