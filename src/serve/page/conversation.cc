#include "serve/page/conversation.h"

#include <algorithm>
#include <cstddef>

#include "base/hash.h"

namespace hearth::serve {
namespace {

// What a template may put at a prompt's end and leave out of the next one.
constexpr int kEndTokens = 16;

std::size_t TailBegin(std::size_t n_blocks, std::size_t step) {
  return n_blocks == 0 ? 0 : (n_blocks - 1) * step;
}

}  // namespace

PromptTrace::PromptTrace(std::span<const std::int32_t> ids, int block_tokens)
    : block_tokens_(block_tokens), n_tokens_(static_cast<int>(ids.size())) {
  const auto step = static_cast<std::size_t>(block_tokens);
  std::uint64_t digest = 0;
  for (std::size_t end = step; end <= ids.size(); end += step) {
    // Each digest stands for all tokens before it, too.
    const std::uint64_t both[] = {
        digest, Checksum64(std::as_bytes(ids.subspan(end - step, step)))};
    digest = Checksum64(std::as_bytes(std::span(both)));
    block_ends_.push_back(digest);
  }
  const auto tail = ids.subspan(TailBegin(block_ends_.size(), step));
  tail_.assign(tail.begin(), tail.end());
}

bool PromptTrace::GoesOnIn(std::span<const std::int32_t> later,
                           const PromptTrace& later_trace) const {
  if (n_tokens_ == 0 || block_tokens_ != later_trace.block_tokens_) {
    return false;
  }
  // All blocks but the last full one by their digests, the rest by its ids.
  const std::size_t begin =
      TailBegin(block_ends_.size(), static_cast<std::size_t>(block_tokens_));
  const std::size_t n_sure = block_ends_.empty() ? 0 : block_ends_.size() - 1;
  if (later_trace.block_ends_.size() < n_sure || later.size() < begin ||
      (n_sure > 0 &&
       block_ends_[n_sure - 1] != later_trace.block_ends_[n_sure - 1])) {
    return false;
  }
  const auto rest = later.subspan(begin);
  const auto parted =
      std::mismatch(tail_.begin(), tail_.end(), rest.begin(), rest.end());
  const auto common =
      begin + static_cast<std::size_t>(parted.first - tail_.begin());
  // A short prompt has no end that could be left out: half of it must agree.
  const int slack = std::min(kEndTokens, n_tokens_ / 4);
  return static_cast<int>(common) >= n_tokens_ - slack;
}

}  // namespace hearth::serve
