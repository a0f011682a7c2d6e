#include <string>

#include "model/cuda/cuda_ops.h"
#include "tensor/codebook/spelled_block.h"

namespace hearth {
namespace {

constexpr char kSpelledOut[] = "weights in IQ1, IQ2, IQ3 or TQ formats";

// What of a layer has no kernels; null: all has.
const char* MissingOf(const LayerKind& kind, const LayerWeights& weights) {
  switch (kind.mixer) {
    case Mixer::kAttention:
      break;
    case Mixer::kShortConv:
      return "short convolutions";
    case Mixer::kDeltaNet:
      return "gated delta nets";
    case Mixer::kMamba2:
    case Mixer::kAttentionAndMamba2:
      return "Mamba-2 layers";
    case Mixer::kNone:
      return "layers without attention";
  }
  if (kind.ffn != Ffn::kUsual) return "layers of two kinds";
  if (kind.d_mlp != 0) return "layers of several widths";
  if (kind.values_from_keys) return "values made from keys";
  if (!weights.scale.empty()) return "scaled layers";
  for (const Linear* linear : {&weights.q, &weights.k, &weights.v, &weights.qkv,
                               &weights.o, &weights.mlp.gate, &weights.mlp.up,
                               &weights.mlp.gate_up, &weights.mlp.down}) {
    if (IsSpelledOut(linear->w.dtype)) return kSpelledOut;
  }
  return nullptr;
}

const char* MissingOf(const LoadedModel& model) {
  const ModelConfig& config = model.config;
  if (!model.adapters.empty()) return "adapters";
  if (config.n_experts > 0) return "a mixture of experts";
  if (IsSpelledOut(model.weights.head.w.dtype)) return kSpelledOut;
  if (config.latent.kv_rank > 0) return "latent attention";
  if (config.value_norm) return "norms of values";
  if (config.d_layer_input > 0) return "inputs of layers";
  if (config.part_scales != PartScales{}) return "scaled parts";
  if (config.mlp == MlpKind::kReluSquared) return "squared activations";
  for (int i = 0; i < config.n_layers; ++i) {
    const char* missing = MissingOf(
        config.KindOf(i), model.weights.layers[static_cast<std::size_t>(i)]);
    if (missing != nullptr) return missing;
  }
  return nullptr;
}

}  // namespace

Result<void> CheckDeviceRuns(const LoadedModel& model) {
  const char* missing = MissingOf(model);
  if (missing == nullptr) return {};
  return {Code::kUnsupported,
          model.config.name + " has " + missing +
              ", for which there are no kernels on NVIDIA cards yet; use the "
              "CPU"};
}

}  // namespace hearth
