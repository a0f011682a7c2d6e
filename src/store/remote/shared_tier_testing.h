// A redis-server, and machines with a directory each that share it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "store/remote/redis_server_testing.h"
#include "store/remote/tiered_store.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {

class SharedTier : public testing::Test {
 protected:
  std::unique_ptr<KvStore> Machine(const std::string& name,
                                   const std::string& url,
                                   std::shared_ptr<const Vault> vault = nullptr,
                                   int deadline_ms = 60'000) const {
    StoreOptions options;
    options.remote_url = url;
    options.remote_deadline_ms = deadline_ms;
    options.remote_pause_s = 3600;
    options.remote_trusted = vault == nullptr;
    options.vault = std::move(vault);
    return KvStore::Open(dir_.path() + "/" + name, options).value();
  }
  StoreMatch Find(KvStore& store, const TinyPrompt& prompt) const {
    StoreMatch match =
        LookUp(store, prompt.identity, prompt.spec, prompt.tokens);
    EXPECT_TRUE(IsExact(match, prompt.identity, prompt.spec, prompt.tokens));
    return match;
  }

  TempDir dir_;
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
  RedisServer server_;
};

}  // namespace hearth
