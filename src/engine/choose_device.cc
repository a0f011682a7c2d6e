#include "engine/choose_device.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cuda/driver_device.h"
#include "model/cpu/cpu_ops.h"
#include "model/cuda/cuda_ops.h"
#include "model/forward.h"

namespace hearth {
namespace {

// Of the card, for the rows of a step.
constexpr std::uint64_t kStepBytes = std::uint64_t{768} << 20;
// Left free for others where the user does not say how much to take.
constexpr std::uint64_t kLeftFree = std::uint64_t{256} << 20;

// Of a model whose weights take less, the processor makes tokens as fast as a
// card or faster, and begins at once: a start of the card costs a quarter of a
// second, and a step the same however small it is
// (bench/results/2026-11-30-h200.md).
constexpr std::uint64_t kSmallBytes = std::uint64_t{96} << 20;

std::string MiB(std::uint64_t bytes) {
  return std::to_string((bytes >> 20) + 1) + " MiB";
}

// What keys and values may take beside the weights. kResourceFull when that is
// less than one step's.
Result<std::uint64_t> KvBytesOn(const gpu::Device& card,
                                const EngineOptions& options,
                                std::uint64_t weight_bytes,
                                const KvSpec& spec) {
  const std::uint64_t free = card.free_bytes();
  const std::uint64_t wanted = options.gpu_memory_bytes;
  const std::uint64_t all =
      wanted > 0 ? wanted : free - std::min(free, kLeftFree);
  const std::uint64_t least =
      weight_bytes + kStepBytes + spec.BytesOf(2 * Forward::kStepTokensMax);
  if (all < least || free < least) {
    return {Code::kResourceFull,
            "the model needs " + MiB(weight_bytes) +
                " of the card for its weights, and with a step's rows and "
                "their keys and values " +
                MiB(least) + "; " + std::string(card.name()) + " has " +
                MiB(free) + " free" +
                (wanted > 0 ? ", and " + MiB(wanted) + " are allowed" : "") +
                ": use a smaller model, or the CPU"};
  }
  return std::min(all, free) - weight_bytes - kStepBytes;
}

Result<ChosenDevice> OnCard(std::shared_ptr<gpu::Device> card,
                            const EngineOptions& options,
                            const LoadedModel& model, const KvSpec& spec,
                            ThreadPool& pool) {
  if (options.kv_growth == KvGrowth::kConcat) {
    return {Code::kUnsupported,
            "the concat reference keeps its keys and values in the host's "
            "memory; let them grow in place, or use the CPU"};
  }
  HEARTH_TRY(CheckDeviceRuns(model));
  const std::uint64_t weight_bytes = DeviceWeightBytes(model);
  HEARTH_ASSIGN(const std::uint64_t kv_bytes,
                KvBytesOn(*card, options, weight_bytes, spec));
  ChosenDevice chosen;
  chosen.report = {.name = std::string(card->name()),
                   .why = {},
                   .weight_bytes = weight_bytes,
                   .kv_bytes = kv_bytes};
  HEARTH_ASSIGN(chosen.ops,
                MakeCudaOps(model, pool, std::move(card), kv_bytes));
  return chosen;
}

// Why the processor computes where nobody chose; empty: a card may.
std::string WhyNoCard(const LoadedModel& model) {
  const std::uint64_t weight_bytes = DeviceWeightBytes(model);
  if (weight_bytes < kSmallBytes) {
    return "a card starts later and is hardly faster with weights of " +
           MiB(weight_bytes);
  }
  if (IsSlowOnDevice(model)) {
    return "a card is slower with weights that lie input by input (.tinygpt, "
           "GPT-2)";
  }
  return {};
}

}  // namespace

Result<ChosenDevice> ChooseDevice(const EngineOptions& options,
                                  const LoadedModel& model, const KvSpec& spec,
                                  ThreadPool& pool) {
  std::string why, note;
  const bool must = options.device == DeviceChoice::kCuda;
  // Without kernels there is no other device to explain.
  if (options.device == DeviceChoice::kAuto && gpu::HasKernels()) {
    note = WhyNoCard(model);
  }
  if (note.empty() && options.device != DeviceChoice::kCpu) {
    auto card = gpu::OpenCard();
    if (card.ok()) {
      auto chosen = OnCard(std::move(*card), options, model, spec, pool);
      if (chosen.ok() || must) return chosen;
      why = chosen.error().message;
    } else if (must) {
      return card.error();
    }
    // Where no card is, nobody expects one: nothing to explain.
  }
  ChosenDevice chosen;
  chosen.ops = MakeCpuOps(model, pool);
  chosen.report.name = "CPU";
  chosen.report.why = std::move(why);
  chosen.report.note = std::move(note);
  return chosen;
}

}  // namespace hearth
