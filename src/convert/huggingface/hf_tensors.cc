#include "convert/huggingface/hf_tensors.h"

namespace hearth {
namespace {

struct GateUp {
  LinearRows gate, up;
};
GateUp GateUpOf(const MlpWeights& mlp) {
  if (mlp.gate_up.empty()) return {WholeRows(mlp.gate), WholeRows(mlp.up)};
  const std::int64_t n = mlp.gate_up.w.n_out / 2;
  if (!mlp.interleaved)
    return {CutRows(mlp.gate_up, 0, n), CutRows(mlp.gate_up, n, n)};
  const auto every_second = [&](std::int64_t first) {
    return LinearRows{{&mlp.gate_up}, n, [first](std::int64_t r) {
                        return LinearRows::Place{0, 2 * r + first};
                      }};
  };
  return {every_second(0), every_second(1)};
}
LinearRows Joined(const MlpWeights& mlp, bool interleaved) {
  GateUp both = GateUpOf(mlp);
  LinearRows stacked = StackedRows({both.gate, both.up});
  if (!interleaved) return stacked;
  const auto inner = stacked.at;
  stacked.at = [inner, n = stacked.n / 2](std::int64_t r) {
    return inner(r / 2 + (r % 2) * n);
  };
  return stacked;
}

}  // namespace

std::vector<HfTensor> HfTensorList::Run() {
  const Weights& w = model_.weights;
  embedding_.w = w.token_embedding;
  Matrix(WeightName(names_, Role::kTokenEmbedding), WholeRows(embedding_),
         false);
  if (!w.position_embedding.empty()) {
    Floats(WeightName(names_, Role::kPositionEmbedding), w.position_embedding,
           {U(c_.context_length), U(c_.d_model)});
  }
  if (c_.d_layer_input > 0) LayerEmbedding();
  for (std::size_t i = 0; i < w.layers.size(); ++i) {
    Layer(w.layers[i], static_cast<int>(i));
  }
  Norm(Role::kFinalNorm, 0, w.final_norm);
  if (!c_.tied_head) {
    Matrix(WeightName(names_, Role::kHead), WholeRows(w.head), false);
  }
  return std::move(out_);
}

void HfTensorList::Floats(std::string name, std::vector<float> values,
                          std::vector<std::uint64_t> shape) {
  out_.push_back({std::move(name), DType::kF32, std::move(shape),
                  [values = std::move(values)] {
                    const auto bytes = std::as_bytes(std::span(values));
                    return std::vector<std::byte>(bytes.begin(), bytes.end());
                  }});
}
void HfTensorList::Vector(std::string name, const std::vector<float>& values) {
  if (!values.empty()) {
    Floats(std::move(name), values, {values.size()});
  }
}
void HfTensorList::NormWeight(Role role, int layer, std::vector<float> weight) {
  for (float& x : weight) x -= plan_.norm_offset;
  Vector(WeightName(names_, role, layer), weight);
}
void HfTensorList::Norm(Role role, int layer, const NormWeights& norm) {
  NormWeight(role, layer, norm.weight);
  Vector(BiasName(names_, role, layer), norm.bias);
}

void HfTensorList::Matrix(std::string name, LinearRows rows, bool transposed) {
  std::vector<std::uint64_t> shape = {U(rows.n), U(rows.n_in())};
  if (transposed) std::swap(shape[0], shape[1]);
  const DType type = rows.type();
  out_.push_back({std::move(name), type, std::move(shape),
                  [rows = std::move(rows), transposed, type] {
                    return rows.Read(transposed, type);
                  }});
}
void HfTensorList::Layer(Role role, int layer, const LinearRows& rows,
                         int expert) {
  Matrix(WeightName(names_, role, layer, expert), rows, plan_.transposed);
  if (!rows.parts[0]->bias.empty()) {
    Vector(BiasName(names_, role, layer, expert), rows.Bias());
  }
}

void HfTensorList::Experts(Role role, int layer,
                           std::vector<LinearRows> experts) {
  if (NamesEachExpert(names_, role)) {
    for (std::size_t e = 0; e < experts.size(); ++e) {
      Layer(role, layer, experts[e], static_cast<int>(e));
    }
    return;
  }
  const LinearRows& first = experts[0];
  const bool transposed = plan_.experts_transposed;
  std::vector<std::uint64_t> shape = {experts.size(), U(first.n),
                                      U(first.n_in())};
  if (transposed) std::swap(shape[1], shape[2]);
  if (!first.parts[0]->bias.empty()) {
    std::vector<float> bias;
    for (const LinearRows& rows : experts) {
      const std::vector<float> one = rows.Bias();
      bias.insert(bias.end(), one.begin(), one.end());
    }
    Floats(BiasName(names_, role, layer), std::move(bias),
           {shape[0], U(first.n)});
  }
  const DType type = first.type();
  out_.push_back({WeightName(names_, role, layer), type, std::move(shape),
                  [experts = std::move(experts), transposed, type] {
                    std::vector<std::byte> all;
                    for (const LinearRows& rows : experts) {
                      const auto one = rows.Read(transposed, type);
                      all.insert(all.end(), one.begin(), one.end());
                    }
                    return all;
                  }});
}

void HfTensorList::Attention(const LayerWeights& w, int i) {
  if (c_.latent.kv_rank > 0) return Latent(w, i);
  const bool split = c_.rope.interleaved && !family_.hf_interleaved;
  const auto turned = [&](LinearRows rows) {
    return split ? HalfSplitRows(std::move(rows), c_.HeadDim(i),
                                 c_.rope.rotary_dim)
                 : rows;
  };
  if (!c_.OwnsKv(i)) {
    Layer(Role::kCrossQ, i, turned(WholeRows(w.q)));
  } else if (w.v.empty() && w.qkv.empty()) {
    Layer(Role::kQ, i, turned(WholeRows(w.q)));
    Layer(Role::kK, i, turned(WholeRows(w.k)));
  } else {
    auto [q, k, v] = RowsOfQkv(w, c_);
    q = turned(std::move(q));
    k = turned(std::move(k));
    if (plan_.fused_qkv) {
      Layer(Role::kQkv, i, StackedRows({q, k, v}));
    } else {
      Layer(Role::kQ, i, q);
      Layer(Role::kK, i, k);
      Layer(Role::kV, i, v);
    }
  }
  NormWeight(Role::kQNorm, i, w.q_norm);
  NormWeight(Role::kKNorm, i, w.k_norm);
  Vector(Role::kSinks, i, w.sinks);
  Layer(Role::kO, i, WholeRows(w.o));
}

void HfTensorList::Dense(const MlpWeights& mlp, int i) {
  if (!IsGated(c_.mlp)) {
    Layer(Role::kUp, i, WholeRows(mlp.up));
  } else if (plan_.fused_gate_up) {
    Layer(Role::kGateUp, i, Joined(mlp, plan_.interleaved_gate_up));
  } else {
    const GateUp both = GateUpOf(mlp);
    Layer(Role::kGate, i, both.gate);
    Layer(Role::kUp, i, both.up);
  }
  Layer(Role::kDown, i, WholeRows(mlp.down));
}

// Never transposed.
void HfTensorList::Router(const LayerWeights& w, int i) {
  Matrix(WeightName(names_, Role::kRouter, i), WholeRows(w.router), false);
  Vector(BiasName(names_, Role::kRouter, i), w.router.bias);
  Vector(Role::kRouterScale, i, w.router_scale);
  Vector(Role::kRouterBias, i, w.router_bias);
  Vector(Role::kExpertScales, i, w.expert_scales);
}

void HfTensorList::MixtureOfExperts(const LayerWeights& w, int i) {
  Router(w, i);
  const auto each = [&](auto rows_of) {
    std::vector<LinearRows> all;
    for (const MlpWeights& e : w.experts) all.push_back(rows_of(e));
    return all;
  };
  if (!IsGated(c_.mlp)) {
    Experts(Role::kExpertUp, i,
            each([](const MlpWeights& e) { return WholeRows(e.up); }));
  } else if (plan_.fused_expert_gate_up) {
    Experts(Role::kExpertGateUp, i, each([&](const MlpWeights& e) {
              return Joined(e, plan_.interleaved_gate_up);
            }));
  } else {
    Experts(Role::kExpertGate, i,
            each([](const MlpWeights& e) { return GateUpOf(e).gate; }));
    Experts(Role::kExpertUp, i,
            each([](const MlpWeights& e) { return GateUpOf(e).up; }));
  }
  Experts(Role::kExpertDown, i,
          each([](const MlpWeights& e) { return WholeRows(e.down); }));
  if (c_.d_shared_expert > 0) SharedExpert(w, i);
  Norm(Role::kDensePostNorm, i, w.dense_post_norm);
  Norm(Role::kExpertsNorm, i, w.experts_norm);
  Norm(Role::kExpertsPostNorm, i, w.experts_post_norm);
}

void HfTensorList::SharedExpert(const LayerWeights& w, int i) {
  const MlpWeights& shared = w.shared_expert;
  if (!IsGated(c_.mlp)) {
    Layer(Role::kSharedUp, i, WholeRows(shared.up));
  } else if (plan_.fused_shared_gate_up) {
    Layer(Role::kSharedGateUp, i, Joined(shared, false));
  } else {
    const GateUp both = GateUpOf(shared);
    Layer(Role::kSharedGate, i, both.gate);
    Layer(Role::kSharedUp, i, both.up);
  }
  Layer(Role::kSharedDown, i, WholeRows(shared.down));
  if (c_.shared_expert_gate) {
    Layer(Role::kSharedExpertGate, i, WholeRows(w.shared_expert_gate));
  }
}

void HfTensorList::FeedForward(const LayerWeights& w, int i) {
  if (c_.HasDense(i)) Dense(w.mlp, i);
  if (c_.HasExperts(i)) MixtureOfExperts(w, i);
}

void HfTensorList::Layer(const LayerWeights& w, int i) {
  const Mixer mixer = c_.KindOf(i).mixer;
  Norm(Role::kAttentionNorm, i, w.attention_norm);
  if (mixer == Mixer::kShortConv) ShortConv(w.short_conv, i);
  if (mixer == Mixer::kDeltaNet) DeltaNet(w.delta_net, i);
  if (HasMamba2(mixer)) Mamba2(w.mamba2, i);
  if (Attends(mixer)) Attention(w, i);
  Norm(Role::kPostAttentionNorm, i, w.post_attention_norm);
  Norm(Role::kMlpNorm, i, w.mlp_norm);
  FeedForward(w, i);
  Norm(Role::kPostMlpNorm, i, w.post_mlp_norm);
  if (c_.d_layer_input > 0) {
    Layer(Role::kInputGate, i, WholeRows(w.input.gate));
    Layer(Role::kInputUp, i, WholeRows(w.input.up));
    Norm(Role::kInputNorm, i, w.input.norm);
  }
  if (plan_.layer_scale) {
    Vector(Role::kLayerScale, i,
           w.scale.empty() ? std::vector<float>{1.0f} : w.scale);
  }
}

}  // namespace hearth
