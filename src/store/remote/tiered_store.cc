#include "store/remote/tiered_store.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/time_limit.h"
#include "cache/kv_layout.h"
#include "store/format/block_pieces.h"

namespace hearth {
namespace {

// Fetched blocks that wait to be written here.
constexpr std::size_t kKeepBytesMax = std::size_t{256} << 20;
// More than any header and its encryption.
constexpr std::size_t kHeaderBytesMax = std::size_t{1} << 20;

// Tiles must lie as they do in a mapped file.
Result<FileBytes> Aligned(const std::string& file) {
  HEARTH_ASSIGN(const auto copy, PageAligned(file.size()));
  std::memcpy(copy.get(), file.data(), file.size());
  return FileBytes{{copy.get(), file.size()}, copy};
}

}  // namespace

TieredStore::TieredStore(std::unique_ptr<DirStore> local, RemoteUrl url,
                         const StoreOptions& options)
    : local_(std::move(local)),
      vault_(options.vault),
      remote_key_(options.remote_key),
      name_(url.Name()),
      remote_(std::move(url), options.remote_key,
              std::chrono::milliseconds(options.remote_deadline_ms),
              std::chrono::seconds(options.remote_pause_s)),
      keeping_(kKeepBytesMax) {}

TieredStore::~TieredStore() = default;

// Here as far as it goes, then there over what is missing here, and so on.
StoreMatch TieredStore::Lookup(const BlockChain& prompt, const KvSpec& spec,
                               std::size_t first_block) {
  StoreMatch match;
  match.first_token = static_cast<int>(prompt.BeginOf(first_block));
  const Deadline deadline = remote_.NewDeadline();
  Fetched fetched;
  do {
    match.miss_reason.clear();
    match.miss_kind = MissKind::kNotStored;
    local_->AppendFullBlocks(prompt, spec, match);
    fetched = AppendFetched(prompt, spec, deadline, match);
  } while (fetched.n_taken > 0 && !fetched.found_bad);
  local_->AppendTail(prompt, spec, match);
  FetchState(prompt, spec, deadline, match);
  local_->AttachState(prompt, spec, match);
  if (match.n_tokens_remote > 0) match.tier = "remote";
  if (!match.miss_reason.empty() && !fetched.reason.empty()) {
    match.miss_reason += "; " + fetched.reason;
  }
  return match;
}

TieredStore::Fetched TieredStore::AppendFetched(const BlockChain& prompt,
                                                const KvSpec& spec,
                                                Deadline deadline,
                                                StoreMatch& match) {
  Fetched result;
  const std::size_t first =
      static_cast<std::size_t>(match.end()) / prompt.block_tokens();
  std::vector<Digest> wanted;
  // The first was looked for just now; behind it only what has no file here.
  for (std::size_t i = first; i < prompt.n_full(); ++i) {
    if (i > first && local_->HasBlock(prompt[i].id)) break;
    wanted.push_back(prompt[i].id);
  }
  if (wanted.empty()) return result;
  RemoteTier::Fetched fetched = remote_.Fetch(
      wanted, KvLayout(spec, spec.block_tokens).block_bytes() + kHeaderBytesMax,
      deadline);
  if (!fetched.warning.empty()) match.warnings.push_back(fetched.warning);
  result.reason = std::move(fetched.reason);
  for (std::size_t i = 0; i < fetched.files.size(); ++i) {
    auto block = Take(fetched.files[i], prompt, first + i, spec);
    if (!block.ok()) {
      // Those behind it were not looked at: who spoiled one may have spoiled
      // them, too. They are computed here and sent again.
      if (block.error().code == Code::kCorrupt) {
        for (; i < wanted.size(); ++i) remote_.Distrust(wanted[i]);
      }
      result.found_bad = true;
      result.reason = block.error().message;
      match.warnings.push_back(block.error().message + "; ignored");
      break;
    }
    match.n_tokens += block->n_tokens;
    match.n_tokens_remote += block->n_tokens;
    match.blocks.push_back(*std::move(block));
    ++result.n_taken;
  }
  return result;
}

// All checksums, whatever the options say: the server is not ours.
Result<StoredBlock> TieredStore::Take(const std::string& file,
                                      const BlockChain& prompt,
                                      std::size_t index, const KvSpec& spec) {
  const BlockQuery query = QueryOf(prompt, index);
  const std::string what =
      name_ + " " + RemoteKey(query.block_id, 0, remote_key_.get());
  const ByteSpan bytes = AsBytes(file);
  HEARTH_TRY(CheckKey(bytes, vault_.get(), what));
  FileBytes plain{bytes, nullptr};
  if (vault_ != nullptr) {
    HEARTH_ASSIGN(plain, vault_->Open(bytes, what));
  }
  HEARTH_ASSIGN(OpenImage image, OpenBlockImage(plain.bytes, spec, query,
                                                /*check_payload=*/true, what));
  if (image.first_token > 0) {
    return {Code::kCorrupt, what + ": not a whole block"};
  }
  if (remote_key_ != nullptr) {
    HEARTH_ASSIGN(const BlockHeader header,
                  ParseBlockHeader(plain.bytes, plain.bytes.size(), what));
    HEARTH_TRY(CheckBlockMac(plain.bytes, header, *remote_key_, what));
  }
  if (vault_ == nullptr) {
    auto arrival = local_->Receive(query, spec, bytes);
    if (arrival.ok()) {
      Keep(std::move(arrival->Keep), bytes.size());
      return std::move(arrival->block);
    }
    // No room here: from memory then.
    HEARTH_ASSIGN(plain, Aligned(file));
    HEARTH_ASSIGN(image, OpenBlockImage(plain.bytes, spec, query,
                                        /*check_payload=*/false, what));
  }
  StoredBlock block{query.block_id, static_cast<int>(query.tokens.size()),
                    image.payload, plain.owner, false};
  if (vault_ != nullptr) {
    Keep(
        [this, spec, block, index,
         chain = prompt.First(prompt.BeginOf(index + 1))] {
          return local_->SaveBlocks(chain, spec, index,
                                    std::span(&block.payload, 1));
        },
        block.payload.size());
  }
  return block;
}

// Dropped when there is no room, or after an error: it can be fetched again,
// and what is computed is saved with its own report.
void TieredStore::Keep(std::function<Result<void>()> job, std::size_t bytes) {
  (void)keeping_.TakeError();
  (void)keeping_.TryEnqueue(std::move(job), bytes);
}

Result<void> TieredStore::Drain(double seconds_max) {
  if (seconds_max <= 0) {
    keeping_.Wait();
    return remote_.Drain(0);
  }
  const TimeLimit limit(seconds_max);
  (void)keeping_.DrainFor(std::chrono::duration<double>(seconds_max));
  return remote_.Drain(limit.Left());
}

void TieredStore::GiveUp() {
  local_->GiveUp();
  remote_.GiveUp();
}

Result<void> TieredStore::SaveBlocks(const BlockChain& prompt,
                                     const KvSpec& spec,
                                     std::size_t first_block,
                                     std::span<const ByteSpan> payloads) {
  HEARTH_TRY(local_->SaveBlocks(prompt, spec, first_block, payloads));
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    if (first_block + i >= prompt.n_full()) break;  // tails stay local
    const BlockRef block = prompt[first_block + i];
    std::vector<std::byte> mac;
    if (remote_key_ != nullptr) {
      mac = MakeBlockMac(*remote_key_, block.id, 0, payloads[i]);
    }
    HEARTH_ASSIGN(
        const std::vector<std::byte> header,
        EncodeBlockHeader(prompt.identity(), prompt.root_id(), spec,
                          block.parent, block.id, block.tokens, payloads[i],
                          /*first_token=*/0, mac));
    const ByteSpan parts[] = {header, payloads[i], mac};
    std::vector<std::byte> file;
    if (vault_ != nullptr) {
      HEARTH_ASSIGN(file, vault_->Seal(parts));
    } else {
      file.reserve(header.size() + payloads[i].size() + mac.size());
      for (const ByteSpan part : parts) {
        file.insert(file.end(), part.begin(), part.end());
      }
    }
    remote_.Offer(block.id, std::move(file));
  }
  return {};
}

}  // namespace hearth
