#include "model/embed_token.h"

namespace hearth {

void EmbedToken(const LoadedModel& model, const Kernels& kernels,
                std::int32_t token, int position, float* row) {
  const ModelConfig& config = model.config;
  const std::int64_t d = config.d_model;
  kernels.dequantize_row(model.weights.token_embedding, token, row);
  if (config.embedding_scale != 1.0f) {
    for (std::int64_t k = 0; k < d; ++k) row[k] *= config.embedding_scale;
  }
  if (config.learned_positions) {
    kernels.add(model.weights.position_embedding.data() + position * d, d, row);
  }
}

}  // namespace hearth
