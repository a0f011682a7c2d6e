// Forward steps on an NVIDIA card: random weights of real shapes, no file.
//
//   device_bench [SHAPE FORMAT KV DEPTH]...   0.5b or 8b; Q8_0, Q4_K, ...;
//   fp16,
//                                             int8, ...; tokens before decoding
// For each: upload, prefill of DEPTH tokens, then the median time of a decode
// step and of a step of eight rows.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/kv_sequence.h"
#include "cuda/driver_device.h"
#include "engine/kv_setup.h"
#include "model/cuda/cuda_ops.h"
#include "model/forward.h"
#include "testing/block_model.h"

namespace hearth {
namespace {

constexpr int kSteps = 41;

double Now() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2,
                   times.end());
  return times[times.size() / 2];
}

template <class F>
int Named(std::string_view name, int n, const F& name_of) {
  for (int i = 0; i < n; ++i) {
    if (name_of(i) == name) return i;
  }
  std::fprintf(stderr, "%s: not known\n", std::string(name).c_str());
  std::exit(2);
}

BlockShape ShapeNamed(std::string_view name) {
  if (name == "8b") return {32, 32, 8, 128, 14336, 128256};
  return {24, 14, 2, 64, 4864, 151936};
}

void Report(const Result<void>& done) {
  if (done.ok()) return;
  std::fprintf(stderr, "%s\n", done.error().message.c_str());
  std::exit(1);
}

void Run(std::string_view shape, std::string_view format, std::string_view kv,
         int depth) {
  const auto dtype = static_cast<DType>(
      Named(format, static_cast<int>(DType::kMXFP4) + 1,
            [](int i) { return InfoOf(static_cast<DType>(i)).name; }));
  const auto kv_format = static_cast<KvFormat>(Named(
      kv, kKvFormats, [](int i) { return NameOf(static_cast<KvFormat>(i)); }));
  // As files of mixed formats have it.
  const DType second = dtype == DType::kQ4_K ? DType::kQ6_K : dtype;
  const BlockModel made(dtype, second, ShapeNamed(shape));
  auto card = gpu::OpenCard();
  if (!card.ok()) {
    std::printf("skipped: %s\n", card.error().message.c_str());
    return;
  }
  ThreadPool pool(8);
  const double start = Now();
  auto ops = MakeCudaOps(made.model, pool, *card, std::uint64_t{40} << 30);
  if (!ops.ok()) Report(ops.error());
  const double upload = Now() - start;
  Forward forward(made.model, std::move(*ops));
  const KvSpec spec = SpecOf(made.model.config, kv_format, kv_format, 64);
  const auto kv_pool = MakeKvPool(spec, {}, {.n_blocks = depth / 64 + 16});
  const auto sequence = MakeInPlaceSequence(*kv_pool, spec);
  std::vector<std::int32_t> ids(512);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(i * 37 % 30000);
  }
  const auto vocab = static_cast<std::size_t>(made.model.config.vocab_size);
  std::vector<float> logits(8 * vocab);
  const double before = Now();
  for (int at = 0; at < depth; at += 512) {
    const auto n = static_cast<std::size_t>(std::min(512, depth - at));
    Report(forward.Step(
        {.kv = sequence.get(), .tokens = std::span(ids).first(n)}));
  }
  const double prefill = Now() - before;
  const auto time = [&](std::size_t n) {
    std::vector<double> times;
    for (int i = 0; i < kSteps; ++i) {
      const double at = Now();
      Report(forward.Step({.kv = sequence.get(),
                           .tokens = std::span(ids).first(n),
                           .want = LogitRows::kLast,
                           .logits = logits.data()}));
      times.push_back(Now() - at);
      sequence->Rewind(
          sequence->RewindableTo(sequence->n_tokens() - static_cast<int>(n)));
    }
    return Median(times);
  };
  const double one = time(1), eight = time(8);
  std::printf(
      "%s %s kv %s depth %d: upload %.0f ms, prefill %.0f t/s, decode %.3f ms "
      "(%.0f t/s), eight rows %.3f ms\n",
      std::string(shape).c_str(), std::string(format).c_str(),
      std::string(kv).c_str(), depth, upload,
      depth > 0 ? depth / prefill * 1000 : 0, one, 1000 / one, eight);
  std::fflush(stdout);
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  for (int i = 1; i + 3 < argc; i += 4) {
    hearth::Run(argv[i], argv[i + 1], argv[i + 2], std::atoi(argv[i + 3]));
  }
  return 0;
}
