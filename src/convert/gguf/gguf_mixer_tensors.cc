// Tensors of layers that mix tokens with something else than plain attention,
// and of tokens' second embeddings.
#include <cmath>
#include <utility>

#include "convert/delta_net_rows.h"
#include "convert/gguf/gguf_tensors.h"
#include "kernels/kernels.h"

namespace hearth {

void GgufTensorList::AddShortConv(const ShortConvWeights& w, int i) {
  AddLinear(Role::kShortConvIn, i, w.in);
  AddTaps(Role::kShortConvTaps, i, TapsByChannel(w.conv.taps, config_.d_model));
  AddLinear(Role::kShortConvOut, i, w.out);
}
void GgufTensorList::AddTaps(Role role, int i, std::vector<float> by_channel) {
  const std::uint64_t n = by_channel.size() / U(config_.conv_taps);
  AddFloats(Name(role, i), std::move(by_channel), {n, U(config_.conv_taps)});
}

void GgufTensorList::AddDeltaNet(const DeltaNetWeights& w, int i) {
  const DeltaNetShape& shape = config_.delta_net;
  const bool tiled = family_.gguf_tiled_delta_net;
  const std::vector<int> order = ValueHeadOrder(shape, tiled);
  const DeltaNetRows rows = RowsOfDeltaNet(w, shape, tiled);
  AddRows(Role::kDeltaQkv, i, rows.qkv);
  AddRows(Role::kDeltaGate, i, rows.gate);
  if (family_.gguf_fused_delta_rates) {
    AddRows(Role::kDeltaRateDecay, i, FusedRates(rows, shape));
  } else {
    AddRows(Role::kDeltaRate, i, rows.rate);
    AddRows(Role::kDeltaDecay, i, rows.decay);
  }
  AddTaps(Role::kDeltaTaps, i, TapsByChannel(w.conv.taps, shape, order));
  AddFloats(Name(Role::kDeltaScale, i), OfValueHeads(w.decay_scale, order));
  AddFloats(BiasName(names_, Role::kDeltaBias, i),
            OfValueHeads(w.decay_bias, order));
  AddFloats(Name(Role::kDeltaNorm, i), w.norm);
  AddValueColumns(Name(Role::kDeltaOut, i), w.out.w, order);
}

// Whose columns are value_dim for each value head.
void GgufTensorList::AddValueColumns(std::string name, const WeightMatrix& w,
                                     std::vector<int> order) {
  if (config_.delta_net.tiled == family_.gguf_tiled_delta_net)
    return AddMatrix(std::move(name), w, Same);
  const std::size_t row = GgufRowBytes(w.dtype, w.n_in);
  out_.push_back({std::move(name),
                  w.dtype,
                  {U(w.n_out), U(w.n_in)},
                  [w, row, order = std::move(order)](
                      const GgufSink& sink) -> Result<void> {
                    for (std::int64_t r = 0; r < w.n_out; ++r) {
                      HEARTH_TRY(sink(OfValueColumns(
                          w.data + static_cast<std::size_t>(r) * row,
                          row / order.size(), order)));
                    }
                    return {};
                  }});
}
void GgufTensorList::AddMamba2(const Mamba2Weights& w, int i) {
  const Mamba2Shape& shape = config_.mamba2;
  const std::int64_t width = shape.width();
  const std::int64_t groups = std::int64_t{shape.n_groups} * shape.n_state;
  const auto& scales = config_.part_scales.mamba;
  const bool scaled = scales != PartScales{}.mamba;
  if (scaled && family_.gguf_folded_scales) {
    AddScaled(Name(Role::kMambaIn, i), w.in.w, Same,
              [scales, width, groups](std::int64_t r) {
                std::size_t part = 0;
                for (const std::int64_t n : {width, width, groups, groups}) {
                  if (r < n) break;
                  r -= n;
                  ++part;
                }
                return scales[part];
              });
  } else {
    AddLinear(Role::kMambaIn, i, w.in);
  }
  AddTaps(Role::kMambaTaps, i, TapsByChannel(w.conv.taps, shape.n_channels()));
  AddFloats(BiasName(names_, Role::kMambaTaps, i), w.conv.bias);
  // Two-dimensional, as other programs expect them.
  AddFloats(Name(Role::kMambaScale, i), w.decay_scale, {U(shape.n_heads), 1});
  AddFloats(BiasName(names_, Role::kMambaStep, i), w.step_bias);
  AddFloats(Name(Role::kMambaSkip, i), w.skip, {U(shape.n_heads), 1});
  if (!w.norm.empty()) {
    AddFloats(Name(Role::kMambaNorm, i), w.norm,
              {U(shape.n_groups), U(width / shape.n_groups)});
  }
  AddLinear(Role::kMambaOut, i, w.out, Same,
            Folded(config_.part_scales.mamba_out));
}

// A matrix of each head; those that make keys transposed where the model's file
// has them the other way.
void GgufTensorList::AddLatent(const LatentWeights& w, int i) {
  AddLinear(Role::kQDown, i, w.q_down);
  AddFloats(Name(Role::kQDownNorm, i), w.q_norm);
  AddLinear(Role::kKvDown, i, w.kv_down);
  AddFloats(Name(Role::kKvDownNorm, i), w.kv_norm);
  for (const auto& [role, heads] : {std::pair(Role::kKeyHeads, &w.keys),
                                    std::pair(Role::kValueHeads, &w.values)}) {
    std::vector<const Linear*> all;
    for (const Linear& head : *heads) all.push_back(&head);
    AddExperts(role, i, all, all[0]->w.n_out);
  }
}

void GgufTensorList::AddLayerEmbedding() {
  const Weights& w = model_.weights;
  AddMatrix(Name(Role::kLayerEmbedding, 0), w.layer_embedding, Same);
  AddLinear(Role::kLayerProjection, 0, w.layer_projection);
  AddFloats(Name(Role::kLayerProjectionNorm, 0), w.layer_projection_norm);
}

}  // namespace hearth
