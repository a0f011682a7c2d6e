#include "model/cuda/cuda_ops.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cuda/kernels/rows.h"
#include "kernels/kernels.h"
#include "model/cuda/device_attention.h"
#include "model/cuda/device_linear.h"
#include "model/cuda/device_mlp.h"
#include "model/cuda/device_norm.h"
#include "model/cuda/device_weights.h"
#include "model/cuda/step_data.h"
#include "model/embed_token.h"

namespace hearth {
namespace {

constexpr int kAllFinite = std::numeric_limits<int>::max();

unsigned Pieces(std::int64_t n, std::int64_t piece) {
  return static_cast<unsigned>((n + piece - 1) / piece);
}

std::uint64_t FloatBytes(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b) *
         sizeof(float);
}

class CudaOps final : public Ops {
 public:
  CudaOps(const LoadedModel& model, ThreadPool& pool,
          std::shared_ptr<gpu::Device> device, DeviceWeights weights,
          std::uint64_t kv_bytes)
      : model_(model),
        config_(model.config),
        pool_(pool),
        kernels_(ActiveKernels()),
        device_owner_(std::move(device)),
        device_(*device_owner_),
        weights_(std::move(weights)),
        layers_(PlanLayers(model)),
        kv_(DeviceKvMemory::Make(device_owner_, kv_bytes)),
        step_(config_, layers_, device_, *kv_),
        linears_(weights_, device_),
        attention_(config_, weights_, step_, device_),
        mlp_(config_, linears_, device_),
        norm_(config_, weights_, linears_, device_),
        logits_(device_),
        first_bad_(device_),
        index_(device_),
        kept_(device_) {
    for (gpu::Buffer& buffer : buffers_) buffer = gpu::Buffer(device_);
  }

  Numerics numerics() const override { return {}; }

  Result<StepRows> Reserve(const StepBatch& batch) override {
    // Of a step that failed.
    norm_.Forget();
    turn_.reset();
    wanted_.clear();
    const int n = batch.n_rows();
    StepRows rows = PlanRows(config_, layers_, n);
    for (const Rows* matrix : rows.All()) {
      HEARTH_TRY(BufferOf(*matrix).Reserve(FloatBytes(n, matrix->width)));
    }
    const std::int64_t d_model = config_.d_model;
    const std::int64_t q_dim = rows.attended.width;
    // Queries with their gates, or the rows that are kept.
    HEARTH_TRY(kept_.Reserve(FloatBytes(n, std::max(d_model, 2 * q_dim))));
    HEARTH_TRY(mlp_.Reserve(n));
    HEARTH_TRY(linears_.Reserve(
        n, std::max({d_model, q_dim, std::int64_t{config_.d_mlp}})));
    HEARTH_TRY(attention_.Reserve(layers_));
    HEARTH_TRY(index_.Reserve(static_cast<std::uint64_t>(n) * sizeof(int)));
    HEARTH_TRY(first_bad_.Reserve(sizeof(int)));
    HEARTH_TRY(step_.Reserve(batch));
    device_.Upload(first_bad_.at(), std::as_bytes(std::span(&kAllFinite, 1)));
    return rows;
  }

  void Begin(const StepBatch& batch) override {
    norm_.Settle();
    batch_ = &batch;
    step_.Begin(batch);
  }

  // A row of every format; the embedding itself stays in the host's memory.
  void Embed(Rows x, Rows /*layer_input*/) override {
    embedded_.resize(static_cast<std::size_t>(x.n * x.width));
    pool_.ParallelFor(x.n, [&](std::int64_t t, int) {
      const auto i = static_cast<std::size_t>(t);
      EmbedToken(model_, kernels_, batch_->tokens[i], batch_->positions[i],
                 embedded_.data() + t * x.width);
    });
    device_.Upload(BufferOf(x).at(), std::as_bytes(std::span(embedded_)));
  }

  void Normalize(const NormWeights& norm, Rows in, Rows out) override {
    norm_.Run(norm, Data(in), Data(out), in.n, first_bad_.As<int>());
  }

  void Project(const LayerPlan& layer, Rows in, Rows qkv, Rows gate) override {
    norm_.Settle();
    const LayerWeights& w = *layer.weights;
    const std::int64_t stride = layer.qkv_dim();
    float* q = Data(qkv);
    float* k = q + layer.q_dim();
    float* v = k + layer.kv_dim();
    const auto run = [&](std::span<const DeviceLinearCall> calls) {
      linears_.Run(Data(in), in.width, in.n, calls);
    };
    if (config_.attention_gate) {
      const std::int64_t wide = 2 * layer.q_dim();
      auto* both = kept_.As<float>();
      run(std::array<DeviceLinearCall, 3>{
          {{&w.q, both, wide}, {&w.k, k, stride}, {&w.v, v, stride}}});
      SplitGates(layer, both, qkv, gate);
    } else if (!w.qkv.empty()) {
      run(std::array<DeviceLinearCall, 1>{{{&w.qkv, q, stride}}});
    } else if (w.k.empty()) {
      run(std::array<DeviceLinearCall, 1>{{{&w.q, q, stride}}});
    } else {
      run(std::array<DeviceLinearCall, 3>{
          {{&w.q, q, stride}, {&w.k, k, stride}, {&w.v, v, stride}}});
    }
  }

  void NormalizeHeads(const LayerPlan& layer, Rows qkv) override {
    if (config_.qk_norm == QkNorm::kNone) return;
    const auto normalize = [&](float* heads, std::int64_t n,
                               const std::vector<float>& norm) {
      const std::int64_t step =
          config_.qk_norm == QkNorm::kWhole ? n : layer.head_dim;
      const std::int64_t stride = layer.qkv_dim();
      norm_.RunHeads({.x = heads,
                      .x_row = stride,
                      .x_run = step,
                      .out = heads,
                      .out_row = stride,
                      .out_run = step,
                      .weight = weights_.Of(norm),
                      .bias = nullptr,
                      .n = step,
                      .eps = config_.norm_eps,
                      .layer_norm = false},
                     qkv.n, static_cast<unsigned>(n / step));
    };
    float* row = Data(qkv);
    normalize(row, layer.q_dim(), layer.weights->q_norm);
    if (layer.owns_kv) {
      normalize(row + layer.q_dim(), layer.kv_dim(), layer.weights->k_norm);
    }
  }

  void Rotate(const LayerPlan& layer, Rows qkv, Rows sink_q) override {
    const RopeConfig& rope =
        layer.rope == RopeUse::kLocal ? config_.local_rope : config_.rope;
    turn_.reset();
    if (layer.rope == RopeUse::kNone || rope.rotary_dim == 0) return;
    gpu::RopeArgs args{.from = nullptr,
                       .from_stride = layer.qkv_dim(),
                       .heads = Data(qkv),
                       .stride = layer.qkv_dim(),
                       .n_heads = layer.n_heads,
                       .n_grown = layer.n_heads,
                       .head_dim = layer.head_dim,
                       .rotary_dim = rope.rotary_dim,
                       .interleaved = rope.interleaved,
                       .cos = step_.rope(layer).cos,
                       .sin = step_.rope(layer).sin,
                       .growth = step_.growth()};
    const auto n_rows = static_cast<unsigned>(qkv.n);
    if (step_.TurnsSinkQueries(layer)) {
      gpu::RopeArgs apart = args;
      apart.from = Data(qkv);
      apart.heads = Data(sink_q);
      apart.stride = layer.q_dim();
      apart.cos = step_.sink_rope(layer).cos;
      apart.sin = step_.sink_rope(layer).sin;
      device_.Run(gpu::Kernel::kRope,
                  {static_cast<unsigned>(layer.n_heads), n_rows}, apart);
    }
    if (layer.owns_kv) {
      turn_ = args;  // where keys and values are written
      return;
    }
    device_.Run(gpu::Kernel::kRope,
                {static_cast<unsigned>(args.n_heads), n_rows}, args);
  }

  void WriteKv(const LayerPlan& layer, Rows qkv) override {
    attention_.Write(layer, *batch_, Data(qkv),
                     turn_.has_value() ? &*turn_ : nullptr);
  }

  void Attend(const LayerPlan& layer, Rows qkv, Rows sink_q,
              Rows out) override {
    const bool apart = step_.TurnsSinkQueries(layer);
    attention_.Run(*batch_,
                   {.layer = layer,
                    .q = Data(qkv),
                    .q_stride = layer.qkv_dim(),
                    .q_sink = apart ? Data(sink_q) : Data(qkv),
                    .sink_stride = apart ? layer.q_dim() : layer.qkv_dim(),
                    .out = Data(out)});
  }

  void Gate(const LayerPlan& layer, Rows gate, Rows attended) override {
    if (!config_.attention_gate) return;
    const std::int64_t n = layer.q_dim();
    Activate({.kind = gpu::Activation::kSigmoidGate,
              .gate = Data(gate),
              .up = Data(attended),
              .gate_stride = n,
              .up_stride = n,
              .width = n,
              .interleaved = false,
              .codes = nullptr,
              .scales = nullptr},
             attended.n);
  }

  // CheckDeviceRuns refuses models with these layers.
  void ShortConv(const LayerPlan&, Rows, Rows) override { Refused(); }
  void DeltaNet(const LayerPlan&, Rows, Rows) override { Refused(); }

  void Mamba2(const LayerPlan&, Rows, bool, Rows) override { Refused(); }
  void AddLayerInput(const LayerPlan&, Rows, Rows) override { Refused(); }
  void Scale(const LayerPlan&, Rows) override { Refused(); }

  void Output(const LayerPlan& layer, Rows attended, Rows out) override {
    const Linear& o = layer.weights->o;
    linears_.Run(Data(attended), o.w.n_in, attended.n,
                 std::array<DeviceLinearCall, 1>{{{&o, Data(out), o.w.n_out}}});
  }

  void Mlp(const LayerPlan& layer, Rows /*x*/, Rows in, Rows out) override {
    norm_.Settle();
    mlp_.Run(layer.weights->mlp, Data(in), in.n, Data(out));
  }

  void AddResidual(const LayerPlan& layer, const NormWeights& norm, Rows delta,
                   Rows x) override {
    if (!norm.weight.empty()) Normalize(norm, delta, delta);
    norm_.AddLater({Data(delta), Data(x), x.n * std::int64_t{config_.d_model},
                    config_.residual_scale, first_bad_.As<int>(), layer.index});
  }

  void KeepRows(Rows x, std::span<const int> rows) override {
    norm_.Settle();
    if (rows.empty() || x.width == 0) return;
    device_.Upload(index_.at(), std::as_bytes(rows));
    // By way of other memory: rows move onto rows that are read.
    const auto n = static_cast<unsigned>(rows.size());
    gpu::CopyArgs args{Data(x), x.width, 0,       kept_.As<float>(),
                       x.width, 0,       x.width, index_.As<int>()};
    device_.Run(gpu::Kernel::kCopyRuns, {1, n}, args);
    args.from = kept_.As<float>();
    args.to = Data(x);
    args.index = nullptr;
    device_.Run(gpu::Kernel::kCopyRuns, {1, n}, args);
  }

  void Read(Rows x, int row, float* out) override {
    norm_.Settle();
    const auto n = static_cast<std::size_t>(x.width);
    device_.Download(std::as_writable_bytes(std::span(out, n)),
                     reinterpret_cast<gpu::Address>(Data(x) + row * x.width));
  }

  Result<void> Logits(Rows normed,
                      std::span<const LogitsOut> outputs) override {
    const std::int64_t n_vocab = config_.vocab_size;
    HEARTH_TRY(logits_.Reserve(FloatBytes(normed.n, n_vocab)));
    auto* y = logits_.As<float>();
    linears_.Run(
        Data(normed), normed.width, normed.n,
        std::array<DeviceLinearCall, 1>{{{&model_.weights.head, y, n_vocab}}});
    const std::int64_t n = normed.n * n_vocab;
    const gpu::LogitsArgs args{y,
                               n,
                               config_.logit_scale,
                               config_.logit_softcap,
                               first_bad_.As<int>(),
                               config_.n_layers};
    device_.Run(gpu::Kernel::kFinishLogits, {Pieces(n, gpu::kElementThreads)},
                args);
    for (const LogitsOut& out : outputs) {
      const std::int64_t size = out.n_rows * n_vocab;
      wanted_.push_back({std::as_writable_bytes(std::span(
                             out.logits, static_cast<std::size_t>(size))),
                         reinterpret_cast<gpu::Address>(y)});
      y += size;
    }
    return {};
  }

  // Logits come down with what says whether they are numbers.
  Result<int> FirstNonFinite() override {
    norm_.Settle();
    int first = kAllFinite;
    wanted_.push_back(
        {std::as_writable_bytes(std::span(&first, 1)), first_bad_.at()});
    device_.Download(wanted_);
    wanted_.clear();
    HEARTH_TRY(device_.Wait());
    return first == kAllFinite ? -1 : first;
  }

 private:
  static void Refused() { HEARTH_CHECK(false && "CheckDeviceRuns refused it"); }
  gpu::Buffer& BufferOf(Rows rows) {
    return buffers_[static_cast<std::size_t>(rows.slot)];
  }
  float* Data(Rows rows) { return BufferOf(rows).As<float>(); }

  void Activate(const gpu::ActivateArgs& args, int n_rows) {
    device_.Run(gpu::Kernel::kActivate,
                {Pieces(args.width, gpu::kElementThreads),
                 static_cast<unsigned>(n_rows)},
                args, gpu::kPackSharedBytes);
  }
  // From [queries, gates] of each head.
  void SplitGates(const LayerPlan& layer, const float* both, Rows qkv,
                  Rows gate) {
    const std::int64_t d = layer.head_dim;
    gpu::CopyArgs args{
        both,   2 * layer.q_dim(), 2 * d, Data(qkv), layer.qkv_dim(), d, d,
        nullptr};
    const gpu::Dim3 grid{static_cast<unsigned>(layer.n_heads),
                         static_cast<unsigned>(qkv.n)};
    device_.Run(gpu::Kernel::kCopyRuns, grid, args);
    args.from = both + d;
    args.to = Data(gate);
    args.to_row = layer.q_dim();
    device_.Run(gpu::Kernel::kCopyRuns, grid, args);
  }

  const LoadedModel& model_;
  const ModelConfig& config_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  const std::shared_ptr<gpu::Device> device_owner_;
  gpu::Device& device_;
  const DeviceWeights weights_;
  const std::vector<LayerPlan> layers_;
  const std::shared_ptr<DeviceKvMemory> kv_;
  StepData step_;
  DeviceLinear linears_;
  DeviceAttention attention_;
  DeviceMlp mlp_;
  DeviceNorm norm_;

  // Of the step.
  const StepBatch* batch_ = nullptr;
  std::vector<float> embedded_;
  std::optional<gpu::RopeArgs> turn_;      // of queries and keys, likewise
  std::vector<gpu::DownloadPart> wanted_;  // with the step's end
  std::array<gpu::Buffer, StepRows::kCount> buffers_;  // by Rows::slot
  gpu::Buffer logits_;                                 // [n_rows][vocab_size]
  gpu::Buffer first_bad_, index_, kept_;
};

}  // namespace

std::uint64_t DeviceWeightBytes(const LoadedModel& model) {
  return DeviceWeights::BytesOf(model);
}

bool IsSlowOnDevice(const LoadedModel& model) {
  return DeviceWeights::HasColumns(model);
}

Result<std::unique_ptr<Ops>> MakeCudaOps(const LoadedModel& model,
                                         ThreadPool& pool,
                                         std::shared_ptr<gpu::Device> device,
                                         std::uint64_t kv_bytes) {
  HEARTH_TRY(CheckDeviceRuns(model));
  HEARTH_ASSIGN(DeviceWeights weights, DeviceWeights::Send(model, *device));
  return std::unique_ptr<Ops>(std::make_unique<CudaOps>(
      model, pool, std::move(device), std::move(weights), kv_bytes));
}

}  // namespace hearth
