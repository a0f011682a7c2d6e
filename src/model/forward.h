// One forward step of a model: appends tokens to the KV caches of one or more
// sequences and gives logits.
//
// There is one such function. Prefill in chunks, decode, resume after a
// restore, speculative verification and any mixture of these over several
// sequences call it, so the causal mask is right for every append length onto
// every cache length, and a token's keys, values and logits are the same bits
// however its sequence was cut into steps and whatever else was in them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hearth/result.h"
#include "model/kv_port.h"
#include "model/ops.h"
#include "model/weights.h"

namespace hearth {

enum class LogitRows : std::uint8_t {
  kNone,  // fill the cache only
  kLast,  // of the last token: [vocab_size]
  kAll    // of every token: [n][vocab_size]
};

// One sequence's share of a step.
struct StepPart {
  KvPort* kv = nullptr;
  std::span<const std::int32_t> tokens;  // appended at kv->n_tokens()
  LogitRows want = LogitRows::kNone;
  // Room for the rows asked for. Parts whose rows lie one behind the other in
  // the parts' order are written without a copy.
  float* logits = nullptr;
  // Room for [d_model] for each row of logits, or null: what they were computed
  // from, the residual stream after the final norm.
  float* hidden = nullptr;
};

class Forward {
 public:
  // `model` outlives the object, and its configuration is final.
  Forward(const LoadedModel& model, std::unique_ptr<Ops> ops);

  // Appends every part's tokens; linear layers see all rows as one matrix.
  // A step that fails changes no sequence. Errors: kInvalidArgument for a token
  // outside the vocabulary; kResourceFull past a learned context, a cache's
  // room or the machine's memory; kCorrupt when NaNs or infinities come out.
  // REQUIRES: 1 to kStepTokensMax tokens in all and in every part at least one;
  // no two parts of one KvPort.
  Result<void> Step(std::span<const StepPart> parts);
  Result<void> Step(const StepPart& part) { return Step(std::span(&part, 1)); }

  Numerics numerics() const { return ops_->numerics(); }

  static constexpr int kStepTokensMax = 512;

 private:
  Result<void> CheckPart(const StepPart& part) const;
  void Collect(std::span<const StepPart> parts);
  Result<void> Compute(std::span<const StepPart> parts);
  void RunLayer(const LayerPlan& layer);
  void RunMixer(const LayerPlan& layer);
  void RunAttention(const LayerPlan& layer, Rows in);
  Rows NormalizeInput(const NormWeights& norm);
  void KeepWantedRows(std::span<const StepPart> parts);
  Result<void> ComputeLogits(std::span<const StepPart> parts);
  Error NonFinite(int layer, std::span<const StepPart> parts) const;

  const LoadedModel& model_;
  const ModelConfig& config_;
  std::unique_ptr<Ops> ops_;
  std::vector<LayerPlan> layers_;
  int first_without_kv_;

  // Of the step that runs.
  StepBatch batch_;
  StepRows rows_;
};

}  // namespace hearth
