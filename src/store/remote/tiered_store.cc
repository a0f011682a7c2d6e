#include "store/remote/tiered_store.h"

#include <cstring>
#include <utility>

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
      name_(url.Name()),
      remote_(std::move(url),
              std::chrono::milliseconds(options.remote_deadline_ms),
              std::chrono::seconds(options.remote_pause_s)),
      keeping_(kKeepBytesMax) {}

TieredStore::~TieredStore() = default;

StoreMatch TieredStore::Lookup(const KvIdentity& identity, const KvSpec& spec,
                               std::span<const std::int32_t> tokens) {
  StoreMatch match = local_->Lookup(identity, spec, tokens);
  const auto step = static_cast<std::size_t>(spec.block_tokens);
  const std::size_t n_local =
      static_cast<std::size_t>(match.n_tokens) / step * step;
  const auto chain = ChainIds(
      identity, tokens.first(tokens.size() / step * step), spec.block_tokens);
  const auto wanted = std::span<const Digest>(chain).subspan(n_local / step);
  if (wanted.empty()) return match;
  RemoteTier::Fetched fetched =
      remote_.Fetch(wanted, KvLayout(spec, spec.block_tokens).block_bytes() +
                                kHeaderBytesMax);
  if (!fetched.warning.empty()) match.warnings.push_back(fetched.warning);
  const Digest root_id = RootId(identity);
  for (std::size_t i = 0; i < fetched.files.size(); ++i) {
    const std::size_t index = n_local / step + i;
    const BlockQuery query{
        identity.model_id, identity.format_id,
        root_id,           index == 0 ? root_id : chain[index - 1],
        chain[index],      tokens.subspan(index * step, step)};
    auto block = Take(fetched.files[i], identity, spec, query);
    if (!block.ok()) {
      fetched.reason = block.error().message;
      match.warnings.push_back(block.error().message + "; ignored");
      break;
    }
    if (i == 0 && static_cast<std::size_t>(match.n_tokens) > n_local) {
      // A local tail, which the block holds and goes beyond.
      match.n_tokens = static_cast<int>(n_local);
      match.blocks.pop_back();
    }
    match.n_tokens += block->n_tokens;
    match.n_tokens_remote += block->n_tokens;
    match.blocks.push_back(*std::move(block));
  }
  if (static_cast<std::size_t>(match.n_tokens) == tokens.size()) {
    match.miss_reason.clear();
  } else if (!fetched.reason.empty()) {
    match.miss_reason +=
        (match.miss_reason.empty() ? "" : "; ") + fetched.reason;
  }
  return match;
}

// All checksums, whatever the options say: the server is not ours.
Result<StoredBlock> TieredStore::Take(const std::string& file,
                                      const KvIdentity& identity,
                                      const KvSpec& spec,
                                      const BlockQuery& query) {
  const std::string what = name_ + " " + RemoteKey(query.block_id, 0);
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
        [this, identity, spec, block, parent = query.parent_id,
         tokens = std::vector<std::int32_t>(query.tokens.begin(),
                                            query.tokens.end())] {
          return local_->SaveBlock(identity, spec,
                                   {parent, block.id, tokens, block.payload});
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
  keeping_.Wait();
  return remote_.Drain(seconds_max);
}

Result<void> TieredStore::SaveBlocks(const KvIdentity& identity,
                                     const KvSpec& spec,
                                     std::span<const BlockToSave> blocks) {
  HEARTH_TRY(local_->SaveBlocks(identity, spec, blocks));
  const Digest root_id = RootId(identity);
  for (const BlockToSave& block : blocks) {
    if (block.tokens.size() < static_cast<std::size_t>(spec.block_tokens)) {
      continue;  // tails stay local
    }
    HEARTH_ASSIGN(const std::vector<std::byte> header,
                  EncodeBlockHeader(identity, root_id, spec, block.parent,
                                    block.id, block.tokens, block.payload));
    const ByteSpan parts[] = {header, block.payload};
    std::vector<std::byte> file;
    if (vault_ != nullptr) {
      HEARTH_ASSIGN(file, vault_->Seal(parts));
    } else {
      file.reserve(header.size() + block.payload.size());
      for (const ByteSpan part : parts) {
        file.insert(file.end(), part.begin(), part.end());
      }
    }
    remote_.Offer(block.id, std::move(file));
  }
  return {};
}

}  // namespace hearth
