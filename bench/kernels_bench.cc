// Speed of single kernels on one thread: matmul (decode = 1 row, prefill = 512
// rows) and attention. Rates are bytes of weights or of KV read, and arithmetic
// operations done (2 a multiply-add), to be held against the machine's limits
// (docs/kernels.md).
//
// Build by hand, with a release build of the rooms in $B:
//   g++ -std=c++20 -O3 -Isrc -Iinclude bench/kernels_bench.cc \
//     $B/libhearth_kernels.a $B/libhearth_tensor.a $B/libhearth_base.a \
//     -lbenchmark -lcrypto -lxxhash -pthread -o kernels_bench
// HEARTH_ISA picks the instruction set.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "kernels/kernels.h"

namespace hearth {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<std::byte, Free>;

// Random bytes, but with a small positive number in every 16 bits of scale or
// value, so that nothing is subnormal or NaN.
Memory MakeMemory(std::size_t bytes) {
  Memory memory(
      static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64)));
  std::mt19937_64 rng(1);
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    StoreLe(memory.get() + i,
            (rng() & 0x03ff03ff03ff03ffu) | 0x2c002c002c002c00u);
  }
  return memory;
}

std::vector<float> Inputs(std::size_t n) {
  std::mt19937 rng(2);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> x(n);
  for (float& v : x) v = normal(rng);
  return x;
}

struct Shape {
  const char* name;
  std::int64_t n_out;
  std::int64_t n_in;
};

// Enough matrices that one pass over them exceeds the caches (decode), or one
// (prefill).
void RunMatmul(benchmark::State& state, DType dtype, WeightLayout layout,
               Shape shape, int n_rows) {
  const Kernels& kernels = ActiveKernels();
  const auto bytes = static_cast<std::size_t>(
      *BytesOf(dtype, static_cast<std::uint64_t>(shape.n_out * shape.n_in)));
  const std::size_t copies =
      n_rows > 16 ? 1 : (std::size_t{256} << 20) / bytes + 1;
  const Memory data = MakeMemory(bytes * copies);
  const Memory scales =
      MakeMemory(static_cast<std::size_t>(shape.n_out * shape.n_in / 32));
  WeightMatrix w{dtype, layout, shape.n_out, shape.n_in, nullptr, scales.get()};
  const auto rows = static_cast<std::size_t>(n_rows);
  const std::size_t row_bytes = kernels.packed_row_bytes(dtype, shape.n_in);
  const Memory packed = MakeMemory(row_bytes * rows);
  const auto x = Inputs(static_cast<std::size_t>(shape.n_in));
  for (std::size_t r = 0; r < rows; ++r) {
    kernels.pack_row(dtype, x.data(), shape.n_in, packed.get() + r * row_bytes);
  }
  const Memory scratch = MakeMemory(kernels.matmul_scratch_bytes(w, n_rows));
  std::vector<float> y(rows * static_cast<std::size_t>(shape.n_out));
  std::size_t copy = 0;
  for (auto _ : state) {
    w.data = data.get() + bytes * copy;
    copy = (copy + 1) % copies;
    kernels.matmul(w, packed.get(), n_rows, 0, shape.n_out, nullptr, y.data(),
                   shape.n_out, scratch.get());
    benchmark::DoNotOptimize(y.data());
  }
  const auto n = static_cast<double>(state.iterations());
  state.counters["bytes/s"] = benchmark::Counter(n * static_cast<double>(bytes),
                                                 benchmark::Counter::kIsRate);
  state.counters["op/s"] = benchmark::Counter(
      n * 2.0 * n_rows * static_cast<double>(shape.n_out * shape.n_in),
      benchmark::Counter::kIsRate);
}

// One KV head over a context of `depth` tokens in tiles of 64.
void RunAttention(benchmark::State& state, KvFormat format, int head_dim,
                  int n_rows, int depth) {
  const Kernels& kernels = ActiveKernels();
  constexpr int kStride = 64;
  const auto tile_bytes = static_cast<std::size_t>(
      std::max(head_dim * KvRowBytes(format, kStride),
               kStride * KvRowBytes(format, head_dim)));
  const auto n_tiles = static_cast<std::size_t>(depth / kStride);
  const Memory keys = MakeMemory(tile_bytes * n_tiles);
  const Memory values = MakeMemory(tile_bytes * n_tiles);
  const auto rows = static_cast<std::size_t>(n_rows);
  const auto dim = static_cast<std::size_t>(head_dim);
  const auto q = Inputs(rows * dim);
  std::vector<float> max(rows), sum(rows), acc(rows * dim);
  const std::vector<int> begin(rows, 0);
  const std::vector<int> visible(rows, kStride);
  const Memory scratch =
      MakeMemory(kernels.attend_scratch_bytes(head_dim, kStride));
  // Scales and zeros of quantised formats.
  std::vector<std::uint16_t> params(
      2 * static_cast<std::size_t>(std::max(head_dim, kStride)),
      ToF16(0.01f).bits);
  for (auto _ : state) {
    for (float& m : max) m = -1e30f;
    for (std::size_t i = 0; i < n_tiles; ++i) {
      KvTile tile;
      tile.keys = keys.get() + i * tile_bytes;
      tile.values = values.get() + i * tile_bytes;
      tile.key_format = tile.value_format = format;
      tile.key_params = tile.value_params =
          reinterpret_cast<const std::byte*>(params.data());
      tile.n_tokens = tile.stride = kStride;
      kernels.attend_tile(q.data(), n_rows, head_dim, tile, begin.data(),
                          visible.data(), 0.0f, max.data(), sum.data(),
                          acc.data(), scratch.get());
    }
    benchmark::DoNotOptimize(acc.data());
  }
  const auto n = static_cast<double>(state.iterations());
  state.counters["bytes/s"] =
      benchmark::Counter(n * 2.0 * static_cast<double>(tile_bytes * n_tiles),
                         benchmark::Counter::kIsRate);
  state.counters["op/s"] = benchmark::Counter(
      n * 4.0 * n_rows * head_dim * depth, benchmark::Counter::kIsRate);
}

void RunUnary(benchmark::State& state,
              void (*kernel)(const float*, std::int64_t, float*)) {
  const auto x = Inputs(4864);
  std::vector<float> out(x.size());
  for (auto _ : state) {
    kernel(x.data(), static_cast<std::int64_t>(x.size()), out.data());
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(x.size()));
}

void RegisterAll() {
  constexpr Shape kShapes[] = {{"896x896", 896, 896},
                               {"4864x896", 4864, 896},
                               {"896x4864", 896, 4864},
                               {"8960x1536", 8960, 1536}};
  struct Format {
    const char* name;
    DType dtype;
    WeightLayout layout;
  };
  constexpr Format kFormats[] = {
      {"q8_0", DType::kQ8_0, WeightLayout::kOutIn},
      {"q4_0", DType::kQ4_0, WeightLayout::kOutIn},
      {"q4_1", DType::kQ4_1, WeightLayout::kOutIn},
      {"q5_0", DType::kQ5_0, WeightLayout::kOutIn},
      {"q5_1", DType::kQ5_1, WeightLayout::kOutIn},
      {"q2_k", DType::kQ2_K, WeightLayout::kOutIn},
      {"q3_k", DType::kQ3_K, WeightLayout::kOutIn},
      {"q4_k", DType::kQ4_K, WeightLayout::kOutIn},
      {"q5_k", DType::kQ5_K, WeightLayout::kOutIn},
      {"q6_k", DType::kQ6_K, WeightLayout::kOutIn},
      {"iq4_nl", DType::kIQ4_NL, WeightLayout::kOutIn},
      {"iq4_xs", DType::kIQ4_XS, WeightLayout::kOutIn},
      {"mxfp4", DType::kMXFP4, WeightLayout::kOutIn},
      {"bf16", DType::kBF16, WeightLayout::kOutIn},
      {"f16", DType::kF16, WeightLayout::kOutIn},
      {"f32", DType::kF32, WeightLayout::kOutIn},
      {"tg_int4", DType::kTgInt4, WeightLayout::kOutIn},
      {"f16_in_out", DType::kF16, WeightLayout::kInOut},
      {"tg_int4_in_out", DType::kTgInt4, WeightLayout::kInOut},
  };
  for (const Format& format : kFormats) {
    for (const Shape& shape : kShapes) {
      if (shape.n_in % InfoOf(format.dtype).block_elements != 0 &&
          IsBlockQuantised(format.dtype)) {
        continue;
      }
      for (const int rows : {1, 2, 4, 8, 512}) {
        const std::string name = std::string(format.name) + "/" + shape.name +
                                 "/rows:" + std::to_string(rows);
        benchmark::RegisterBenchmark(name.c_str(), RunMatmul, format.dtype,
                                     format.layout, shape, rows);
      }
    }
  }
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kBF16, KvFormat::kF32,
                                KvFormat::kInt8, KvFormat::kInt4}) {
    for (const int head_dim : {64, 128}) {
      for (const int rows : {1, 4, 7, 64}) {
        const std::string name = "attend/" + std::string(NameOf(format)) +
                                 "/dim:" + std::to_string(head_dim) +
                                 "/rows:" + std::to_string(rows);
        benchmark::RegisterBenchmark(name.c_str(), RunAttention, format,
                                     head_dim, rows, 4096);
      }
    }
  }
  benchmark::RegisterBenchmark("gelu_erf", RunUnary, ActiveKernels().gelu_erf);
  benchmark::RegisterBenchmark("gelu_tanh", RunUnary,
                               ActiveKernels().gelu_tanh);
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  hearth::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("isa", std::string(hearth::ActiveKernels().isa));
  benchmark::RunSpecifiedBenchmarks();
}
