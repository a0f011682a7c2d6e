// States on a shared server. Only whole blocks travel, so only states at their
// ends do.
#include <algorithm>
#include <cstring>
#include <utility>

#include "cache/states/state_layout.h"
#include "store/format/block_pieces.h"
#include "store/format/match_end.h"
#include "store/format/state_image.h"
#include "store/remote/tiered_store.h"

namespace hearth {
namespace {

// Places that a lookup asks for, the newest first: a bound on what it costs.
constexpr std::size_t kPlacesMax = 256;
// More than any header and its encryption.
constexpr std::size_t kHeaderBytesMax = std::size_t{1} << 20;

}  // namespace

Result<void> TieredStore::SaveState(const BlockChain& prompt,
                                    const KvSpec& spec, std::size_t n_tokens,
                                    ByteSpan payload) {
  HEARTH_TRY(local_->SaveState(prompt, spec, n_tokens, payload));
  if (n_tokens % prompt.block_tokens() != 0) return {};
  const StateQuery query = StateQueryOf(prompt, n_tokens);
  std::vector<std::byte> mac;
  if (remote_key_ != nullptr) mac = MakeStateMac(*remote_key_, query, payload);
  HEARTH_ASSIGN(const std::vector<std::byte> header,
                EncodeStateHeader(spec, query, payload, mac));
  const ByteSpan parts[] = {header, payload, mac};
  std::vector<std::byte> file;
  if (vault_ != nullptr) {
    HEARTH_ASSIGN(file, vault_->Seal(parts));
  } else {
    file.reserve(header.size() + payload.size() + mac.size());
    for (const ByteSpan part : parts) {
      file.insert(file.end(), part.begin(), part.end());
    }
  }
  remote_.Offer(RemoteStateId(query.prefix.block_id), std::move(file));
  return {};
}

void TieredStore::FetchState(const BlockChain& prompt, const KvSpec& spec,
                             Deadline deadline, StoreMatch& match) {
  if (spec.states.empty()) return;
  const auto step = static_cast<int>(prompt.block_tokens());
  const int n_max = MostTokensWithState(prompt, match);
  const int n_here =
      std::max(match.first_token, local_->NewestState(prompt, n_max));
  std::vector<Digest> ids;
  std::vector<std::size_t> places;
  for (int n = n_max / step * step; n > n_here && ids.size() < kPlacesMax;
       n -= step) {
    places.push_back(static_cast<std::size_t>(n));
    ids.push_back(
        RemoteStateId(StateQueryOf(prompt, places.back()).prefix.block_id));
  }
  if (ids.empty()) return;
  const RemoteTier::First first = remote_.FetchFirst(
      ids,
      static_cast<std::size_t>(StateLayout(spec.states).bytes()) +
          kHeaderBytesMax,
      deadline);
  if (!first.warning.empty()) match.warnings.push_back(first.warning);
  if (first.index == ids.size()) return;
  const auto taken =
      TakeState(first.file, prompt, places[first.index], spec, match);
  if (taken.ok()) return;
  if (taken.error().code == Code::kCorrupt) remote_.Distrust(ids[first.index]);
  match.warnings.push_back(taken.error().message + "; ignored");
}

// All checksums, whatever the options say: the server is not ours.
Result<void> TieredStore::TakeState(const std::string& file,
                                    const BlockChain& prompt,
                                    std::size_t n_tokens, const KvSpec& spec,
                                    StoreMatch& match) {
  const StateQuery query = StateQueryOf(prompt, n_tokens);
  const std::string what =
      name_ + " " +
      RemoteKey(RemoteStateId(query.prefix.block_id), 0, remote_key_.get());
  const ByteSpan bytes = AsBytes(file);
  HEARTH_TRY(CheckKey(bytes, vault_.get(), what));
  FileBytes plain{bytes, nullptr};
  if (vault_ != nullptr) {
    HEARTH_ASSIGN(plain, vault_->Open(bytes, what));
  }
  HEARTH_ASSIGN(const ByteSpan payload,
                OpenStateImage(plain.bytes, spec, query,
                               /*check_payload=*/true, what));
  if (remote_key_ != nullptr) {
    HEARTH_ASSIGN(const BlockHeader header,
                  ParseStateHeader(plain.bytes, plain.bytes.size(), what));
    HEARTH_TRY(CheckStateMac(plain.bytes, header, *remote_key_, what));
  }
  if (local_->SaveState(prompt, spec, n_tokens, payload).ok()) return {};
  // No room here: from memory then.
  HEARTH_ASSIGN(const auto copy, PageAligned(payload.size()));
  std::memcpy(copy.get(), payload.data(), payload.size());
  EndAtState(
      prompt, spec,
      std::optional<StoredState>(StoredState{static_cast<int>(n_tokens),
                                             {copy.get(), payload.size()},
                                             copy,
                                             false}),
      match);
  return {};
}

}  // namespace hearth
