#include "model/cpu/latent.h"

#include <algorithm>
#include <array>

namespace hearth {
namespace {

std::size_t Size(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

}  // namespace

Latent::Latent(const ModelConfig& config, LinearRunner& linears,
               ThreadPool& pool)
    : config_(config),
      shape_(config.latent),
      linears_(linears),
      pool_(pool),
      kernels_(ActiveKernels()),
      packed_(static_cast<std::size_t>(pool.n_threads())),
      scratch_(static_cast<std::size_t>(pool.n_threads())) {}

Result<void> Latent::Reserve(std::span<const LayerPlan> layers, int n_rows) {
  if (shape_.kv_rank == 0) return {};
  HEARTH_TRY(down_.ReserveFloats(Size(n_rows, shape_.q_rank)));
  HEARTH_TRY(queries_.ReserveFloats(Size(n_rows, queries_width())));
  HEARTH_TRY(values_.ReserveFloats(
      Size(n_rows, std::int64_t{config_.n_heads} * shape_.value_dim)));
  std::size_t packed = 0, scratch = 0;
  for (const LayerPlan& layer : layers) {
    const LatentWeights& w = layer.weights->latent;
    for (const auto* heads : {&w.keys, &w.values}) {
      if (heads->empty()) continue;
      const WeightMatrix& matrix = heads->front().w;
      packed = std::max(packed,
                        kernels_.packed_row_bytes(matrix.dtype, matrix.n_in));
      scratch =
          std::max(scratch, kernels_.matmul_scratch_bytes(matrix, n_rows));
    }
  }
  for (AlignedBuffer& buffer : packed_) {
    HEARTH_TRY(buffer.Reserve(packed * static_cast<std::size_t>(n_rows)));
  }
  for (AlignedBuffer& buffer : scratch_) HEARTH_TRY(buffer.Reserve(scratch));
  return {};
}

// Head by head: each is a small matrix, and there are many.
void Latent::RunHeads(const std::vector<Linear>& heads, const float* x,
                      HeadRows in, int n_rows, float* y, HeadRows out) {
  const auto n = static_cast<std::int64_t>(heads.size());
  for (std::int64_t h = 0; h < n && linears_.inputs() != nullptr; ++h) {
    linears_.inputs()->Add(heads[static_cast<std::size_t>(h)], x + h * in.step,
                           in.stride, n_rows);
  }
  pool_.ParallelFor(n, [&](std::int64_t h, int thread) {
    const WeightMatrix& w = heads[static_cast<std::size_t>(h)].w;
    const auto t = static_cast<std::size_t>(thread);
    const std::size_t row_bytes = kernels_.packed_row_bytes(w.dtype, w.n_in);
    std::byte* packed =
        packed_[t].Get(row_bytes * static_cast<std::size_t>(n_rows));
    for (int r = 0; r < n_rows; ++r) {
      kernels_.pack_row(w.dtype, x + r * in.stride + h * in.step, w.n_in,
                        packed + static_cast<std::size_t>(r) * row_bytes);
    }
    kernels_.matmul(w, packed, n_rows, 0, w.n_out, nullptr, y + h * out.step,
                    out.stride,
                    scratch_[t].Get(kernels_.matmul_scratch_bytes(w, n_rows)));
  });
}

void Latent::Project(const LayerPlan& layer, const float* x, int n_rows,
                     float* qkv) {
  const LayerWeights& all = *layer.weights;
  const LatentWeights& w = all.latent;
  const std::int64_t stride = layer.qkv_dim(), d = config_.d_model;
  float* kept = qkv + layer.q_dim();
  float* queries = queries_.GetFloats(Size(n_rows, queries_width()));
  if (shape_.q_rank > 0) {
    const std::int64_t rank = shape_.q_rank;
    float* down = down_.GetFloats(Size(n_rows, rank));
    linears_.Run(x, d, n_rows,
                 std::array<LinearCall, 2>{
                     {{&w.q_down, down, rank}, {&w.kv_down, kept, stride}}});
    pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
      kernels_.rms_norm(down + r * rank, w.q_norm.data(), config_.norm_eps,
                        rank, down + r * rank);
    });
    linears_.Run(
        down, rank, n_rows,
        std::array<LinearCall, 1>{{{&all.q, queries, queries_width()}}});
  } else {
    linears_.Run(x, d, n_rows,
                 std::array<LinearCall, 2>{{{&all.q, queries, queries_width()},
                                            {&w.kv_down, kept, stride}}});
  }
  RunHeads(w.keys, queries, {queries_width(), shape_.query_dim()}, n_rows, qkv,
           {stride, shape_.kept_dim()});
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    float* row = kept + r * stride;
    kernels_.rms_norm(row, w.kv_norm.data(), config_.norm_eps, shape_.kv_rank,
                      row);
    for (std::int64_t h = 0; h < config_.n_heads; ++h) {
      std::copy_n(queries + r * queries_width() + h * shape_.query_dim() +
                      shape_.nope_dim,
                  shape_.rope_dim,
                  qkv + r * stride + h * shape_.kept_dim() + shape_.kv_rank);
    }
  });
}

const float* Latent::Values(const LayerPlan& layer, const float* attended,
                            int n_rows) {
  const std::int64_t width = std::int64_t{config_.n_heads} * shape_.value_dim;
  float* values = values_.GetFloats(Size(n_rows, width));
  RunHeads(layer.weights->latent.values, attended,
           {layer.q_dim(), shape_.kept_dim()}, n_rows, values,
           {width, shape_.value_dim});
  return values;
}

}  // namespace hearth
