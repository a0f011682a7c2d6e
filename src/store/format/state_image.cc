#include "store/format/state_image.h"

#include <algorithm>
#include <utility>

#include "cache/states/state_layout.h"
#include "store/format/block_image.h"

namespace hearth {
namespace {

std::vector<BlockSection> SectionsOf(const KvSpec& spec) {
  const StateLayout layout(spec.states);
  std::vector<BlockSection> sections;
  for (int i = 0; i < layout.n_states(); ++i) {
    sections.push_back({kStateSection, kSectionRequired,
                        static_cast<std::uint32_t>(i), layout.offset(i),
                        layout.length(i), 0});
  }
  return sections;
}

Error Corrupt(const std::string& what, const std::string& why) {
  return {Code::kCorrupt, what + ": " + why};
}

std::vector<std::byte> MacOver(const Vault& key, const Digest& id,
                               std::uint64_t position, ByteSpan payload) {
  std::byte at[8];
  StoreLe(at, position);
  const ByteSpan parts[] = {std::as_bytes(std::span(id.bytes)), at, payload};
  std::vector<std::byte> mac;
  AppendLe(mac, key.key_id().bytes);
  AppendLe(mac, key.Mac("hearth state", parts).bytes);
  return mac;
}

}  // namespace

StateQuery StateQueryOf(const BlockChain& chain, std::size_t n_tokens) {
  const std::size_t step = chain.block_tokens();
  const std::size_t block = (n_tokens - 1) / step;
  const std::size_t begin = block * step;
  StateQuery query;
  query.position = n_tokens;
  query.prefix = {chain.identity().model_id,
                  chain.identity().format_id,
                  chain.root_id(),
                  chain.ParentOf(block),
                  {},
                  chain.tokens().subspan(begin, n_tokens - begin)};
  query.prefix.block_id =
      n_tokens == chain.BeginOf(block + 1)
          ? chain[block].id
          : ChildId(query.prefix.parent_id, query.prefix.tokens);
  return query;
}

Result<std::vector<std::byte>> EncodeStateHeader(const KvSpec& spec,
                                                 const StateQuery& query,
                                                 ByteSpan payload,
                                                 ByteSpan mac) {
  const BlockQuery& prefix = query.prefix;
  if (spec.states.empty() || spec.states.size() > kBlockSectionsMax - 1 ||
      payload.size() != StateLayout(spec.states).bytes() ||
      query.position > kPositionMax) {
    return {Code::kInvalidArgument, "states of " +
                                        std::to_string(payload.size()) +
                                        " bytes do not fit their layout"};
  }
  BlockHeader header;
  header.model_id = prefix.model_id;
  header.format_id = prefix.format_id;
  header.root_id = prefix.root_id;
  header.parent_id = prefix.parent_id;
  header.block_id = prefix.block_id;
  header.position = query.position;
  header.tokens.assign(prefix.tokens.begin(), prefix.tokens.end());
  header.sections = SectionsOf(spec);
  return EncodeImageHeader(ImageKind::kState, kStateVersion, std::move(header),
                           payload, mac);
}

std::vector<std::byte> MakeStateMac(const Vault& key, const StateQuery& query,
                                    ByteSpan payload) {
  return MacOver(key, query.prefix.block_id, query.position, payload);
}

Result<void> CheckStateMac(ByteSpan image, const BlockHeader& header,
                           const Vault& key, const std::string& what) {
  const ByteSpan found = MacOf(image, header);
  if (found.empty()) {
    return Corrupt(what, "nobody with the key of the shared cache made it");
  }
  const ByteSpan payload = image.subspan(header.header_bytes);
  const std::vector<std::byte> right =
      MacOver(key, header.block_id, header.position,
              payload.first(payload.size() - found.size()));
  return EqualMacs(found, right)
             ? Result<void>()
             : Corrupt(what, "forged, or made with another key (wrong MAC)");
}

Result<BlockHeader> ParseStateHeader(ByteSpan bytes, std::uint64_t image_bytes,
                                     const std::string& what) {
  return ParseImageHeader(ImageKind::kState, bytes, image_bytes, what);
}

Result<void> CheckStateHeader(const BlockHeader& header,
                              const StateQuery& query,
                              const std::string& what) {
  HEARTH_TRY(CheckBlockHeader(header, query.prefix, what));
  if (header.position != query.position) {
    return Corrupt(what, "of another position than its name says");
  }
  return {};
}

Result<ByteSpan> OpenStateImage(ByteSpan image, const KvSpec& spec,
                                const StateQuery& query, bool check_payload,
                                const std::string& what) {
  HEARTH_ASSIGN(const BlockHeader header,
                ParseStateHeader(image, image.size(), what));
  HEARTH_TRY(CheckStateHeader(header, query, what));
  HEARTH_TRY(
      CheckSectionsAre(ImageKind::kState, header, SectionsOf(spec), what));
  if (check_payload) HEARTH_TRY(CheckSections(image, header, what));
  return image.subspan(header.header_bytes, StateLayout(spec.states).bytes());
}

std::uint64_t StateImageBytesMax(const KvSpec& spec) {
  return kBlockHeaderBytesMax + StateLayout(spec.states).bytes();
}

Digest RemoteStateId(const Digest& id) {
  return Sha256().Field("hearth state").Field(id).Finish();
}

}  // namespace hearth
