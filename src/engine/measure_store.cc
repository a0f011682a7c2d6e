// Blocks are noise of the shape of a 12-layer model with 8 KV heads.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/file.h"
#include "base/files/vault.h"
#include "base/stopwatch.h"
#include "cache/kv_layout.h"
#include "hearth/measure.h"
#include "store/kv_store.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

// A folder that goes with the object.
struct OwnFolder {
  std::string path;
  ~OwnFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

// Prompt and blocks as an engine would save them; the content is noise.
struct Sample {
  KvSpec spec;
  KvIdentity identity;
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<ByteSpan> blocks;

  explicit Sample(std::uint64_t bytes) {
    spec = UniformKv{.n_layers = 12,
                     .n_heads = 8,
                     .head_dim = 64,
                     .key_format = KvFormat::kF16,
                     .value_format = KvFormat::kF16};
    identity.model_id = Sha256().Field("store measurement").Finish();
    identity.format_id = FormatId(spec);
    identity.model_name = "measurement";
    const auto n_block = static_cast<std::size_t>(spec.block_tokens);
    const std::size_t block_bytes =
        KvLayout(spec, spec.block_tokens).block_bytes();
    const std::size_t n_blocks = bytes / block_bytes;
    for (std::size_t i = 0; i < n_blocks * n_block; ++i) {
      tokens.push_back(static_cast<std::int32_t>(i));
    }
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < n_blocks; ++i) {
      std::vector<std::byte>& payload = payloads.emplace_back(block_bytes);
      for (std::size_t at = 0; at + 8 <= block_bytes; at += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        StoreLe(payload.data() + at, state ^ state >> 29);
      }
    }
    blocks.assign(payloads.begin(), payloads.end());
  }
  BlockChain Chain() const { return {identity, tokens, spec.block_tokens}; }
};

Result<void> DropFiles(const std::string& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    const std::string path = it->path().string();
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {Code::kIo, path + ": " + ErrnoText(errno)};
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
  if (error) return {Code::kIo, folder + ": " + error.message()};
  return {};
}

std::uint64_t SumOf(ByteSpan bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    sum += LoadLe<std::uint64_t>(bytes.data() + i);
  }
  return sum;
}

Result<void> TimeSave(const std::string& root, const StoreOptions& options,
                      const Sample& sample, double& save_s) {
  HEARTH_ASSIGN(const auto store, KvStore::Open(root, options));
  const BlockChain chain = sample.Chain();
  const Stopwatch watch;
  HEARTH_TRY(store->SaveBlocks(chain, sample.spec, 0, sample.blocks));
  HEARTH_TRY(store->SaveManifest(chain, sample.spec, ""));
  save_s = watch.ms() * 1e-3;
  return {};
}

// Finds everything and reads it. `find_s`: without the reading.
Result<void> TimeLoad(const std::string& root, const StoreOptions& options,
                      const Sample& sample, bool from_disk, double& find_s,
                      double& read_s) {
  if (from_disk) HEARTH_TRY(DropFiles(root));
  HEARTH_ASSIGN(const auto store, KvStore::Open(root, options));
  const Stopwatch find;
  const StoreMatch match = store->Lookup(sample.Chain(), sample.spec);
  find_s = find.ms() * 1e-3;
  if (match.n_tokens != static_cast<int>(sample.tokens.size())) {
    return {Code::kIo, "not all of the store was found: " + match.miss_reason};
  }
  const Stopwatch read;
  std::uint64_t sum = 0;
  std::uint64_t expected = 0;
  for (const StoredBlock& block : match.blocks) sum += SumOf(block.payload);
  read_s = read.ms() * 1e-3;
  for (const auto& payload : sample.payloads) expected += SumOf(payload);
  if (sum != expected) return {Code::kCorrupt, "the store gave other bytes"};
  return {};
}

// As `dd bs=1M of=/dev/null` does it: what the disk, or the page cache, gives.
Result<void> TimeFileRead(const std::string& path, double& read_s) {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  const Stopwatch watch;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {Code::kIo, path + ": " + ErrnoText(errno)};
  ssize_t n = 1;
  while (n > 0) n = ::read(fd, buffer.data(), buffer.size());
  const int number = errno;
  ::close(fd);
  if (n < 0) return {Code::kIo, path + ": " + ErrnoText(number)};
  read_s = watch.ms() * 1e-3;
  return {};
}

Result<StoreRates> MeasureIn(const std::string& folder, const Sample& sample,
                             bool from_disk) {
  StoreRates rates;
  rates.n_blocks = static_cast<int>(sample.blocks.size());
  std::vector<ByteSpan> parts;
  for (const auto& payload : sample.payloads) {
    parts.push_back(payload);
    rates.bytes += payload.size();
  }
  {
    const Stopwatch watch;
    HEARTH_TRY(WriteFileAtomically(folder + "/plain", parts));
    rates.disk_write_s = watch.ms() * 1e-3;
  }
  if (from_disk) HEARTH_TRY(DropFiles(folder));
  HEARTH_TRY(TimeFileRead(folder + "/plain", rates.file_read_s));
  {
    const Stopwatch watch;
    const std::vector<std::vector<std::byte>> copies = sample.payloads;
    rates.memory_copy_s = watch.ms() * 1e-3;
  }
  const std::string root = folder + "/store";
  StoreOptions options;
  HEARTH_TRY(TimeSave(root, options, sample, rates.save_s));
  double read_s = 0;  // told once: of what was mapped alone
  HEARTH_TRY(
      TimeLoad(root, options, sample, from_disk, rates.verify_s, read_s));
  options.verify = false;
  HEARTH_TRY(
      TimeLoad(root, options, sample, from_disk, rates.map_s, rates.read_s));
  options.verify = true;
  options.vault = std::make_shared<const Vault>(Vault::Key{});
  const std::string sealed = folder + "/encrypted";
  HEARTH_TRY(TimeSave(sealed, options, sample, rates.encrypted_save_s));
  HEARTH_TRY(TimeLoad(sealed, options, sample, from_disk,
                      rates.encrypted_load_s, read_s));
  return rates;
}

}  // namespace

Result<StoreRates> MeasureStore(const std::string& dir, std::uint64_t bytes,
                                bool from_disk) {
  const Sample sample(bytes);
  if (sample.blocks.empty()) {
    return {Code::kInvalidArgument, "a store of less than a block of 1.5 MiB"};
  }
  OwnFolder folder;
  std::string name = dir + "/hearth-store-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    return {Code::kIo,
            dir + ": no folder can be made there: " + ErrnoText(errno)};
  }
  folder.path = name;
  return MeasureIn(folder.path, sample, from_disk);
}

}  // namespace hearth
