// A store that is given trouble: saved to, looked up in and mended.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {

class StoreTrial : public testing::Test {
 protected:
  std::unique_ptr<KvStore> OpenStore() {
    options_.tidy_in_background = false;
    auto store = KvStore::Open(root_, options_);
    EXPECT_TRUE(store.ok()) << store.error().message;
    return std::move(store).value();
  }
  Result<void> Save(int first = 100) {
    const TinyPrompt prompt(identity_, spec_, TinyTokens(41, first));
    return prompt.SaveTo(*OpenStore());
  }
  int Found(int first = 100) {
    return LookUp(*OpenStore(), identity_, spec_, TinyTokens(41, first))
        .n_tokens;
  }
  std::string PathOfBlock(std::size_t index) const {
    const StorePath path =
        BlockPath(BlockChain(identity_, TinyTokens(41), 16)[index].id);
    return root_ + "/" + path.folder + "/" + path.name;
  }
  std::string PathOfManifest(int first = 100) const {
    const BlockChain chain(identity_, TinyTokens(41, first), 16);
    return root_ + "/prompts/" + PromptStem("tiny", chain.end_id()) +
           ".kvcache";
  }
  // Saving mends what stands in the store's way, and says nothing about it.
  void ExpectMended(const std::string& what) {
    const auto saved = Save();
    EXPECT_TRUE(saved.ok()) << what << ": " << saved.error().message;
    const auto match = LookUp(*OpenStore(), identity_, spec_, TinyTokens(41));
    EXPECT_EQ(match.n_tokens, 41) << what << ": " << match.miss_reason;
    EXPECT_TRUE(match.warnings.empty()) << what;
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
  StoreOptions options_;
};

}  // namespace hearth
