// Token ids of stored prompts, which stand in the headers of their blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/files/directory.h"
#include "base/hash.h"
#include "store/format/prompt_file.h"

namespace hearth {

// Remembers what it read: prompts share blocks. Not for several threads.
class TokenReader {
 public:
  // `root`: of the store. Must outlive the reader.
  explicit TokenReader(const Directory& root) : root_(root) {}

  // The prompt's leading tokens, up to the first image that is missing or
  // damaged, or until `go_on`, asked after each image, declines what was read.
  using GoOn = std::function<bool(std::span<const std::int32_t>)>;
  std::vector<std::int32_t> Read(const PromptHeader& prompt,
                                 const GoOn& go_on = {});

 private:
  // Of the block up to the image's end; empty when it cannot be read.
  const std::vector<std::int32_t>& TokensOf(const PromptHeader& prompt,
                                            std::size_t index);

  const Directory& root_;
  std::unordered_map<Digest, std::vector<std::int32_t>> known_;
};

// The header of the file of image `id`: its first page, or all of an encrypted
// one. `blocks`: the store's folder of blocks.
Result<BlockHeader> ReadBlockHeader(const Directory& blocks, const Digest& id);
// The same of the file `name` in `folder`.
Result<BlockHeader> ReadBlockHeader(const Directory& folder,
                                    const std::string& name);

// The same of a file of states.
Result<BlockHeader> ReadStateHeader(const Directory& folder,
                                    const std::string& name);

}  // namespace hearth
