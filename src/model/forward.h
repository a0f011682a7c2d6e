// One forward step of a model: appends tokens to a KV cache and gives logits.
//
// There is one such function. Prefill in chunks, decode, resume after a restore
// and speculative verification all call it, so the causal mask is right for
// every append length onto every cache length, and a token's keys, values and
// logits are the same bits however the sequence was cut into steps.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "hearth/result.h"
#include "model/attention.h"
#include "model/kv_port.h"
#include "model/linear.h"
#include "model/mlp.h"
#include "model/rope_table.h"
#include "model/weights.h"

namespace hearth {

enum class LogitRows : std::uint8_t {
  kNone,  // fill the cache only
  kLast,  // of the last token: [vocab_size]
  kAll    // of every token: [n][vocab_size]
};

class Forward {
 public:
  // Both must outlive the object.
  Forward(const LoadedModel& model, ThreadPool& pool);

  // Appends `tokens` (1..kStepTokensMax) at kv.n_tokens(). `logits` has room
  // for the rows asked for. Errors: kInvalidArgument for a token outside the
  // vocabulary, kResourceFull past a learned context or the cache's room; then
  // the cache is as before.
  Result<void> Step(std::span<const std::int32_t> tokens, KvPort& kv,
                    LogitRows rows, float* logits);

  // What row `row` of the last Step's logits was computed from: [d_model], the
  // residual stream after the final norm. Valid until the next Step.
  std::span<const float> FinalHidden(int row) {
    return {normed_.GetFloats(0) + row * std::int64_t{config_.d_model},
            static_cast<std::size_t>(config_.d_model)};
  }

  static constexpr int kStepTokensMax = 512;

 private:
  Result<void> CheckStep(std::span<const std::int32_t> tokens,
                         const KvPort& kv) const;
  void Embed(std::span<const std::int32_t> tokens, int first_position);
  void ComputeRope(int first_position, int n_rows);
  void RunAttention(int layer, KvPort& kv, int first_position, int n_rows);
  void Project(const LayerWeights& layer, const float* x, int n_rows);
  void NormalizeHeads(const LayerWeights& layer, int n_rows);
  QueryRows RotateSinkQueries(RopeUse use, LayerSight sight, int first_position,
                              int n_rows);
  void RotateHeads(RopeUse use, int n_rows);
  // The last row becomes the only one.
  void KeepLastRow(int n_rows);
  void RunMlp(const LayerWeights& layer, int n_rows);
  const float* NormalizeInput(const NormWeights& norm, int n_rows);
  void Normalize(const NormWeights& norm, const float* x, int n_rows,
                 float* out);
  void AddResidual(const NormWeights& norm, float* delta, int n_rows);
  void ComputeLogits(int n_rows, int n_logits, float* logits);

  const LoadedModel& model_;
  const ModelConfig& config_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  LinearRunner linears_;
  Attention attention_;
  Mlp mlp_;
  RopeTable rope_, local_rope_, sink_rope_;
  std::int64_t q_dim_, kv_dim_, qkv_dim_;

  // Row-major, [n_rows] of the step.
  AlignedBuffer x_;         // [d_model], the residual stream
  AlignedBuffer normed_;    // [d_model]
  AlignedBuffer delta_;     // [d_model]
  AlignedBuffer qkv_;       // [q_dim + 2 * kv_dim]: queries, keys, values
  AlignedBuffer q_sink_;    // [q_dim]: queries rotated for the sink tokens
  AlignedBuffer attended_;  // [q_dim]
};

}  // namespace hearth
