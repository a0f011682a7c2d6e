// Tensors of layers that mix tokens with something else than plain attention,
// and of tokens' second embeddings.
#include <cmath>
#include <cstring>
#include <utility>

#include "convert/delta_net_rows.h"
#include "convert/huggingface/hf_tensors.h"
#include "kernels/kernels.h"

namespace hearth {
namespace {

// A_log: what the file had, or else made from -exp(A_log).
std::vector<float> Logs(const std::vector<float>& logs,
                        const std::vector<float>& scales) {
  if (!logs.empty()) return logs;
  std::vector<float> made;
  for (const float x : scales) {
    made.push_back(static_cast<float>(std::log(-double{x})));
  }
  return made;
}

}  // namespace

void HfTensorList::Taps(Role role, int i, std::vector<float> by_channel) {
  const std::uint64_t n = by_channel.size() / U(c_.conv_taps);
  Floats(WeightName(names_, role, i), std::move(by_channel),
         {n, 1, U(c_.conv_taps)});
}

void HfTensorList::ShortConv(const ShortConvWeights& w, int i) {
  Layer(Role::kShortConvIn, i, WholeRows(w.in));
  Taps(Role::kShortConvTaps, i, TapsByChannel(w.conv.taps, c_.d_model));
  Layer(Role::kShortConvOut, i, WholeRows(w.out));
}

// In groups, as every file of this form has it.
void HfTensorList::DeltaNet(const DeltaNetWeights& w, int i) {
  const DeltaNetShape& shape = c_.delta_net;
  const std::vector<int> order = ValueHeadOrder(shape, /*tiled=*/false);
  const DeltaNetRows rows = RowsOfDeltaNet(w, shape, /*tiled=*/false);
  if (plan_.fused_delta_net) {
    Layer(Role::kDeltaQkvGate, i, FusedQkvGate(rows, shape));
  } else {
    Layer(Role::kDeltaQkv, i, rows.qkv);
    Layer(Role::kDeltaGate, i, rows.gate);
  }
  if (plan_.fused_delta_rates) {
    Layer(Role::kDeltaRateDecay, i, FusedRates(rows, shape));
  } else {
    Layer(Role::kDeltaRate, i, rows.rate);
    Layer(Role::kDeltaDecay, i, rows.decay);
  }
  Taps(Role::kDeltaTaps, i, TapsByChannel(w.conv.taps, shape, order));
  const std::vector<float> logs = Logs(w.decay_log, w.decay_scale);
  Vector(WeightName(names_, Role::kDeltaScale, i), OfValueHeads(logs, order));
  Vector(BiasName(names_, Role::kDeltaBias, i),
         OfValueHeads(w.decay_bias, order));
  Vector(WeightName(names_, Role::kDeltaNorm, i), w.norm);
  ValueColumns(WeightName(names_, Role::kDeltaOut, i), WholeRows(w.out), order);
}

// Whose columns are value_dim for each value head.
void HfTensorList::ValueColumns(std::string name, LinearRows rows,
                                std::vector<int> order) {
  Matrix(std::move(name), std::move(rows), false);
  HfTensor& made = out_.back();
  made.read = [inner = std::move(made.read), n_rows = made.shape[0],
               order = std::move(order)] {
    const std::vector<std::byte> all = inner();
    const std::size_t row = all.size() / n_rows;
    std::vector<std::byte> out;
    for (std::size_t at = 0; at < all.size(); at += row) {
      const auto one =
          OfValueColumns(all.data() + at, row / order.size(), order);
      out.insert(out.end(), one.begin(), one.end());
    }
    return out;
  };
}

void HfTensorList::Mamba2(const Mamba2Weights& w, int i) {
  Layer(Role::kMambaIn, i, WholeRows(w.in));
  Taps(Role::kMambaTaps, i, TapsByChannel(w.conv.taps, c_.mamba2.n_channels()));
  Vector(BiasName(names_, Role::kMambaTaps, i), w.conv.bias);
  Vector(Role::kMambaScale, i, Logs(w.decay_log, w.decay_scale));
  Vector(BiasName(names_, Role::kMambaStep, i), w.step_bias);
  Vector(Role::kMambaSkip, i, w.skip);
  Vector(Role::kMambaNorm, i, w.norm);
  Layer(Role::kMambaOut, i, WholeRows(w.out));
}

// Of each head what makes its keys, then what makes its values.
void HfTensorList::Latent(const LayerWeights& w, int i) {
  const LatentWeights& latent = w.latent;
  if (c_.latent.q_rank > 0) {
    Layer(Role::kQDown, i, WholeRows(latent.q_down));
    NormWeight(Role::kQDownNorm, i, latent.q_norm);
    Layer(Role::kQUp, i, WholeRows(w.q));
  } else {
    Layer(Role::kQ, i, WholeRows(w.q));
  }
  Layer(Role::kKvDown, i, WholeRows(latent.kv_down));
  NormWeight(Role::kKvDownNorm, i, latent.kv_norm);
  std::vector<LinearRows> keys, values;
  for (const Linear& head : latent.keys) keys.push_back(WholeRows(head));
  for (const Linear& head : latent.values) values.push_back(WholeRows(head));
  std::vector<LinearRows> all = keys;
  all.insert(all.end(), values.begin(), values.end());
  const DType type = StackedRows(all).type();
  const LatentShape& shape = c_.latent;
  out_.push_back(
      {WeightName(names_, Role::kKvUp, i),
       type,
       {U(c_.n_heads) * U(shape.nope_dim + shape.value_dim), U(shape.kv_rank)},
       [keys = std::move(keys), values = std::move(values), type] {
         std::vector<std::byte> bytes;
         for (std::size_t h = 0; h < keys.size(); ++h) {
           for (const auto& part :
                {keys[h].Read(/*transposed=*/true, type),
                 values[h].Read(/*transposed=*/false, type)}) {
             bytes.insert(bytes.end(), part.begin(), part.end());
           }
         }
         return bytes;
       }});
  Layer(Role::kO, i, WholeRows(w.o));
}

void HfTensorList::LayerEmbedding() {
  const Weights& w = model_.weights;
  layer_embedding_.w = w.layer_embedding;
  Matrix(WeightName(names_, Role::kLayerEmbedding), WholeRows(layer_embedding_),
         false);
  Layer(Role::kLayerProjection, 0, WholeRows(w.layer_projection));
  NormWeight(Role::kLayerProjectionNorm, 0, w.layer_projection_norm);
}

}  // namespace hearth
