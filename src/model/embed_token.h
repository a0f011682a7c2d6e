// The first row of the residual stream, computed by the host on every device:
// one row of a matrix is read, which need not lie on a device for that.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"
#include "model/weights.h"

namespace hearth {

// row: [d_model]; the token's embedding, scaled, and that of its position where
// the model has learned ones.
void EmbedToken(const LoadedModel& model, const Kernels& kernels,
                std::int32_t token, int position, float* row);

}  // namespace hearth
