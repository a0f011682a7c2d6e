#include "convert/gguf/gguf_export.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "convert/delta_net_rows.h"
#include "formats/families.h"

namespace hearth {
namespace {

// Row `i` of what is written is row order(i) of the matrix.
using RowOrder = std::function<std::int64_t(std::int64_t)>;

std::size_t RowBytes(DType dtype, std::int64_t n) {
  return static_cast<std::size_t>(
      *BytesOf(dtype, static_cast<std::uint64_t>(n)));
}

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

Result<void> WriteRows(const WeightMatrix& w, std::int64_t n_rows,
                       const RowOrder& order, const GgufSink& sink) {
  if (w.layout == WeightLayout::kInOut) {
    return WriteColumns(w, n_rows, order, sink);
  }
  const std::size_t bytes = RowBytes(w.dtype, w.n_in);
  for (std::int64_t r = 0; r < n_rows; ++r) {
    HEARTH_TRY(
        sink({w.data + static_cast<std::size_t>(order(r)) * bytes, bytes}));
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

std::int64_t Same(std::int64_t row) { return row; }

class Exporter {
 public:
  Exporter(const LoadedModel& model, const Family& family)
      : model_(model),
        config_(model.config),
        family_(family),
        names_(family.gguf_names) {
    permute_ = family.gguf_interleaved && !config_.rope.interleaved;
  }

  std::vector<GgufTensorSource> Run() {
    const Weights& w = model_.weights;
    AddMatrix(Name(Role::kTokenEmbedding, 0), w.token_embedding, Same);
    if (!w.position_embedding.empty()) {
      AddFloats(Name(Role::kPositionEmbedding, 0), w.position_embedding,
                {U(config_.context_length), U(config_.d_model)});
    }
    AddRopeFactors();
    for (std::size_t i = 0; i < w.layers.size(); ++i) {
      AddLayer(w.layers[i], static_cast<int>(i));
    }
    AddNorm(Role::kFinalNorm, 0, w.final_norm);
    if (!config_.tied_head) AddMatrix(Name(Role::kHead, 0), w.head.w, Same);
    return std::move(out_);
  }

 private:
  static std::uint64_t U(std::int64_t n) {
    return static_cast<std::uint64_t>(n);
  }
  std::string Name(Role role, int layer) const {
    return WeightName(names_, role, layer);
  }

  void AddFloats(std::string name, std::vector<float> values,
                 std::vector<std::uint64_t> shape) {
    const auto kept =
        std::make_shared<const std::vector<float>>(std::move(values));
    out_.push_back({std::move(name), DType::kF32, std::move(shape),
                    [kept](const GgufSink& sink) {
                      return sink(std::as_bytes(std::span(*kept)));
                    }});
  }
  void AddFloats(std::string name, const std::vector<float>& values) {
    if (!values.empty())
      AddFloats(std::move(name), values, {U(std::ssize(values))});
  }

  void AddMatrix(std::string name, const WeightMatrix& w, RowOrder order) {
    out_.push_back({std::move(name),
                    w.dtype,
                    {U(w.n_out), U(w.n_in)},
                    [w, order = std::move(order)](const GgufSink& sink) {
                      return WriteRows(w, w.n_out, order, sink);
                    }});
  }

  void AddLinear(Role role, int layer, const Linear& linear,
                 const RowOrder& order = Same) {
    if (linear.empty()) return;
    AddMatrix(Name(role, layer), linear.w, order);
    std::vector<float> bias(linear.bias.size());
    for (std::size_t i = 0; i < bias.size(); ++i) {
      bias[i] = linear.bias[static_cast<std::size_t>(
          order(static_cast<std::int64_t>(i)))];
    }
    AddFloats(BiasName(names_, role, layer), bias);
  }

  void AddNorm(Role role, int layer, const NormWeights& norm) {
    AddFloats(Name(role, layer), norm.weight);
    AddFloats(BiasName(names_, role, layer), norm.bias);
  }

  // One matrix of every expert in one tensor. `order` picks n_out rows of each.
  void AddExperts(Role role, int layer,
                  const std::vector<const Linear*>& experts, std::int64_t n_out,
                  const RowOrder& order = Same) {
    const WeightMatrix& first = experts[0]->w;
    const auto n = U(std::ssize(experts));
    out_.push_back(
        {Name(role, layer),
         first.dtype,
         {n, U(n_out), U(first.n_in)},
         [experts, n_out, order](const GgufSink& sink) -> Result<void> {
           for (const Linear* expert : experts) {
             HEARTH_TRY(WriteRows(expert->w, n_out, order, sink));
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

  void AddMlp(const LayerWeights& w, int i) {
    if (config_.n_experts == 0) {
      AddLinear(Role::kGate, i, w.mlp.gate);
      AddLinear(Role::kUp, i, w.mlp.up);
      AddLinear(Role::kGateUp, i, w.mlp.gate_up);
      AddLinear(Role::kDown, i, w.mlp.down);
      return;
    }
    AddLinear(Role::kRouter, i, w.router);
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
      AddExperts(Role::kExpertUp, i, both, width,
                 [pairs, width](std::int64_t r) {
                   return pairs ? 2 * r + 1 : r + width;
                 });
    }
    AddExperts(Role::kExpertDown, i, each(&MlpWeights::down), config_.d_model);
    AddLinear(Role::kSharedGate, i, w.shared_expert.gate);
    AddLinear(Role::kSharedUp, i, w.shared_expert.up);
    AddLinear(Role::kSharedDown, i, w.shared_expert.down);
    AddLinear(Role::kSharedExpertGate, i, w.shared_expert_gate);
  }

  void AddRows(Role role, int layer, LinearRows rows) {
    const Linear& first = *rows.parts[0];
    const std::size_t bytes = RowBytes(first.w.dtype, rows.n_in());
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

  void AddShortConv(const ShortConvWeights& w, int i) {
    AddLinear(Role::kShortConvIn, i, w.in);
    AddTaps(Role::kShortConvTaps, i,
            TapsByChannel(w.conv.taps, config_.d_model));
    AddLinear(Role::kShortConvOut, i, w.out);
  }
  void AddTaps(Role role, int i, std::vector<float> by_channel) {
    const std::uint64_t n = by_channel.size() / U(config_.conv_taps);
    AddFloats(Name(role, i), std::move(by_channel), {n, U(config_.conv_taps)});
  }

  void AddDeltaNet(const DeltaNetWeights& w, int i) {
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
  void AddValueColumns(std::string name, const WeightMatrix& w,
                       std::vector<int> order) {
    if (tiled_as_written()) return AddMatrix(std::move(name), w, Same);
    const std::size_t row = RowBytes(w.dtype, w.n_in);
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
  bool tiled_as_written() const {
    return config_.delta_net.tiled == family_.gguf_tiled_delta_net;
  }

  void AddLayer(const LayerWeights& w, int i) {
    const std::int64_t head_dim = config_.head_dim;
    const std::int64_t rotary_dim = config_.rope.rotary_dim;
    const RowOrder rotated =
        permute_ ? RowOrder([head_dim, rotary_dim](std::int64_t row) {
          return Interleaved(row, head_dim, rotary_dim);
        })
                 : RowOrder(Same);
    AddNorm(Role::kAttentionNorm, i, w.attention_norm);
    if (!w.short_conv.in.empty()) AddShortConv(w.short_conv, i);
    if (!w.delta_net.out.empty()) AddDeltaNet(w.delta_net, i);
    AddLinear(Role::kQ, i, w.q, rotated);
    AddLinear(Role::kK, i, w.k, rotated);
    AddLinear(Role::kV, i, w.v);
    AddLinear(Role::kQkv, i, w.qkv);
    AddFloats(Name(Role::kQNorm, i), w.q_norm);
    AddFloats(Name(Role::kKNorm, i), w.k_norm);
    AddFloats(Name(Role::kSinks, i), w.sinks);
    AddLinear(Role::kO, i, w.o);
    AddNorm(Role::kPostAttentionNorm, i, w.post_attention_norm);
    AddNorm(Role::kMlpNorm, i, w.mlp_norm);
    AddMlp(w, i);
    AddNorm(Role::kPostMlpNorm, i, w.post_mlp_norm);
  }

  void AddRopeFactors() {
    const RopeScaling& s = config_.rope.scaling;
    switch (s.kind) {
      case RopeScalingKind::kFactors:
        AddFloats(Name(Role::kRopeFactors, 0), s.factors);
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

  const LoadedModel& model_;
  const ModelConfig& config_;
  const Family& family_;
  const NameScheme names_;
  bool permute_ = false;
  std::vector<GgufTensorSource> out_;
};

}  // namespace

Result<const Family*> GgufFamilyOf(const LoadedModel& model) {
  const Family* family = FamilyNamed(model.config.architecture);
  const Family* in_gguf = family == nullptr ? nullptr
                          : family->gguf_architecture.empty()
                              ? FamilyNamed(family->gguf_form)
                              : family;
  if (in_gguf == nullptr) {
    // The nearest, gpt2, computes the tanh form of GELU.
    const bool from_scratch = model.config.architecture == "gpt";
    return {Code::kUnsupported,
            model.path + ": architecture " + model.config.architecture +
                " has no GGUF form" +
                (from_scratch ? ", since no family there has the exact GELU; "
                                "a Hugging Face directory can say it"
                              : "")};
  }
  return in_gguf;
}

Result<std::vector<GgufTensorSource>> GgufModelTensors(
    const LoadedModel& model) {
  HEARTH_ASSIGN(const Family* family, GgufFamilyOf(model));
  return Exporter(model, *family).Run();
}

Result<void> ExportGguf(const LoadedModel& model,
                        std::span<const GgufMetadata> tokenizer,
                        const std::string& path) {
  HEARTH_ASSIGN(std::vector<GgufMetadata> metadata, GgufModelMetadata(model));
  metadata.insert(metadata.end(), tokenizer.begin(), tokenizer.end());
  HEARTH_ASSIGN(const std::vector<GgufTensorSource> tensors,
                GgufModelTensors(model));
  return WriteGguf(path, metadata, tensors);
}

}  // namespace hearth
