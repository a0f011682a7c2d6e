// Weights of attention.
#include <utility>

#include "formats/assemble/assembler.h"
#include "tensor/dtype.h"

namespace hearth {
namespace {

// Rows [first, first + n) of a matrix that lies row by row.
WeightMatrix RowsOf(const WeightMatrix& w, std::int64_t first, std::int64_t n) {
  WeightMatrix rows = w;
  rows.n_out = n;
  rows.data += *BytesOf(w.dtype, static_cast<std::uint64_t>(first * w.n_in));
  return rows;
}

WeightMatrix Transposed(WeightMatrix w) {
  std::swap(w.n_out, w.n_in);
  w.layout = WeightLayout::kInOut;
  return w;
}

}  // namespace

Result<void> Assembler::AddAttention(int i, LayerWeights& w) const {
  if (config.latent.kv_rank > 0) return AddLatent(i, w);
  const std::int64_t d = config.d_model;
  const std::int64_t head_dim = config.HeadDim(i);
  const std::int64_t d_q = std::int64_t{config.n_heads} * head_dim;
  const std::int64_t d_kv = std::int64_t{config.KvHeads(i)} * head_dim;
  const bool whole = config.qk_norm == QkNorm::kWhole;
  if (!config.OwnsKv(i)) {
    HEARTH_ASSIGN(w.q, LinearLayer(Role::kCrossQ, i, d_q, d, plan.qkv_bias));
    HEARTH_ASSIGN(w.o, LinearLayer(Role::kCrossO, i, d, d_q, plan.o_bias));
    if (config.kv_anchor < 0 && config.qk_norm != QkNorm::kNone) {
      HEARTH_ASSIGN(w.q_norm,
                    NormWeight(Role::kQNorm, i, whole ? d_q : head_dim));
    }
    // Some files have what nobody attends to.
    for (const Role unused : {Role::kK, Role::kV, Role::kKNorm}) {
      if (config.kv_anchor < 0) tensors.MarkUsed(WeightName(names, unused, i));
    }
    return {};
  }
  if (plan.fused_qkv) {
    HEARTH_ASSIGN(w.qkv,
                  LinearLayer(Role::kQkv, i, d_q + 2 * d_kv, d, plan.qkv_bias));
  } else {
    HEARTH_ASSIGN(
        w.q, LinearLayer(Role::kQ, i, config.attention_gate ? 2 * d_q : d_q, d,
                         plan.qkv_bias));
    HEARTH_ASSIGN(w.k, LinearLayer(Role::kK, i, d_kv, d, plan.qkv_bias));
    if (!config.KindOf(i).values_from_keys) {
      HEARTH_ASSIGN(w.v, LinearLayer(Role::kV, i, d_kv, d, plan.qkv_bias));
    }
  }
  if (config.qk_norm != QkNorm::kNone) {
    HEARTH_ASSIGN(w.q_norm,
                  NormWeight(Role::kQNorm, i, whole ? d_q : head_dim));
    HEARTH_ASSIGN(w.k_norm,
                  NormWeight(Role::kKNorm, i, whole ? d_kv : head_dim));
  }
  if (config.attention_sinks) {
    const std::uint64_t shape[] = {static_cast<std::uint64_t>(config.n_heads)};
    HEARTH_ASSIGN(w.sinks,
                  tensors.Floats(WeightName(names, Role::kSinks, i), shape));
  }
  HEARTH_ASSIGN(w.o, LinearLayer(Role::kO, i, d, d_q, plan.o_bias));
  return {};
}

Result<void> Assembler::AddLatent(int i, LayerWeights& w) const {
  const LatentShape& shape = config.latent;
  const std::int64_t d = config.d_model, n = config.n_heads;
  const std::int64_t d_q = n * shape.query_dim();
  if (shape.q_rank > 0) {
    HEARTH_ASSIGN(w.latent.q_down,
                  LinearLayer(Role::kQDown, i, shape.q_rank, d, false));
    HEARTH_ASSIGN(w.latent.q_norm,
                  NormWeight(Role::kQDownNorm, i, shape.q_rank));
    HEARTH_ASSIGN(w.q, LinearLayer(Role::kQUp, i, d_q, shape.q_rank, false));
  } else {
    HEARTH_ASSIGN(w.q, LinearLayer(Role::kQ, i, d_q, d, false));
  }
  HEARTH_ASSIGN(w.latent.kv_down,
                LinearLayer(Role::kKvDown, i, shape.kept_dim(), d, false));
  HEARTH_ASSIGN(w.latent.kv_norm,
                NormWeight(Role::kKvDownNorm, i, shape.kv_rank));
  HEARTH_TRY(AddLatentHeads(i, w.latent));
  HEARTH_ASSIGN(w.o, LinearLayer(Role::kO, i, d, n * shape.value_dim, false));
  return {};
}

Result<void> Assembler::AddLatentHeads(int i, LatentWeights& w) const {
  const LatentShape& shape = config.latent;
  const std::int64_t n = config.n_heads;
  if (!plan.fused_latent) {
    HEARTH_ASSIGN(const std::vector<WeightMatrix> keys,
                  tensors.Stack(WeightName(names, Role::kKeyHeads, i), n,
                                shape.kv_rank, shape.nope_dim, false));
    HEARTH_ASSIGN(const std::vector<WeightMatrix> values,
                  tensors.Stack(WeightName(names, Role::kValueHeads, i), n,
                                shape.value_dim, shape.kv_rank, false));
    for (const WeightMatrix& matrix : keys) w.keys.push_back({matrix, {}});
    for (const WeightMatrix& matrix : values) w.values.push_back({matrix, {}});
    return {};
  }
  // Of each head: what makes its keys, transposed, then what makes its values.
  const std::int64_t rows = shape.nope_dim + shape.value_dim;
  const std::string name = WeightName(names, Role::kKvUp, i);
  HEARTH_ASSIGN(const WeightMatrix all,
                tensors.Linear(name, n * rows, shape.kv_rank));
  if (IsBlockQuantised(all.dtype)) {
    return {Code::kUnsupported,
            tensors.label() + ": tensor " + name +
                " is quantised along the numbers that queries are summed over; "
                "get a file that has attn_k_b and attn_v_b instead"};
  }
  for (std::int64_t h = 0; h < n; ++h) {
    w.keys.push_back({Transposed(RowsOf(all, h * rows, shape.nope_dim)), {}});
    w.values.push_back(
        {RowsOf(all, h * rows + shape.nope_dim, shape.value_dim), {}});
  }
  return {};
}

}  // namespace hearth
