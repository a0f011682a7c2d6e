#include "model/draft_heads.h"

#include <algorithm>
#include <array>

namespace hearth {

DraftHeadsRunner::DraftHeadsRunner(const DraftHeads& heads,
                                   const LoadedModel& base, ThreadPool& pool)
    : heads_(heads), base_(base), kernels_(ActiveKernels()), linears_(pool) {
  for (const MedusaHead& head : heads.medusa) {
    matrices_.push_back(head.res.w);
    matrices_.push_back(head.out.w);
  }
  if (heads.kind == DraftHeadsKind::kEagle) {
    const EagleHead& head = heads.eagle;
    matrices_.insert(matrices_.end(), {head.fc1.w, head.fc2.w, head.out.w});
  }
}

void DraftHeadsRunner::Run(const Linear& linear, const float* x,
                           std::vector<float>& y) {
  y.resize(static_cast<std::size_t>(linear.w.n_out));
  linears_.Run(
      x, linear.w.n_in, 1,
      std::array<LinearCall, 1>{{{&linear, y.data(), linear.w.n_out}}});
}

void DraftHeadsRunner::Silu(std::vector<float>& x) {
  if (ones_.size() < x.size()) ones_.resize(x.size(), 1.0f);
  kernels_.silu_mul(x.data(), ones_.data(), static_cast<std::int64_t>(x.size()),
                    x.data());
}

std::int32_t DraftHeadsRunner::Best(const Linear& out, const float* h) {
  Run(out, h, logits_);
  return static_cast<std::int32_t>(kernels_.argmax(
      logits_.data(), static_cast<std::int64_t>(logits_.size())));
}

Result<void> DraftHeadsRunner::Guess(std::span<const float> hidden,
                                     std::int32_t token, int n,
                                     std::vector<std::int32_t>& guesses) {
  HEARTH_TRY(linears_.Reserve(matrices_, 1));
  const auto d = static_cast<std::int64_t>(hidden.size());
  if (heads_.kind == DraftHeadsKind::kMedusa) {
    n = std::min(n, static_cast<int>(heads_.medusa.size()));
    for (int k = 0; k < n; ++k) {
      const MedusaHead& head = heads_.medusa[static_cast<std::size_t>(k)];
      Run(head.res, hidden.data(), state_);
      Silu(state_);
      kernels_.add(hidden.data(), d, state_.data());
      guesses.push_back(Best(head.out, state_.data()));
    }
    return {};
  }
  const EagleHead& head = heads_.eagle;
  input_.resize(2 * hidden.size());
  std::copy(hidden.begin(), hidden.end(), input_.begin());
  for (int k = 0; k < n; ++k) {
    kernels_.dequantize_row(base_.weights.token_embedding, token,
                            input_.data() + d);
    Run(head.fc1, input_.data(), inner_);
    Silu(inner_);
    Run(head.fc2, inner_.data(), state_);
    Silu(state_);
    kernels_.add(input_.data(), d, state_.data());
    kernels_.layer_norm(state_.data(), head.norm.weight.data(),
                        head.norm.bias.data(), 1e-5f, d, input_.data());
    token = Best(head.out, input_.data());
    guesses.push_back(token);
  }
  return {};
}

}  // namespace hearth
