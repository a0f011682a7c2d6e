// Tells which conversation a prompt goes on with, by its token ids.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth::serve {

// A prompt in little room: a digest at the end of each block, and the ids of
// the last one or two blocks.
class PromptTrace {
 public:
  PromptTrace() = default;
  PromptTrace(std::span<const std::int32_t> ids, int block_tokens);

  int n_tokens() const { return n_tokens_; }
  // Whether `later` begins with this prompt; the last few tokens may differ, as
  // they do where a template ends a prompt otherwise than it goes on.
  bool GoesOnIn(std::span<const std::int32_t> later,
                const PromptTrace& later_trace) const;

 private:
  int block_tokens_ = 1;
  int n_tokens_ = 0;
  std::vector<std::uint64_t> block_ends_;
  std::vector<std::int32_t> tail_;  // from the last but one full block on
};

}  // namespace hearth::serve
