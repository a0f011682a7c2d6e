#include "model/cpu/cpu_ops.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "base/check.h"
#include "kernels/kernels.h"
#include "model/cpu/attention.h"
#include "model/cpu/layer_input.h"
#include "model/cpu/linear.h"
#include "model/cpu/mixers/delta_net.h"
#include "model/cpu/mixers/mamba2.h"
#include "model/cpu/mixers/short_conv.h"
#include "model/cpu/mlp.h"
#include "model/cpu/projection.h"
#include "model/cpu/rotation.h"
#include "model/cpu/weight_shapes.h"
#include "model/embed_token.h"

namespace hearth {
namespace {

// Logits are many and their rows few: shared out in pieces of so many.
constexpr std::int64_t kLogitPiece = 16384;

std::size_t Size(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

bool Convolves(const LayerPlan& layer) {
  return layer.mixer == Mixer::kShortConv;
}

class CpuOps final : public Ops {
 public:
  CpuOps(const LoadedModel& model, ThreadPool& pool, LinearInputs* inputs)
      : model_(model),
        config_(model.config),
        pool_(pool),
        kernels_(ActiveKernels()),
        layers_(PlanLayers(model)),
        convolves_(std::any_of(layers_.begin(), layers_.end(), Convolves)),
        shapes_(DistinctShapes(model.weights)),
        linears_(pool, inputs),
        projection_(model.config, linears_, pool),
        rotation_(model.config, pool),
        attention_(model.config, pool),
        mlp_(model.config, linears_, pool),
        short_conv_(model.config, linears_, pool),
        delta_net_(model.config, linears_, pool),
        mamba2_(model.config, linears_, pool),
        layer_input_(model, linears_, pool) {}

  Numerics numerics() const override { return {}; }

  Result<StepRows> Reserve(const StepBatch& batch) override {
    const int n = batch.n_rows();
    StepRows rows = PlanRows(config_, layers_, n);
    for (const Rows* matrix : rows.All()) {
      HEARTH_TRY(BufferOf(*matrix).ReserveFloats(Size(n, matrix->width)));
    }
    HEARTH_TRY(projection_.Reserve(layers_, n));
    HEARTH_TRY(layer_input_.Reserve(n));
    if (convolves_) HEARTH_TRY(short_conv_.Reserve(n));
    HEARTH_TRY(delta_net_.Reserve(n));
    HEARTH_TRY(mamba2_.Reserve(n));
    HEARTH_TRY(linears_.Reserve(shapes_.matrices, n, shapes_.low_ranks));
    HEARTH_TRY(mlp_.Reserve(n));
    first_non_finite_.store(-1, std::memory_order_relaxed);
    TakeParts(batch);
    HEARTH_TRY(attention_.Reserve(layers_, parts_));
    return rows;
  }

  void Begin(const StepBatch& batch) override {
    batch_ = &batch;
    TakeParts(batch);
    rotation_.Begin(batch.positions);
  }

  void Embed(Rows x, Rows layer_input) override {
    for (int t = 0; t < x.n; ++t) {
      const auto i = static_cast<std::size_t>(t);
      EmbedToken(model_, kernels_, batch_->tokens[i], batch_->positions[i],
                 Data(x) + t * x.width);
    }
    if (layer_input.width > 0) {
      layer_input_.Make(batch_->tokens, Data(x), Data(layer_input));
    }
  }

  void Normalize(const NormWeights& norm, Rows in, Rows out) override {
    const std::int64_t d = config_.d_model;
    const float* x = Data(in);
    float* y = Data(out);
    pool_.ParallelFor(in.n, [&](std::int64_t r, int) {
      if (config_.norm == NormKind::kRmsNorm) {
        kernels_.rms_norm(x + r * d, norm.weight.data(), config_.norm_eps, d,
                          y + r * d);
      } else {
        kernels_.layer_norm(x + r * d, norm.weight.data(),
                            norm.bias.empty() ? nullptr : norm.bias.data(),
                            config_.norm_eps, d, y + r * d);
      }
    });
  }

  void Project(const LayerPlan& layer, Rows in, Rows qkv, Rows gate) override {
    projection_.Run(layer, Data(in), in.n, Data(qkv), Data(gate));
  }

  void NormalizeHeads(const LayerPlan& layer, Rows qkv) override {
    projection_.NormalizeHeads(layer, qkv.n, Data(qkv));
  }

  void Rotate(const LayerPlan& layer, Rows qkv, Rows sink_q) override {
    rotation_.Run(layer, qkv.n, Data(qkv), Data(sink_q));
  }

  void WriteKv(const LayerPlan& layer, Rows qkv) override {
    const float* k = Data(qkv) + layer.q_dim();
    for (const PartRows& part : batch_->parts) {
      part.kv->BeginLayer(layer.kv_layer);
    }
    const auto write = [&](std::int64_t i, int) {
      const PartRows& part =
          batch_->parts[static_cast<std::size_t>(i / layer.n_kv_heads)];
      const auto h = static_cast<int>(i % layer.n_kv_heads);
      const float* head =
          k + part.first_row * layer.qkv_dim() + h * layer.head_dim;
      const float* values =
          layer.value_dim > 0 ? head + layer.kv_dim() : nullptr;
      part.kv->host()->WriteHead(layer.kv_layer, h, head, values,
                                 layer.qkv_dim());
    };
    const auto n_heads =
        static_cast<std::int64_t>(parts_.size()) * layer.n_kv_heads;
    if (qkv.n == 1) {
      // Less work than handing it out.
      for (int h = 0; h < n_heads; ++h) write(h, 0);
    } else {
      pool_.ParallelFor(n_heads, write);
    }
  }

  void Attend(const LayerPlan& layer, Rows qkv, Rows sink_q,
              Rows out) override {
    const QueryRows q{Data(qkv), layer.qkv_dim()};
    const bool apart = rotation_.TurnsSinkQueries(layer);
    attention_.Run(
        {.layer = layer,
         .parts = parts_,
         .q = q,
         .q_sink = apart ? QueryRows{Data(sink_q), layer.q_dim()} : q,
         .out = Data(out)});
  }

  void Gate(const LayerPlan& layer, Rows gate, Rows attended) override {
    if (!config_.attention_gate) return;
    const std::int64_t n = layer.q_dim();
    const float* from = Data(gate);
    float* to = Data(attended);
    pool_.ParallelFor(attended.n, [&](std::int64_t t, int) {
      kernels_.sigmoid_mul(from + t * n, n, to + t * n);
    });
  }

  void ShortConv(const LayerPlan& layer, Rows in, Rows out) override {
    short_conv_.Run(layer, batch_->parts, Data(in), in.n, Data(out));
  }

  void DeltaNet(const LayerPlan& layer, Rows in, Rows out) override {
    delta_net_.Run(layer, batch_->parts, Data(in), in.n, Data(out));
  }

  void Mamba2(const LayerPlan& layer, Rows in, bool adds, Rows out) override {
    mamba2_.Run(layer, batch_->parts, Data(in), in.n, adds, Data(out));
  }

  void Output(const LayerPlan& layer, Rows attended, Rows out) override {
    projection_.Output(layer, Data(attended), attended.n, Data(out));
  }

  void Mlp(const LayerPlan& layer, Rows x, Rows in, Rows out) override {
    mlp_.Run(layer, Data(x), Data(in), in.n, Data(out));
  }

  void AddLayerInput(const LayerPlan& layer, Rows inputs, Rows x) override {
    const std::int64_t d = config_.d_model;
    float* to = Data(x);
    const float* from = layer_input_.Run(layer, Data(inputs), to, x.n);
    pool_.ParallelFor(x.n, [&](std::int64_t r, int) {
      kernels_.add(from + r * d, d, to + r * d);
      if (!kernels_.all_finite(to + r * d, d)) NoteNonFinite(layer.index);
    });
  }

  void Scale(const LayerPlan& layer, Rows x) override {
    const float scale = layer.weights->scale[0];
    float* to = Data(x);
    for (std::int64_t i = 0; i < x.n * x.width; ++i) to[i] *= scale;
  }

  void AddResidual(const LayerPlan& layer, const NormWeights& norm, Rows delta,
                   Rows x) override {
    const std::int64_t d = config_.d_model;
    if (!norm.weight.empty()) Normalize(norm, delta, delta);
    float* from = Data(delta);
    float* to = Data(x);
    pool_.ParallelFor(x.n, [&](std::int64_t r, int) {
      float* row = from + r * d;
      if (config_.residual_scale != 1.0f) {
        for (std::int64_t i = 0; i < d; ++i) row[i] *= config_.residual_scale;
      }
      kernels_.add(row, d, to + r * d);
      if (!kernels_.all_finite(to + r * d, d)) NoteNonFinite(layer.index);
    });
  }

  void KeepRows(Rows x, std::span<const int> rows) override {
    float* to = Data(x);
    for (const int row : rows) {
      const float* from = Data(x) + row * x.width;
      if (from != to) std::copy_n(from, x.width, to);
      to += x.width;
    }
  }

  void Read(Rows x, int row, float* out) override {
    std::copy_n(Data(x) + row * x.width, x.width, out);
  }

  Result<void> Logits(Rows normed,
                      std::span<const LogitsOut> outputs) override {
    const std::int64_t n_vocab = config_.vocab_size;
    // One matrix product for all, into the caller's memory where its rows lie
    // one behind the other.
    bool in_place = true;
    const float* end = outputs[0].logits;
    for (const LogitsOut& out : outputs) {
      in_place = in_place && out.logits == end;
      end = out.logits + out.n_rows * n_vocab;
    }
    float* y = outputs[0].logits;
    if (!in_place) {
      HEARTH_TRY(gathered_logits_.ReserveFloats(Size(normed.n, n_vocab)));
      y = gathered_logits_.GetFloats(0);
    }
    linears_.Run(
        Data(normed), normed.width, normed.n,
        std::array<LinearCall, 1>{{{&model_.weights.head, y, n_vocab}}});
    FinishLogits(normed.n * n_vocab, y);
    if (in_place) return {};
    std::vector<const float*> from;
    for (const LogitsOut& out : outputs) {
      from.push_back(y);
      y += out.n_rows * n_vocab;
    }
    pool_.ParallelFor(
        static_cast<std::int64_t>(outputs.size()), [&](std::int64_t i, int) {
          const auto k = static_cast<std::size_t>(i);
          std::copy_n(from[k], outputs[k].n_rows * n_vocab, outputs[k].logits);
        });
    return {};
  }

  Result<int> FirstNonFinite() override {
    return first_non_finite_.load(std::memory_order_relaxed);
  }

 private:
  AlignedBuffer& BufferOf(Rows rows) {
    return buffers_[static_cast<std::size_t>(rows.slot)];
  }
  float* Data(Rows rows) {
    return BufferOf(rows).GetFloats(Size(rows.n, rows.width));
  }

  void TakeParts(const StepBatch& batch) {
    parts_.clear();
    for (const PartRows& part : batch.parts) {
      HEARTH_CHECK(part.kv->host() != nullptr);
      parts_.push_back(
          {part.kv->host(), part.first_row, part.n_rows, part.first_position});
    }
  }

  void FinishLogits(std::int64_t n, float* logits) {
    pool_.ParallelFor(
        (n + kLogitPiece - 1) / kLogitPiece, [&](std::int64_t i, int) {
          float* piece = logits + i * kLogitPiece;
          const std::int64_t size = std::min(kLogitPiece, n - i * kLogitPiece);
          if (!kernels_.all_finite(piece, size)) {
            NoteNonFinite(config_.n_layers);
          }
          if (config_.logit_scale != 1.0f) {
            for (std::int64_t k = 0; k < size; ++k) {
              piece[k] *= config_.logit_scale;
            }
          }
          if (config_.logit_softcap > 0.0f) {
            kernels_.softcap(config_.logit_softcap, size, piece);
          }
        });
  }

  // Threads of one operation note the same layer; of later ones the first
  // stays.
  void NoteNonFinite(int layer) {
    int none = -1;
    first_non_finite_.compare_exchange_strong(none, layer);
  }

  const LoadedModel& model_;
  const ModelConfig& config_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  std::vector<LayerPlan> layers_;
  const bool convolves_;
  const WeightShapes shapes_;
  LinearRunner linears_;
  Projection projection_;
  Rotation rotation_;
  Attention attention_;
  hearth::Mlp mlp_;
  hearth::ShortConv short_conv_;
  hearth::DeltaNet delta_net_;
  hearth::Mamba2 mamba2_;
  LayerInput layer_input_;

  // Of the step.
  const StepBatch* batch_ = nullptr;
  std::vector<AttentionPart> parts_;
  std::array<AlignedBuffer, StepRows::kCount> buffers_;  // by Rows::slot
  AlignedBuffer gathered_logits_;
  std::atomic<int> first_non_finite_ = -1;
};

}  // namespace

std::unique_ptr<Ops> MakeCpuOps(const LoadedModel& model, ThreadPool& pool,
                                LinearInputs* inputs) {
  return std::make_unique<CpuOps>(model, pool, inputs);
}

}  // namespace hearth
