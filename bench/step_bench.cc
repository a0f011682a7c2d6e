// A forward step of one to many sequences: random weights of the 0.5B shape, so
// that no file is needed. Rates are tokens of all sequences.
//
// step/Q8_0/sequences:8/depth:0/threads:1 appends one token to each of eight
// sequences that hold as many tokens as `depth` says.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "cache/kv_sequence.h"
#include "engine/kv_setup.h"
#include "model/cpu/cpu_ops.h"
#include "model/forward.h"
#include "tensor/half.h"

namespace hearth {
namespace {

constexpr int kVocab = 151936;
constexpr int kStepsBeforeRewind = 32;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<std::byte, Free>;

// A model whose matrices are random bytes with small positive scales.
class RandomModel {
 public:
  explicit RandomModel(DType dtype) : dtype_(dtype) {
    ModelConfig& c = model_.config;
    c.architecture = "qwen2";
    c.name = "random";
    c.n_layers = 24;
    c.d_model = 896;
    c.n_heads = 14;
    c.n_kv_heads = 2;
    c.head_dim = 64;
    c.d_mlp = 4864;
    c.vocab_size = kVocab;
    c.context_length = 32768;
    c.attention_scale = 0.125f;
    c.rope.rotary_dim = 64;
    for (int i = 0; i < 32; ++i) {
      c.rope.inv_freq.push_back(1.0f / static_cast<float>(1 << (i / 2)));
    }
    Weights& w = model_.weights;
    w.token_embedding = Matrix(kVocab, 896);
    w.head.w = w.token_embedding;
    w.final_norm.weight.assign(896, 1.0f);
    for (int i = 0; i < c.n_layers; ++i) {
      LayerWeights layer;
      layer.attention_norm.weight.assign(896, 1.0f);
      layer.mlp_norm.weight.assign(896, 1.0f);
      layer.q.w = Matrix(896, 896);
      layer.k.w = Matrix(128, 896);
      layer.v.w = Matrix(128, 896);
      layer.o.w = Matrix(896, 896);
      layer.mlp.gate.w = Matrix(4864, 896);
      layer.mlp.up.w = Matrix(4864, 896);
      layer.mlp.down.w = Matrix(896, 4864);
      w.layers.push_back(std::move(layer));
    }
  }

  const LoadedModel& model() const { return model_; }

 private:
  WeightMatrix Matrix(std::int64_t n_out, std::int64_t n_in) {
    const auto bytes = static_cast<std::size_t>(
        *BytesOf(dtype_, static_cast<std::uint64_t>(n_out * n_in)));
    constexpr std::size_t kPage = std::size_t{2} << 20;
    memory_.emplace_back(static_cast<std::byte*>(
        std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage)));
    std::byte* data = memory_.back().get();
    AdviseHugePages(data, (bytes + kPage - 1) / kPage * kPage);
    for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
      StoreLe(data + i, rng_());
    }
    const DTypeInfo& info = InfoOf(dtype_);
    for (std::size_t i = 0; i < bytes; i += info.block_bytes) {
      StoreLe(data + i, ToF16(1e-4f).bits);
    }
    WeightMatrix w;
    w.dtype = dtype_;
    w.n_out = n_out;
    w.n_in = n_in;
    w.data = data;
    return w;
  }

  DType dtype_;
  std::mt19937_64 rng_;
  std::vector<Memory> memory_;
  LoadedModel model_;
};

const LoadedModel& ModelOf(DType dtype) {
  if (dtype == DType::kQ8_0) {
    static const RandomModel q8(DType::kQ8_0);
    return q8.model();
  }
  static const RandomModel q4(DType::kQ4_0);
  return q4.model();
}

void RunStep(benchmark::State& state, DType dtype, KvFormat format,
             int n_sequences, int depth, int n_threads) {
  const LoadedModel& model = ModelOf(dtype);
  ThreadPool pool(n_threads);
  Forward forward(model, MakeCpuOps(model, pool));
  const KvSpec spec = SpecOf(model.config, format, format, 64);
  const std::shared_ptr<BlockPool> kv_pool =
      *MakeKvPool(spec, {}, {.n_blocks = depth / 64 + 2});
  std::vector<std::int32_t> ids(512);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(i * 37 % kVocab);
  }
  const auto n = static_cast<std::size_t>(n_sequences);
  std::vector<std::unique_ptr<KvSequence>> sequences;
  std::vector<float> logits(n * kVocab);
  std::vector<StepPart> parts;
  for (std::size_t i = 0; i < n; ++i) {
    sequences.push_back(MakeInPlaceSequence(kv_pool, spec));
    for (int at = 0; at < depth; at += 512) {
      const int some = std::min(512, depth - at);
      if (!forward
               .Step({.kv = sequences[i].get(),
                      .tokens =
                          std::span(ids).first(static_cast<std::size_t>(some))})
               .ok()) {
        return state.SkipWithError("prefill");
      }
    }
    parts.push_back({.kv = sequences[i].get(),
                     .tokens = std::span(ids).subspan(i, 1),
                     .want = LogitRows::kLast,
                     .logits = logits.data() + i * kVocab});
  }
  int n_steps = 0;
  for (auto _ : state) {
    if (!forward.Step(parts).ok()) return state.SkipWithError("step");
    if (++n_steps % kStepsBeforeRewind == 0) {
      for (auto& sequence : sequences) sequence->Rewind(depth);
    }
  }
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * n_sequences,
                         benchmark::Counter::kIsRate);
}

void Register() {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    for (const int depth : {0, 4096}) {
      for (const int n : {1, 2, 4, 8}) {
        for (const int threads : {1, 2}) {
          const std::string name = "step/" + std::string(InfoOf(dtype).name) +
                                   "/sequences:" + std::to_string(n) +
                                   "/depth:" + std::to_string(depth) +
                                   "/threads:" + std::to_string(threads);
          benchmark::RegisterBenchmark(name.c_str(), RunStep, dtype,
                                       KvFormat::kF16, n, depth, threads)
              ->UseRealTime()
              ->MeasureProcessCPUTime()
              ->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  hearth::Register();
  benchmark::RunSpecifiedBenchmarks();
}
