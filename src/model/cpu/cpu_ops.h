// The operations of a forward step on the CPU's threads, and the numerics that
// docs/kernels.md lays down.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "model/ops.h"

namespace hearth {

class LinearInputs;

// All must outlive it. The model's configuration is final. `inputs` looks at
// what every linear layer sees (linear.h); mostly null.
std::unique_ptr<Ops> MakeCpuOps(const LoadedModel& model, ThreadPool& pool,
                                LinearInputs* inputs = nullptr);

}  // namespace hearth
