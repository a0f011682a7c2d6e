// What is stored, by looking at every file: what lookups are compared with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "store/directory/layout.h"
#include "store/format/token_reader.h"

namespace hearth {

// Every image of a store, by looking at all files.
class AllImages {
 public:
  explicit AllImages(const std::string& root) {
    const auto opened = Directory::Open(FileOps::System(), root);
    const auto blocks = opened->Sub(kBlocksName);
    if (!blocks.ok()) return;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root + "/blocks")) {
      const auto id = BlockIdOf(entry.path().filename().string());
      if (!id.has_value()) continue;
      images_[*id] = ReadBlockHeader(*blocks, *id).value();
    }
  }
  // Whether the block is here with all pieces that it stands behind.
  bool Has(const Digest& id) const {
    const auto found = images_.find(id);
    return found != images_.end() &&
           (found->second.first_token == 0 || Has(IdBefore(found->second)));
  }
  // The most of `rest` that an image behind `parent` has: of one that is named
  // by its beginning, and of any.
  std::pair<int, int> LongestStart(const Digest& parent,
                                   std::span<const std::int32_t> rest) const {
    int exact = 0, any = 0;
    for (const auto& [id, header] : images_) {
      if (header.parent_id != parent || !Has(id)) continue;
      const auto n = static_cast<int>(std::mismatch(header.tokens.begin(),
                                                    header.tokens.end(),
                                                    rest.begin(), rest.end())
                                          .first -
                                      header.tokens.begin());
      any = std::max(any, n);
      if (n == static_cast<int>(header.tokens.size())) {
        exact = std::max(exact, n);
      }
    }
    return {exact, any};
  }

  // That the first blocks of these prompts stand behind. REQUIRES: not empty,
  // and all of one identity.
  Digest root_id() const { return images_.begin()->second.root_id; }
  bool empty() const { return images_.empty(); }

 private:
  std::unordered_map<Digest, BlockHeader> images_;
};

}  // namespace hearth
