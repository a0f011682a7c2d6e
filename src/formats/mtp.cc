#include "formats/mtp.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "formats/gguf/gguf_model.h"
#include "formats/huggingface/huggingface.h"
#include "formats/locate/model_folder.h"
#include "kernels/kernels.h"

namespace hearth {
namespace {

// Those whose blocks read what the head reads. Blocks of DeepSeek V3 and GLM
// read the stream before the final norm.
constexpr std::string_view kArchitectures[] = {"qwen35", "qwen35moe",
                                               "qwen3next"};
constexpr char kRemedy[] =
    "; guess by prompt lookup, or with a smaller model of the same vocabulary";

}  // namespace

Result<void> CheckMtp(const std::string& architecture, std::int64_t n,
                      const std::string& label) {
  if (n < 1) {
    return {Code::kUnsupported,
            label +
                ": the file has no block for multi-token prediction (many "
                "conversions leave it out)" +
                kRemedy};
  }
  if (std::find(std::begin(kArchitectures), std::end(kArchitectures),
                architecture) == std::end(kArchitectures)) {
    return {Code::kUnsupported,
            label +
                ": there is no code for the blocks for multi-token "
                "prediction of architecture " +
                architecture + kRemedy};
  }
  if (n > 1) {
    return {Code::kUnsupported, label + ": " + std::to_string(n) +
                                    " blocks for multi-token prediction, of "
                                    "which one is supported" +
                                    kRemedy};
  }
  return {};
}

Result<MtpBlock> AssembleMtp(ModelConfig config, const WeightPlan& plan,
                             const NameScheme& names, TensorSet& tensors) {
  config.n_layers = 1;
  config.layer_kinds = {LayerKind{}};
  HEARTH_TRY(CheckConfig(config, tensors.label()));
  MtpBlock block;
  const std::int64_t d = config.d_model;
  HEARTH_ASSIGN(block.fc.w, tensors.Linear(kMtpProjection, d, 2 * d));
  for (auto [name, norm] : {std::pair{kMtpEmbeddingNorm, &block.embedding_norm},
                            std::pair{kMtpHiddenNorm, &block.hidden_norm}}) {
    const std::uint64_t shape[] = {static_cast<std::uint64_t>(d)};
    HEARTH_ASSIGN(norm->weight, tensors.Floats(name, shape));
    for (float& w : norm->weight) w += plan.norm_offset;
  }
  HEARTH_ASSIGN(block.model.weights,
                AssembleWeights(config, plan, names, tensors));
  block.model.path = tensors.label();
  block.model.config = std::move(config);
  return block;
}

Result<MtpBlock> LoadMtp(const std::string& path) {
  HEARTH_TRY(CheckIsaChoice());
  std::error_code ignored;
  std::string found = path;
  if (std::filesystem::is_directory(found, ignored)) {
    HEARTH_ASSIGN(found, ModelInFolder(path));
    if (std::filesystem::is_directory(found, ignored)) {
      return LoadHuggingFaceMtp(found);
    }
  }
  HEARTH_ASSIGN(MappedFile file, MappedFile::Open(found));
  if (!AsText(file.bytes()).starts_with("GGUF")) {
    HEARTH_TRY(CheckMtp("", 0, found));
  }
  HEARTH_ASSIGN(MtpBlock block, LoadGgufMtp(file.bytes(), found));
  block.model.files.push_back(std::move(file));
  return block;
}

}  // namespace hearth
