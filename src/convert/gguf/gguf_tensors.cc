#include "convert/gguf/gguf_tensors.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "formats/rope_scaling.h"
#include "kernels/kernels.h"

namespace hearth {
namespace {

using RowOrder = GgufTensorList::RowOrder;

// Rows of a kInOut matrix lie across it: some of them are gathered at a time,
// so that each pass over the inputs serves all of them.
Result<void> WriteColumns(const WeightMatrix& w, std::int64_t n_rows,
                          const RowOrder& order, const GgufSink& sink) {
  constexpr std::int64_t kBatch = 64;
  const auto size = static_cast<std::size_t>(InfoOf(w.dtype).block_bytes);
  std::vector<std::byte> batch;
  for (std::int64_t first = 0; first < n_rows; first += kBatch) {
    const std::int64_t n = std::min(kBatch, n_rows - first);
    batch.resize(static_cast<std::size_t>(n * w.n_in) * size);
    for (std::int64_t k = 0; k < w.n_in; ++k) {
      for (std::int64_t j = 0; j < n; ++j) {
        std::copy_n(
            w.data +
                static_cast<std::size_t>(k * w.n_out + order(first + j)) * size,
            size,
            batch.data() + static_cast<std::size_t>(j * w.n_in + k) * size);
      }
    }
    HEARTH_TRY(sink(batch));
  }
  return {};
}

// From half-split to interleaved rotary pairs: within each head, rows i and i +
// rotary_dim / 2 become neighbours.
std::int64_t Interleaved(std::int64_t row, std::int64_t head_dim,
                         std::int64_t rotary_dim) {
  const std::int64_t i = row % head_dim;
  if (i >= rotary_dim) return row;
  return row - i + i / 2 + (i % 2) * (rotary_dim / 2);
}

}  // namespace

std::size_t GgufRowBytes(DType dtype, std::int64_t n) {
  return static_cast<std::size_t>(
      *BytesOf(dtype, static_cast<std::uint64_t>(n)));
}

Result<void> WriteGgufRows(const WeightMatrix& w, std::int64_t n_rows,
                           const RowOrder& order, const GgufSink& sink) {
  if (w.layout == WeightLayout::kInOut) {
    return WriteColumns(w, n_rows, order, sink);
  }
  const std::size_t bytes = GgufRowBytes(w.dtype, w.n_in);
  for (std::int64_t r = 0; r < n_rows; ++r) {
    HEARTH_TRY(
        sink({w.data + static_cast<std::size_t>(order(r)) * bytes, bytes}));
  }
  return {};
}

GgufTensorList::GgufTensorList(const LoadedModel& model, const Family& family)
    : model_(model),
      config_(model.config),
      family_(family),
      names_(family.gguf_names) {
  permute_ = family.gguf_interleaved && !config_.rope.interleaved;
}

std::vector<GgufTensorSource> GgufTensorList::Run() {
  const Weights& w = model_.weights;
  Linear embedding;
  embedding.w = w.token_embedding;
  AddLinear(Role::kTokenEmbedding, 0, embedding, Same,
            Folded(config_.embedding_scale));
  if (!w.position_embedding.empty()) {
    AddFloats(Name(Role::kPositionEmbedding, 0), w.position_embedding,
              {U(config_.context_length), U(config_.d_model)});
  }
  AddRopeFactors();
  if (config_.d_layer_input > 0) AddLayerEmbedding();
  for (std::size_t i = 0; i < w.layers.size(); ++i) {
    AddLayer(w.layers[i], static_cast<int>(i));
  }
  AddNorm(Role::kFinalNorm, 0, w.final_norm);
  if (!config_.tied_head) {
    AddLinear(Role::kHead, 0, w.head, Same, Folded(config_.logit_scale));
  }
  return std::move(out_);
}

void GgufTensorList::AddFloats(std::string name, std::vector<float> values,
                               std::vector<std::uint64_t> shape) {
  const auto kept =
      std::make_shared<const std::vector<float>>(std::move(values));
  out_.push_back({std::move(name), DType::kF32, std::move(shape),
                  [kept](const GgufSink& sink) {
                    return sink(std::as_bytes(std::span(*kept)));
                  }});
}
void GgufTensorList::AddFloats(std::string name,
                               const std::vector<float>& values) {
  if (!values.empty()) {
    AddFloats(std::move(name), values, {U(std::ssize(values))});
  }
}

void GgufTensorList::AddMatrix(std::string name, const WeightMatrix& w,
                               RowOrder order) {
  out_.push_back({std::move(name),
                  w.dtype,
                  {U(w.n_out), U(w.n_in)},
                  [w, order = std::move(order)](const GgufSink& sink) {
                    return WriteGgufRows(w, w.n_out, order, sink);
                  }});
}

void GgufTensorList::AddScaled(std::string name, const WeightMatrix& w,
                               RowOrder order, RowScale scale) {
  out_.push_back({std::move(name),
                  DType::kF32,
                  {U(w.n_out), U(w.n_in)},
                  [w, order = std::move(order), scale = std::move(scale)](
                      const GgufSink& sink) -> Result<void> {
                    std::vector<float> row(static_cast<std::size_t>(w.n_in));
                    for (std::int64_t r = 0; r < w.n_out; ++r) {
                      ActiveKernels().dequantize_row(w, order(r), row.data());
                      for (float& x : row) x *= scale(r);
                      HEARTH_TRY(sink(std::as_bytes(std::span(row))));
                    }
                    return {};
                  }});
}

void GgufTensorList::AddLinear(Role role, int layer, const Linear& linear,
                               const RowOrder& order, float scale) {
  if (linear.empty()) return;
  if (scale == 1.0f) {
    AddMatrix(Name(role, layer), linear.w, order);
  } else {
    AddScaled(Name(role, layer), linear.w, order,
              [scale](std::int64_t) { return scale; });
  }
  std::vector<float> bias(linear.bias.size());
  for (std::size_t i = 0; i < bias.size(); ++i) {
    bias[i] = scale * linear.bias[static_cast<std::size_t>(
                          order(static_cast<std::int64_t>(i)))];
  }
  AddFloats(BiasName(names_, role, layer), bias);
}

void GgufTensorList::AddNorm(Role role, int layer, const NormWeights& norm) {
  AddFloats(Name(role, layer), norm.weight);
  AddFloats(BiasName(names_, role, layer), norm.bias);
}

void GgufTensorList::AddExperts(Role role, int layer,
                                const std::vector<const Linear*>& experts,
                                std::int64_t n_out, const RowOrder& order) {
  if (experts[0]->empty()) return;
  const WeightMatrix& first = experts[0]->w;
  const auto n = U(std::ssize(experts));
  out_.push_back(
      {Name(role, layer),
       first.dtype,
       {n, U(n_out), U(first.n_in)},
       [experts, n_out, order](const GgufSink& sink) -> Result<void> {
         for (const Linear* expert : experts) {
           HEARTH_TRY(WriteGgufRows(expert->w, n_out, order, sink));
         }
         return {};
       }});
  if (experts[0]->bias.empty()) return;
  std::vector<float> bias;
  for (const Linear* expert : experts) {
    for (std::int64_t i = 0; i < n_out; ++i) {
      bias.push_back(expert->bias[static_cast<std::size_t>(order(i))]);
    }
  }
  AddFloats(BiasName(names_, role, layer), std::move(bias), {n, U(n_out)});
}

void GgufTensorList::AddDense(const MlpWeights& mlp, int i) {
  const PartScales& scales = config_.part_scales;
  AddLinear(Role::kGate, i, mlp.gate, Same, Folded(scales.mlp_gate));
  AddLinear(Role::kUp, i, mlp.up);
  // In GGUF two tensors where the family has no one for both.
  const bool both = !mlp.gate_up.empty();
  if (both && family_.gguf_splits_gate_up) {
    const std::int64_t n = mlp.gate_up.w.n_out / 2;
    AddRows(Role::kGate, i, CutRows(mlp.gate_up, 0, n));
    AddRows(Role::kUp, i, CutRows(mlp.gate_up, n, n));
  } else {
    AddLinear(Role::kGateUp, i, mlp.gate_up);
  }
  AddLinear(Role::kDown, i, mlp.down, Same, Folded(scales.mlp_down));
}

void GgufTensorList::AddSharedExpert(const LayerWeights& w, int i) {
  const MlpWeights& shared = w.shared_expert;
  AddLinear(Role::kSharedGate, i, shared.gate);
  AddLinear(Role::kSharedUp, i, shared.up);
  if (!shared.gate_up.empty()) {
    const std::int64_t n = shared.gate_up.w.n_out / 2;
    AddRows(Role::kSharedGate, i, CutRows(shared.gate_up, 0, n));
    AddRows(Role::kSharedUp, i, CutRows(shared.gate_up, n, n));
  }
  AddLinear(Role::kSharedDown, i, shared.down);
  AddLinear(Role::kSharedExpertGate, i, w.shared_expert_gate);
}

void GgufTensorList::AddMixture(const LayerWeights& w, int i) {
  AddLinear(Role::kRouter, i, w.router);
  AddFloats(Name(Role::kRouterScale, i), w.router_scale);
  AddFloats(Name(Role::kRouterBias, i), w.router_bias);
  const auto each = [&](Linear MlpWeights::*member) {
    std::vector<const Linear*> all;
    for (const MlpWeights& e : w.experts) all.push_back(&(e.*member));
    return all;
  };
  const std::int64_t width = config_.d_expert;
  if (w.experts[0].gate_up.empty()) {
    AddExperts(Role::kExpertGate, i, each(&MlpWeights::gate), width);
    AddExperts(Role::kExpertUp, i, each(&MlpWeights::up), width);
  } else {
    const bool pairs = w.experts[0].interleaved;
    const auto both = each(&MlpWeights::gate_up);
    AddExperts(Role::kExpertGate, i, both, width,
               [pairs](std::int64_t r) { return pairs ? 2 * r : r; });
    AddExperts(Role::kExpertUp, i, both, width, [pairs, width](std::int64_t r) {
      return pairs ? 2 * r + 1 : r + width;
    });
  }
  AddExperts(Role::kExpertDown, i, each(&MlpWeights::down), config_.d_model);
  AddFloats(Name(Role::kExpertScales, i), w.expert_scales);
  AddSharedExpert(w, i);
  AddNorm(Role::kDensePostNorm, i, w.dense_post_norm);
  AddNorm(Role::kExpertsNorm, i, w.experts_norm);
  AddNorm(Role::kExpertsPostNorm, i, w.experts_post_norm);
}

void GgufTensorList::AddRows(Role role, int layer, LinearRows rows) {
  const Linear& first = *rows.parts[0];
  const std::size_t bytes = GgufRowBytes(first.w.dtype, rows.n_in());
  out_.push_back(
      {Name(role, layer),
       first.w.dtype,
       {U(rows.n), U(rows.n_in())},
       [rows = std::move(rows), bytes](const GgufSink& sink) -> Result<void> {
         for (std::int64_t r = 0; r < rows.n; ++r) {
           const LinearRows::Place place = rows.at(r);
           HEARTH_TRY(sink({rows.parts[place.part]->w.data +
                                static_cast<std::size_t>(place.row) * bytes,
                            bytes}));
         }
         return {};
       }});
}

void GgufTensorList::AddAttention(const LayerWeights& w, int i) {
  const std::int64_t head_dim = config_.HeadDim(i);
  const std::int64_t rotary_dim = config_.rope.rotary_dim;
  const RowOrder rotated =
      permute_ ? RowOrder([head_dim, rotary_dim](std::int64_t row) {
        return Interleaved(row, head_dim, rotary_dim);
      })
               : RowOrder(Same);
  // Keys alone carry what the scale of scores is beyond the usual one.
  const auto usual =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
  const float keys = Folded(config_.attention_scale / usual);
  AddLinear(config_.latent.q_rank > 0 ? Role::kQUp : Role::kQ, i, w.q, rotated);
  AddLinear(Role::kK, i, w.k, rotated, keys);
  AddLinear(Role::kV, i, w.v);
  AddLinear(Role::kQkv, i, w.qkv);
  if (config_.latent.kv_rank > 0) AddLatent(w.latent, i);
  AddFloats(Name(Role::kQNorm, i), w.q_norm);
  AddFloats(Name(Role::kKNorm, i), w.k_norm);
  AddFloats(Name(Role::kSinks, i), w.sinks);
  AddLinear(Role::kO, i, w.o, Same, Folded(config_.part_scales.attention_out));
}

void GgufTensorList::AddLayer(const LayerWeights& w, int i) {
  const Mixer mixer = config_.KindOf(i).mixer;
  AddNorm(Role::kAttentionNorm, i, w.attention_norm);
  if (mixer == Mixer::kShortConv) AddShortConv(w.short_conv, i);
  if (mixer == Mixer::kDeltaNet) AddDeltaNet(w.delta_net, i);
  if (HasMamba2(mixer)) AddMamba2(w.mamba2, i);
  if (Attends(mixer)) AddAttention(w, i);
  AddNorm(Role::kPostAttentionNorm, i, w.post_attention_norm);
  AddNorm(Role::kMlpNorm, i, w.mlp_norm);
  if (config_.HasDense(i)) AddDense(w.mlp, i);
  if (config_.HasExperts(i)) AddMixture(w, i);
  AddNorm(Role::kPostMlpNorm, i, w.post_mlp_norm);
  AddLinear(Role::kInputGate, i, w.input.gate);
  AddLinear(Role::kInputUp, i, w.input.up);
  AddNorm(Role::kInputNorm, i, w.input.norm);
  AddFloats(Name(Role::kLayerScale, i), w.scale);
}

void GgufTensorList::AddRopeFactors() {
  const RopeScaling& s = config_.rope.scaling;
  switch (s.kind) {
    case RopeScalingKind::kFactors:
      AddFloats(Name(Role::kRopeFactors, 0), s.factors);
      break;
    case RopeScalingKind::kProportional:
      AddFloats(Name(Role::kRopeFactors, 0),
                ProportionalFactors(s, config_.rope.rotary_dim));
      break;
    case RopeScalingKind::kLlama3: {
      // The divisors that lead from the plain frequencies to these.
      std::vector<float> factors;
      for (std::size_t i = 0; i < config_.rope.inv_freq.size(); ++i) {
        const double plain = std::pow(
            s.base, -2.0 * static_cast<double>(i) / config_.rope.rotary_dim);
        factors.push_back(
            static_cast<float>(plain / double{config_.rope.inv_freq[i]}));
      }
      AddFloats(Name(Role::kRopeFactors, 0), factors);
      break;
    }
    case RopeScalingKind::kLongrope:
      AddFloats(Name(Role::kRopeLong, 0), s.long_factors);
      AddFloats(Name(Role::kRopeShort, 0), s.factors);
      break;
    default:
      break;
  }
}

}  // namespace hearth
