// The operations of a forward step on a device of src/cuda: the CPU's numerics
// (profile "exact", which is the empty name), bit for bit.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "cuda/device.h"
#include "model/ops.h"

namespace hearth {

// kUnsupported when the model has parts that have no kernels yet; says which.
Result<void> CheckDeviceRuns(const LoadedModel& model);

// Bytes of the device that the weights take.
std::uint64_t DeviceWeightBytes(const LoadedModel& model);
// Whether a card takes several times as long with its weights as a processor:
// those that lie input by input, .tinygpt and GPT-2
// (bench/results/2026-12-01-h200.md).
bool IsSlowOnDevice(const LoadedModel& model);

// Sends the weights; keys and values may take up to `kv_bytes` of the device.
// kUnsupported, kResourceFull and kIo as above and as gpu::Device. `model` and
// `pool` outlive the object; sequences must have blocks (KvPort::device).
Result<std::unique_ptr<Ops>> MakeCudaOps(const LoadedModel& model,
                                         ThreadPool& pool,
                                         std::shared_ptr<gpu::Device> device,
                                         std::uint64_t kv_bytes);

}  // namespace hearth
