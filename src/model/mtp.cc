#include "model/mtp.h"

#include <array>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "model/cpu/cpu_ops.h"
#include "model/embed_token.h"

namespace hearth {
namespace {

std::size_t Width(const MtpBlock& block) {
  return static_cast<std::size_t>(block.model.config.d_model);
}

}  // namespace

MtpRunner::MtpRunner(MtpBlock block, const LoadedModel& base, ThreadPool& pool)
    : block_(std::move(block)),
      base_(base),
      kernels_(ActiveKernels()),
      linears_(pool),
      pair_(2 * Width(block_)),
      input_(Width(block_)),
      hidden_(Width(block_)),
      logits_(static_cast<std::size_t>(block_.model.config.vocab_size)),
      forward_(block_.model, MakeCpuOps(block_.model, pool)) {
  // What a step of the block reads is no token's embedding: it lies where the
  // embedding of token 0 would.
  block_.model.weights.token_embedding = {
      .dtype = DType::kF32,
      .layout = WeightLayout::kOutIn,
      .n_out = 1,
      .n_in = config().d_model,
      .data = std::as_bytes(std::span(input_)).data()};
}

void MtpRunner::Normalize(const NormWeights& norm, const float* x,
                          float* out) const {
  kernels_.rms_norm(x, norm.weight.data(), config().norm_eps, config().d_model,
                    out);
}

Result<void> MtpRunner::Run(KvPort& kv, std::span<const float> hidden,
                            std::int32_t token, LogitRows want) {
  HEARTH_CHECK(hidden.size() == input_.size());
  const std::int64_t d = config().d_model;
  if (token < 0 || token >= base_.config.vocab_size) {
    return {Code::kInvalidArgument, "token id " + std::to_string(token) +
                                        " is outside the model's vocabulary"};
  }
  HEARTH_TRY(linears_.Reserve(std::span(&block_.fc.w, 1), 1));
  EmbedToken(base_, kernels_, token, kv.n_tokens(), pair_.data());
  Normalize(block_.embedding_norm, pair_.data(), pair_.data());
  Normalize(block_.hidden_norm, hidden.data(), pair_.data() + d);
  linears_.Run(pair_.data(), 2 * d, 1,
               std::array<LinearCall, 1>{{{&block_.fc, input_.data(), d}}});
  constexpr std::int32_t kInput = 0;
  return forward_.Step({.kv = &kv,
                        .tokens = std::span(&kInput, 1),
                        .want = want,
                        .logits = logits_.data(),
                        .hidden = hidden_.data()});
}

Result<void> MtpRunner::Append(KvPort& kv, std::span<const float> hidden,
                               std::int32_t token) {
  return Run(kv, hidden, token, LogitRows::kNone);
}

Result<std::int32_t> MtpRunner::Guess(KvPort& kv, std::span<const float> hidden,
                                      std::int32_t token) {
  HEARTH_TRY(Run(kv, hidden, token, LogitRows::kLast));
  return static_cast<std::int32_t>(
      kernels_.argmax(logits_.data(), config().vocab_size));
}

}  // namespace hearth
