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

TEST(StoreSpeed, OfWritingVerifyingAndMapping) {
  const char* size = std::getenv("HEARTH_SPEED_MB");
  const std::uint64_t megabytes =
      size != nullptr ? static_cast<std::uint64_t>(std::atoi(size)) : 32;
  // 1.5 MiB a block
  const KvSpec spec(UniformKv{.n_layers = 12,
                              .n_heads = 8,
                              .head_dim = 64,
                              .key_format = KvFormat::kF16,
                              .value_format = KvFormat::kF16});
  const KvIdentity identity = TinyIdentity(spec);
  const int n_blocks =
      static_cast<int>(megabytes * 1'000'000 / (64 * spec.bytes_per_token()));
  const TinyPrompt prompt(identity, spec, TinyTokens(64 * n_blocks));
  std::uint64_t bytes = 0;
  for (const auto& payload : prompt.payloads) bytes += payload.size();

  TempDir dir;
  const auto open = [&](bool verify) {
    StoreOptions options;
    options.verify = verify;
    return KvStore::Open(dir.path() + "/s", options).value();
  };
  std::printf("%d blocks of 64 tokens, %.1f MB\n", n_blocks,
              static_cast<double>(bytes) * 1e-6);
  std::vector<std::byte> one_piece;
  for (const auto& payload : prompt.payloads) {
    one_piece.insert(one_piece.end(), payload.begin(), payload.end());
  }
  Row("disk: one plain file, written and flushed", bytes,
      PlainDurableWrite(dir.path() + "/plain", one_piece));
  {
    const auto store = open(true);
    const Stopwatch watch;
    ASSERT_TRUE(prompt.SaveBlocks(*store).ok());
    Row("store: durable, all blocks in one call", bytes, watch.ms() * 1e-3);
  }
  std::filesystem::remove_all(dir.path() + "/s");
  {
    const auto store = open(true);
    const Stopwatch watch;
    for (std::size_t i = 0; i < prompt.blocks.size(); ++i) {
      ASSERT_TRUE(prompt.SaveBlock(*store, i).ok());
    }
    Row("store: durable, block by block", bytes, watch.ms() * 1e-3);
  }
  {
    const Stopwatch watch;
    std::vector<std::byte> copy(one_piece.size());
    std::copy(one_piece.begin(), one_piece.end(), copy.begin());
    Row("memory: copied into fresh pages", bytes, watch.ms() * 1e-3);
  }
  {
    const Stopwatch watch;
    std::uint64_t checksum = 0;
    for (const auto& payload : prompt.payloads) checksum ^= Checksum64(payload);
    Row("memory: XXH3 alone", bytes, watch.ms() * 1e-3);
    EXPECT_NE(checksum, 1u);
  }
  std::uint64_t sum = 0;
  for (const bool verify : {true, false, true, false}) {
    const auto store = open(verify);
    const Stopwatch watch;
    const StoreMatch match = LookUp(*store, identity, spec, prompt.tokens);
    const double found = watch.ms() * 1e-3;
    for (const StoredBlock& block : match.blocks) sum += Sum(block.payload);
    ASSERT_EQ(match.n_tokens, 64 * n_blocks);
    Row(verify ? "lookup, verified (page cache)"
               : "lookup, mapped, not verified (page cache)",
        bytes, found);
    Row("  and read once", bytes, watch.ms() * 1e-3);
  }
  EXPECT_NE(sum, 0u);
  {
    std::filesystem::remove_all(dir.path() + "/s");
    StoreOptions options;
    options.vault = std::make_shared<const Vault>(Vault::Key{});
    const auto store = KvStore::Open(dir.path() + "/s", options).value();
    const Stopwatch writing;
    ASSERT_TRUE(prompt.SaveBlocks(*store).ok());
    Row("encrypted: durable, all blocks in one call", bytes,
        writing.ms() * 1e-3);
    const Stopwatch reading;
    ASSERT_EQ(LookUp(*store, identity, spec, prompt.tokens).n_tokens,
              64 * n_blocks);
    Row("encrypted: lookup, verified (page cache)", bytes, reading.ms() * 1e-3);
  }
}

}  // namespace
}  // namespace hearth
