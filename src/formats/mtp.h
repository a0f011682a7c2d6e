// The multi-token-prediction block of a model's files (model/mtp.h), which
// loading the model itself leaves out.
#pragma once

#include <string>

#include "formats/assemble/assemble.h"
#include "formats/tensors/tensor_set.h"
#include "hearth/result.h"
#include "model/mtp.h"

namespace hearth {

// `path`: as LoadModel's. kUnsupported, with the remedy, when there is no such
// block, there are several, or they are of a family for which there is no code.
Result<MtpBlock> LoadMtp(const std::string& path);

// --- For the two readers -----------------------------------------------------

// kUnsupported unless blocks of this architecture are read, and `n` is one.
Result<void> CheckMtp(const std::string& architecture, std::int64_t n,
                      const std::string& label);
// `config` and `plan`: of the model. `tensors` have the block's layer under the
// names of the model's layer 0, its last norm under that of the model's, and
// kMtpProjection, kMtpEmbeddingNorm and kMtpHiddenNorm.
Result<MtpBlock> AssembleMtp(ModelConfig config, const WeightPlan& plan,
                             const NameScheme& names, TensorSet& tensors);
inline constexpr char kMtpProjection[] = "mtp.fc.weight";
inline constexpr char kMtpEmbeddingNorm[] = "mtp.pre_fc_norm_embedding.weight";
inline constexpr char kMtpHiddenNorm[] = "mtp.pre_fc_norm_hidden.weight";

}  // namespace hearth
