#include "convert/huggingface/hf_export.h"

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "convert/delta_net_rows.h"
#include "convert/linear_rows.h"
#include "convert/stream_writer.h"

namespace hearth {
namespace {

std::uint64_t U(std::int64_t n) { return static_cast<std::uint64_t>(n); }

// --- Gate and up
// --------------------------------------------------------------
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

// --- The file ----------------------------------------------------------------
struct HfTensor {
  std::string name;
  DType type;
  std::vector<std::uint64_t> shape;
  std::function<std::vector<std::byte>()> read;

  std::uint64_t bytes() const {
    std::uint64_t n = static_cast<std::uint64_t>(InfoOf(type).block_bytes);
    for (const std::uint64_t d : shape) n *= d;
    return n;
  }
};

class TensorList {
 public:
  TensorList(const LoadedModel& model, const HfDescription& description)
      : model_(model),
        c_(model.config),
        family_(*description.family),
        names_(description.family->hf_names),
        plan_(description.plan) {}

  std::vector<HfTensor> Run() {
    const Weights& w = model_.weights;
    embedding_.w = w.token_embedding;
    Matrix(WeightName(names_, Role::kTokenEmbedding), WholeRows(embedding_),
           false);
    if (!w.position_embedding.empty()) {
      Floats(WeightName(names_, Role::kPositionEmbedding), w.position_embedding,
             {U(c_.context_length), U(c_.d_model)});
    }
    for (std::size_t i = 0; i < w.layers.size(); ++i) {
      Layer(w.layers[i], static_cast<int>(i));
    }
    Norm(Role::kFinalNorm, 0, w.final_norm);
    if (!c_.tied_head) {
      Matrix(WeightName(names_, Role::kHead), WholeRows(w.head), false);
    }
    return std::move(out_);
  }

 private:
  void Floats(std::string name, std::vector<float> values,
              std::vector<std::uint64_t> shape) {
    out_.push_back({std::move(name), DType::kF32, std::move(shape),
                    [values = std::move(values)] {
                      const auto bytes = std::as_bytes(std::span(values));
                      return std::vector<std::byte>(bytes.begin(), bytes.end());
                    }});
  }
  void Vector(std::string name, const std::vector<float>& values) {
    if (!values.empty()) {
      Floats(std::move(name), values, {values.size()});
    }
  }
  void NormWeight(Role role, int layer, std::vector<float> weight) {
    for (float& x : weight) x -= plan_.norm_offset;
    Vector(WeightName(names_, role, layer), weight);
  }
  void Norm(Role role, int layer, const NormWeights& norm) {
    NormWeight(role, layer, norm.weight);
    Vector(BiasName(names_, role, layer), norm.bias);
  }

  void Matrix(std::string name, LinearRows rows, bool transposed) {
    std::vector<std::uint64_t> shape = {U(rows.n), U(rows.n_in())};
    if (transposed) std::swap(shape[0], shape[1]);
    const DType type = rows.type();
    out_.push_back({std::move(name), type, std::move(shape),
                    [rows = std::move(rows), transposed, type] {
                      return rows.Read(transposed, type);
                    }});
  }
  void Layer(Role role, int layer, const LinearRows& rows, int expert = 0) {
    Matrix(WeightName(names_, role, layer, expert), rows, plan_.transposed);
    if (!rows.parts[0]->bias.empty()) {
      Vector(BiasName(names_, role, layer, expert), rows.Bias());
    }
  }

  // One matrix of every expert: a tensor each, or one for all.
  void Experts(Role role, int layer, std::vector<LinearRows> experts) {
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

  void Attention(const LayerWeights& w, int i) {
    auto [q, k, v] = RowsOfQkv(w, c_);
    if (c_.rope.interleaved && !family_.hf_interleaved) {
      q = HalfSplitRows(std::move(q), c_.head_dim, c_.rope.rotary_dim);
      k = HalfSplitRows(std::move(k), c_.head_dim, c_.rope.rotary_dim);
    }
    if (plan_.fused_qkv) {
      Layer(Role::kQkv, i, StackedRows({q, k, v}));
    } else {
      Layer(Role::kQ, i, q);
      Layer(Role::kK, i, k);
      Layer(Role::kV, i, v);
    }
    NormWeight(Role::kQNorm, i, w.q_norm);
    NormWeight(Role::kKNorm, i, w.k_norm);
    Vector(WeightName(names_, Role::kSinks, i), w.sinks);
    Layer(Role::kO, i, WholeRows(w.o));
  }

  void Dense(const MlpWeights& mlp, int i) {
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

  void MixtureOfExperts(const LayerWeights& w, int i) {
    // Never transposed.
    Matrix(WeightName(names_, Role::kRouter, i), WholeRows(w.router), false);
    Vector(BiasName(names_, Role::kRouter, i), w.router.bias);
    const auto each = [&](auto rows_of) {
      std::vector<LinearRows> all;
      for (const MlpWeights& e : w.experts) all.push_back(rows_of(e));
      return all;
    };
    if (plan_.fused_gate_up) {
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
    if (c_.d_shared_expert == 0) return;
    Layer(Role::kSharedGate, i, WholeRows(w.shared_expert.gate));
    Layer(Role::kSharedUp, i, WholeRows(w.shared_expert.up));
    Layer(Role::kSharedDown, i, WholeRows(w.shared_expert.down));
    Layer(Role::kSharedExpertGate, i, WholeRows(w.shared_expert_gate));
  }

  void Taps(Role role, int i, std::vector<float> by_channel) {
    const std::uint64_t n = by_channel.size() / U(c_.conv_taps);
    Floats(WeightName(names_, role, i), std::move(by_channel),
           {n, 1, U(c_.conv_taps)});
  }

  void ShortConv(const ShortConvWeights& w, int i) {
    Layer(Role::kShortConvIn, i, WholeRows(w.in));
    Taps(Role::kShortConvTaps, i, TapsByChannel(w.conv.taps, c_.d_model));
    Layer(Role::kShortConvOut, i, WholeRows(w.out));
  }

  // In groups, as every file of this form has it.
  void DeltaNet(const DeltaNetWeights& w, int i) {
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
    std::vector<float> logs = w.decay_log;
    if (logs.empty()) {
      for (const float x : w.decay_scale) {
        logs.push_back(static_cast<float>(std::log(-double{x})));
      }
    }
    Vector(WeightName(names_, Role::kDeltaScale, i), OfValueHeads(logs, order));
    Vector(BiasName(names_, Role::kDeltaBias, i),
           OfValueHeads(w.decay_bias, order));
    Vector(WeightName(names_, Role::kDeltaNorm, i), w.norm);
    ValueColumns(WeightName(names_, Role::kDeltaOut, i), WholeRows(w.out),
                 order);
  }

  // Whose columns are value_dim for each value head.
  void ValueColumns(std::string name, LinearRows rows, std::vector<int> order) {
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

  void Layer(const LayerWeights& w, int i) {
    Norm(Role::kAttentionNorm, i, w.attention_norm);
    switch (c_.KindOf(i).mixer) {
      case Mixer::kAttention:
        Attention(w, i);
        break;
      case Mixer::kShortConv:
        ShortConv(w.short_conv, i);
        break;
      case Mixer::kDeltaNet:
        DeltaNet(w.delta_net, i);
        break;
    }
    Norm(Role::kPostAttentionNorm, i, w.post_attention_norm);
    Norm(Role::kMlpNorm, i, w.mlp_norm);
    if (c_.n_experts > 0) {
      MixtureOfExperts(w, i);
    } else {
      Dense(w.mlp, i);
    }
    Norm(Role::kPostMlpNorm, i, w.post_mlp_norm);
  }

  const LoadedModel& model_;
  const ModelConfig& c_;
  const Family& family_;
  const NameScheme names_;
  const WeightPlan& plan_;
  Linear embedding_;
  std::vector<HfTensor> out_;
};

}  // namespace

Result<void> WriteHfTensors(const LoadedModel& model,
                            const HfDescription& description,
                            const std::string& path,
                            const WriteOptions& options) {
  TensorList list(model, description);
  const std::vector<HfTensor> tensors = list.Run();
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t offset = 0;
  for (const HfTensor& t : tensors) {
    const std::uint64_t end = offset + t.bytes();
    header[t.name] = {{"dtype", InfoOf(t.type).name},
                      {"shape", t.shape},
                      {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::vector<std::byte> length;
  AppendLe(length, std::uint64_t{text.size()});
  HEARTH_ASSIGN(StreamWriter file,
                StreamWriter::Create(path, options, {},
                                     length.size() + text.size() + offset));
  HEARTH_TRY(file.Append(length));
  HEARTH_TRY(file.Append(AsBytes(text)));
  for (const HfTensor& t : tensors) HEARTH_TRY(file.Append(t.read()));
  return file.Commit();
}

}  // namespace hearth
