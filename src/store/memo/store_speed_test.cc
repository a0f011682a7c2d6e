// What storing and loading cost, beside what the disk and the memory give on
// the same machine. Prints a table; HEARTH_SPEED_MB=1024 for a real figure (in
// a release build). Asserts only that the answer is right.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/stopwatch.h"
#include "store/directory/dir_store.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

void Row(const char* what, std::uint64_t bytes, double seconds) {
  std::printf("%-44s %8.2f GB/s  %9.2f ms\n", what,
              static_cast<double>(bytes) * 1e-9 / seconds, seconds * 1e3);
}

// Reads every byte, as attention would.
std::uint64_t Sum(ByteSpan bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    sum += LoadLe<std::uint64_t>(bytes.data() + i);
  }
  return sum;
}

// The disk alone: one file, written in one go and flushed.
double PlainDurableWrite(const std::string& path, ByteSpan bytes) {
  const Stopwatch watch;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n <= 0) break;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  EXPECT_EQ(::fsync(fd), 0);
  ::close(fd);
  return watch.ms() * 1e-3;
}

// 1.5 MiB a block.
KvSpec SpeedSpec() {
  return KvSpec(UniformKv{.n_layers = 12,
                          .n_heads = 8,
                          .head_dim = 64,
                          .key_format = KvFormat::kF16,
                          .value_format = KvFormat::kF16});
}

class StoreSpeed : public ::testing::Test {
 protected:
  StoreSpeed()
      : n_blocks_(static_cast<int>(Megabytes() * 1'000'000 /
                                   (64 * spec_.bytes_per_token()))),
        prompt_(identity_, spec_, TinyTokens(64 * n_blocks_)) {
    for (const auto& payload : prompt_.payloads) {
      one_piece_.insert(one_piece_.end(), payload.begin(), payload.end());
    }
    bytes_ = one_piece_.size();
    std::printf("%d blocks of 64 tokens, %.1f MB\n", n_blocks_,
                static_cast<double>(bytes_) * 1e-6);
  }

  std::unique_ptr<KvStore> Open(const StoreOptions& options) const {
    return KvStore::Open(dir_.path() + "/s", options).value();
  }
  std::unique_ptr<KvStore> Open(bool verify) const {
    StoreOptions options;
    options.verify = verify;
    return Open(options);
  }
  void RemoveStore() const { std::filesystem::remove_all(dir_.path() + "/s"); }

  void Save() const;
  void WorkOnMemory() const;
  void LookUpAll() const;
  void Encrypt() const;

  const KvSpec spec_ = SpeedSpec();
  const KvIdentity identity_ = TinyIdentity(spec_);
  const int n_blocks_;
  const TinyPrompt prompt_;
  std::vector<std::byte> one_piece_;
  std::uint64_t bytes_ = 0;
  TempDir dir_;

 private:
  static std::uint64_t Megabytes() {
    const char* size = std::getenv("HEARTH_SPEED_MB");
    return size != nullptr ? static_cast<std::uint64_t>(std::atoi(size)) : 32;
  }
};

// Leaves the store as block by block made it.
void StoreSpeed::Save() const {
  {
    const auto store = Open(true);
    const Stopwatch watch;
    ASSERT_TRUE(prompt_.SaveBlocks(*store).ok());
    Row("store: durable, all blocks in one call", bytes_, watch.ms() * 1e-3);
  }
  RemoveStore();
  const auto store = Open(true);
  const Stopwatch watch;
  for (std::size_t i = 0; i < prompt_.blocks.size(); ++i) {
    ASSERT_TRUE(prompt_.SaveBlock(*store, i).ok());
  }
  Row("store: durable, block by block", bytes_, watch.ms() * 1e-3);
}

void StoreSpeed::WorkOnMemory() const {
  const Stopwatch copying;
  std::vector<std::byte> copy(one_piece_.size());
  std::copy(one_piece_.begin(), one_piece_.end(), copy.begin());
  Row("memory: copied into fresh pages", bytes_, copying.ms() * 1e-3);
  const Stopwatch watch;
  std::uint64_t checksum = 0;
  for (const auto& payload : prompt_.payloads) checksum ^= Checksum64(payload);
  Row("memory: XXH3 alone", bytes_, watch.ms() * 1e-3);
  EXPECT_NE(checksum, 1u);
}

void StoreSpeed::LookUpAll() const {
  std::uint64_t sum = 0;
  for (const bool verify : {true, false, true, false}) {
    const auto store = Open(verify);
    const Stopwatch watch;
    const StoreMatch match = LookUp(*store, identity_, spec_, prompt_.tokens);
    const double found = watch.ms() * 1e-3;
    for (const StoredBlock& block : match.blocks) sum += Sum(block.payload);
    ASSERT_EQ(match.n_tokens, 64 * n_blocks_);
    Row(verify ? "lookup, verified (page cache)"
               : "lookup, mapped, not verified (page cache)",
        bytes_, found);
    Row("  and read once", bytes_, watch.ms() * 1e-3);
  }
  EXPECT_NE(sum, 0u);
}

void StoreSpeed::Encrypt() const {
  RemoveStore();
  StoreOptions options;
  options.vault = std::make_shared<const Vault>(Vault::Key{});
  const auto store = Open(options);
  const Stopwatch writing;
  ASSERT_TRUE(prompt_.SaveBlocks(*store).ok());
  Row("encrypted: durable, all blocks in one call", bytes_,
      writing.ms() * 1e-3);
  const Stopwatch reading;
  ASSERT_EQ(LookUp(*store, identity_, spec_, prompt_.tokens).n_tokens,
            64 * n_blocks_);
  Row("encrypted: lookup, verified (page cache)", bytes_, reading.ms() * 1e-3);
}

TEST_F(StoreSpeed, OfWritingVerifyingAndMapping) {
  Row("disk: one plain file, written and flushed", bytes_,
      PlainDurableWrite(dir_.path() + "/plain", one_piece_));
  ASSERT_NO_FATAL_FAILURE(Save());
  WorkOnMemory();
  ASSERT_NO_FATAL_FAILURE(LookUpAll());
  Encrypt();
}

}  // namespace
}  // namespace hearth
