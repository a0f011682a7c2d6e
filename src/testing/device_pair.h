// One model on the CPU and on a device, the same steps on both: every bit of
// the logits and of the blocks of keys and values has to be the same.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/kv_sequence.h"
#include "cuda/device.h"
#include "engine/kv_setup.h"
#include "model/cpu/cpu_ops.h"
#include "model/cuda/cuda_ops.h"
#include "model/forward.h"

namespace hearth {

class DevicePair {
 public:
  DevicePair(const LoadedModel& model, std::shared_ptr<gpu::Device> device,
             KvFormat keys, KvFormat values, int block_tokens, unsigned seed,
             std::uint64_t kv_bytes = std::uint64_t{1} << 30)
      : vocab_(static_cast<std::size_t>(model.config.vocab_size)),
        spec_(SpecOf(model.config, keys, values, block_tokens)),
        retention_(RetentionOf(model.config)),
        kv_pool_(*MakeKvPool(spec_, retention_, {.n_blocks = 64})),
        pool_(1),
        cpu_(model, MakeCpuOps(model, pool_)),
        gpu_(model, *MakeCudaOps(model, pool_, std::move(device), kv_bytes)),
        rng_(seed) {}

  // The same tokens in a sequence of each.
  struct Twins {
    std::vector<std::int32_t> ids;
    std::unique_ptr<KvSequence> cpu, gpu;
  };
  Twins New() {
    return {{},
            MakeInPlaceSequence(kv_pool_, spec_, retention_),
            MakeInPlaceSequence(kv_pool_, spec_, retention_)};
  }
  int Random(int low, int high) {
    return low +
           static_cast<int>(rng_() % static_cast<unsigned>(high - low + 1));
  }

  // One step on both: to each of the sequences some random tokens.
  void Step(std::vector<std::pair<Twins*, int>> shares) {
    std::vector<StepPart> cpu, gpu;
    std::vector<std::vector<std::int32_t>> tokens;
    std::vector<std::vector<float>> logits;
    for (const auto& [twins, n] : shares) {
      auto& some = tokens.emplace_back();
      for (int i = 0; i < n; ++i) {
        some.push_back(Random(0, static_cast<int>(vocab_) - 1));
      }
      twins->ids.insert(twins->ids.end(), some.begin(), some.end());
    }
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const auto want = static_cast<LogitRows>(Random(1, 2));
      const std::size_t rows = want == LogitRows::kLast ? 1 : tokens[i].size();
      for (auto* parts : {&cpu, &gpu}) {
        auto& out = logits.emplace_back(rows * vocab_, 0.0f);
        parts->push_back(
            {.kv = (parts == &cpu ? shares[i].first->cpu : shares[i].first->gpu)
                       .get(),
             .tokens = tokens[i],
             .want = want,
             .logits = out.data()});
      }
    }
    const auto on_cpu = cpu_.Step(cpu);
    const auto on_gpu = gpu_.Step(gpu);
    ASSERT_TRUE(on_cpu.ok()) << on_cpu.error().message;
    ASSERT_TRUE(on_gpu.ok()) << on_gpu.error().message;
    for (std::size_t i = 0; i < logits.size(); i += 2) {
      ASSERT_EQ(FirstDifference(logits[i], logits[i + 1]), -1)
          << "sequence of " << shares[i / 2].first->ids.size() << " tokens";
    }
  }
  // Every block that both still have.
  void CompareBlocks(const Twins& twins) {
    const int n = spec_.block_tokens;
    for (int b = 0; b < twins.cpu->n_blocks(); ++b) {
      const int live = std::min(n, twins.cpu->n_tokens() - b * n);
      if (!twins.cpu->HasImage(b, live)) continue;
      ASSERT_TRUE(twins.gpu->HasImage(b, live));
      const auto cpu = twins.cpu->Image(b, live);
      const auto gpu = twins.gpu->Image(b, live);
      ASSERT_TRUE(cpu.ok() && gpu.ok());
      ASSERT_EQ(cpu->payload.size(), gpu->payload.size());
      ASSERT_EQ(std::memcmp(cpu->payload.data(), gpu->payload.data(),
                            cpu->payload.size()),
                0)
          << "block " << b;
    }
  }
  bool HasAllBlocks(const Twins& twins) const {
    const int n = spec_.block_tokens;
    for (int b = 0; b < twins.cpu->n_blocks(); ++b) {
      const int live = std::min(n, twins.cpu->n_tokens() - b * n);
      if (!twins.cpu->HasImage(b, live)) return false;
    }
    return true;
  }
  // The CPU's sequence goes on from blocks that the device made, and the device
  // from blocks of the CPU.
  void Exchange(Twins& twins) {
    Twins fresh = New();
    const int n = spec_.block_tokens;
    for (int b = 0; b < twins.cpu->n_blocks(); ++b) {
      const int live = std::min(n, twins.cpu->n_tokens() - b * n);
      const auto cpu = twins.cpu->Image(b, live);
      const auto gpu = twins.gpu->Image(b, live);
      ASSERT_TRUE(cpu.ok() && gpu.ok());
      ASSERT_TRUE(
          fresh.cpu->AppendStored(gpu->payload, live, gpu->owner, false).ok());
      ASSERT_TRUE(
          fresh.gpu->AppendStored(cpu->payload, live, cpu->owner, false).ok());
    }
    twins.cpu = std::move(fresh.cpu);
    twins.gpu = std::move(fresh.gpu);
  }

  std::int64_t FirstDifference(const std::vector<float>& a,
                               const std::vector<float>& b) const {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
        return static_cast<std::int64_t>(i);
      }
    }
    return -1;
  }

 private:
  std::size_t vocab_;
  KvSpec spec_;
  KvRetention retention_;
  std::shared_ptr<BlockPool> kv_pool_;
  ThreadPool pool_;
  Forward cpu_, gpu_;
  std::mt19937 rng_;
};

struct DeviceCheck {
  KvFormat keys = KvFormat::kF16, values = KvFormat::kF16;
  int block_tokens = 16;
  int n_prompt = 20;
  unsigned seed = 1;
  bool all = true;  // else the prompt, a token, and a batch
};

// Forks, rewinds and blocks that change sides.
inline void CheckMoves(DevicePair& pair, DevicePair::Twins& a,
                       DevicePair::Twins& b, int block_tokens) {
  const auto failed = [] { return ::testing::Test::HasFatalFailure(); };
  DevicePair::Twins fork{a.ids, *a.cpu->Fork(), *a.gpu->Fork()};
  for (int i = 0; i < 2 && !failed(); ++i) {
    pair.Step({{&fork, 1}, {&b, 3}, {&a, 1}});
  }
  if (failed()) return;
  const int cut = a.cpu->RewindableTo(a.cpu->n_tokens() - 3);
  ASSERT_EQ(a.gpu->RewindableTo(a.gpu->n_tokens() - 3), cut);
  a.cpu->Rewind(cut);
  a.gpu->Rewind(cut);
  pair.Step({{&a, 2}, {&b, 1}});
  if (failed() || !pair.HasAllBlocks(a)) return;
  pair.Exchange(a);
  if (failed()) return;
  pair.Step({{&a, 1}});
  if (failed()) return;
  pair.Step({{&a, block_tokens + 3}, {&fork, 2}});
}

// Prompts, single tokens and batches, and what else happens to sequences.
inline void CheckDevice(const LoadedModel& model,
                        const std::shared_ptr<gpu::Device>& device,
                        const DeviceCheck& check) {
  SCOPED_TRACE(std::string(NameOf(check.keys)) + " " +
               std::string(NameOf(check.values)));
  DevicePair pair(model, device, check.keys, check.values, check.block_tokens,
                  check.seed);
  DevicePair::Twins a = pair.New(), b = pair.New();
  const auto failed = [] { return ::testing::Test::HasFatalFailure(); };
  pair.Step({{&a, check.n_prompt}});
  if (failed()) return;
  pair.Step({{&a, 1}});
  if (failed()) return;
  pair.Step({{&b, 3}, {&a, pair.Random(2, check.all ? 30 : 4)}});
  if (failed()) return;
  pair.CompareBlocks(a);
  if (check.all && !failed()) CheckMoves(pair, a, b, check.block_tokens);
}

}  // namespace hearth
