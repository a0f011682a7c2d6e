// Where an engine's forward pass runs, and the operations of that.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "cache/kv_spec.h"
#include "hearth/engine.h"
#include "hearth/options.h"
#include "model/ops.h"

namespace hearth {

struct ChosenDevice {
  std::unique_ptr<Ops> ops;
  DeviceReport report;
};

// `model` and `pool` outlive the operations. With DeviceChoice::kAuto whatever
// stands against a card is in the report, and the CPU is taken; with kCuda it
// is the error.
Result<ChosenDevice> ChooseDevice(const EngineOptions& options,
                                  const LoadedModel& model, const KvSpec& spec,
                                  ThreadPool& pool);

}  // namespace hearth
