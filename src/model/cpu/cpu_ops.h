// The operations of a forward step on the CPU's threads, and the numerics that
// docs/kernels.md lays down.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "model/ops.h"

namespace hearth {

// Both must outlive it. The model's configuration is final.
std::unique_ptr<Ops> MakeCpuOps(const LoadedModel& model, ThreadPool& pool);

}  // namespace hearth
