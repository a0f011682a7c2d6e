#include "store/format/block_image.h"

#include <algorithm>
#include <utility>

#include "cache/kv_layout.h"
#include "store/format/block_pieces.h"

namespace hearth {
namespace {

// The sections that a payload of this layout consists of, without checksums.
// Padding inside the layout belongs to the section before it, so that every
// byte of the payload is covered by a checksum.
std::vector<BlockSection> LayoutSections(const KvSpec& spec, int n_tokens) {
  std::vector<BlockSection> sections;
  for (const KvPart& part : KvLayout(spec, n_tokens).Parts()) {
    sections.push_back({static_cast<std::uint16_t>(part.kind), kSectionRequired,
                        static_cast<std::uint32_t>(part.layer), part.offset,
                        part.length, 0});
  }
  return sections;
}

Error Corrupt(const std::string& what, const std::string& why) {
  return {Code::kCorrupt, what + ": " + why};
}

}  // namespace

Result<std::vector<std::byte>> EncodeBlockHeader(
    const KvIdentity& identity, const Digest& root_id, const KvSpec& spec,
    const Digest& parent_id, const Digest& block_id,
    std::span<const std::int32_t> tokens, ByteSpan payload, int first_token,
    ByteSpan mac) {
  if (tokens.empty() || tokens.size() > kBlockTokensMax ||
      tokens.size() > static_cast<std::size_t>(spec.block_tokens)) {
    return {Code::kInvalidArgument,
            "a block of " + std::to_string(tokens.size()) +
                " tokens cannot be stored; block_tokens is " +
                std::to_string(spec.block_tokens)};
  }
  const int n_tokens = static_cast<int>(tokens.size());
  const int n_held = n_tokens - first_token;
  const bool whole = n_held == spec.block_tokens;
  if (first_token < 0 || n_held < 1 ||
      payload.size() != KvLayout(spec, n_held).block_bytes()) {
    return {Code::kInvalidArgument, "a block's payload of " +
                                        std::to_string(payload.size()) +
                                        " bytes does not fit its layout"};
  }
  BlockHeader header;
  header.model_id = identity.model_id;
  header.format_id = identity.format_id;
  header.root_id = root_id;
  header.parent_id = parent_id;
  header.block_id = block_id;
  header.first_token = first_token;
  header.tokens.assign(tokens.begin(), tokens.end());
  header.sections = LayoutSections(spec, n_held);
  return EncodeImageHeader(ImageKind::kBlock,
                           whole ? kBlockVersion : kPieceVersion,
                           std::move(header), payload, mac);
}

std::vector<std::byte> MakeBlockMac(const Vault& key, const Digest& block_id,
                                    int first_token, ByteSpan payload) {
  std::byte first[4];
  StoreLe(first, static_cast<std::uint32_t>(first_token));
  const ByteSpan parts[] = {std::as_bytes(std::span(block_id.bytes)), first,
                            payload};
  std::vector<std::byte> mac;
  AppendLe(mac, key.key_id().bytes);
  AppendLe(mac, key.Mac("hearth block", parts).bytes);
  return mac;
}

ByteSpan MacOf(ByteSpan image, const BlockHeader& header) {
  const auto section =
      std::find_if(header.sections.begin(), header.sections.end(),
                   [](const auto& s) { return s.kind == kMacSection; });
  if (section == header.sections.end() || section->length != kMacBytes) {
    return {};
  }
  return image.subspan(header.header_bytes).subspan(section->offset, kMacBytes);
}

bool EqualMacs(ByteSpan a, ByteSpan b) {
  std::byte differs{a.size() == b.size() ? std::byte{0} : std::byte{1}};
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    differs |= a[i] ^ b[i];
  }
  return differs == std::byte{0};
}

std::optional<Digest> MacKeyOf(ByteSpan image, const BlockHeader& header) {
  const ByteSpan mac = MacOf(image, header);
  if (mac.empty()) return std::nullopt;
  Digest key;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(mac.data()),
              key.bytes.size(), key.bytes.begin());
  return key;
}

Result<void> CheckBlockMac(ByteSpan image, const BlockHeader& header,
                           const Vault& key, const std::string& what) {
  const ByteSpan found = MacOf(image, header);
  if (found.empty()) {
    return Corrupt(what, "nobody with the key of the shared cache made it");
  }
  const ByteSpan payload = image.subspan(header.header_bytes);
  const auto n_payload =
      static_cast<std::size_t>(found.data() - payload.data());
  const std::vector<std::byte> right = MakeBlockMac(
      key, header.block_id, header.first_token, payload.first(n_payload));
  if (EqualMacs(found, right)) return {};
  return Corrupt(what, "forged, or made with another key (wrong MAC)");
}

BlockQuery QueryOf(const BlockChain& chain, std::size_t index) {
  const BlockRef block = chain[index];
  return {chain.identity().model_id,
          chain.identity().format_id,
          chain.root_id(),
          block.parent,
          block.id,
          block.tokens};
}

Result<BlockHeader> ParseBlockHeader(ByteSpan bytes, std::uint64_t image_bytes,
                                     const std::string& what) {
  return ParseImageHeader(ImageKind::kBlock, bytes, image_bytes, what);
}

std::uint64_t ImageBytesMax(const KvSpec& spec) {
  const std::size_t whole = KvLayout(spec, spec.block_tokens).block_bytes();
  const std::size_t tail =
      KvLayout(spec, std::max(1, spec.block_tokens - 1)).block_bytes();
  return kBlockHeaderBytesMax + std::max(whole, tail);
}

Digest IdBefore(const BlockHeader& header) {
  return ChildId(header.parent_id,
                 std::span(header.tokens)
                     .first(static_cast<std::size_t>(header.first_token)));
}

Result<OpenImage> OpenBlockImage(ByteSpan image, const KvSpec& spec,
                                 const BlockQuery& query, bool check_payload,
                                 const std::string& what) {
  HEARTH_ASSIGN(const BlockHeader header,
                ParseBlockHeader(image, image.size(), what));
  HEARTH_TRY(CheckBlockHeader(header, query, what));
  const int n_tokens = static_cast<int>(header.tokens.size());
  if (n_tokens > spec.block_tokens) {
    return Corrupt(what, "more tokens than a block holds");
  }
  const int n_held = n_tokens - header.first_token;
  if (header.first_token > 0 && !CanBePiece(spec, header.tokens.size())) {
    return Corrupt(what, "a quantised block in pieces");
  }
  HEARTH_TRY(CheckSectionsAre(ImageKind::kBlock, header,
                              LayoutSections(spec, n_held), what));
  if (check_payload) HEARTH_TRY(CheckSections(image, header, what));
  const std::size_t length = KvLayout(spec, n_held).block_bytes();
  return OpenImage{image.subspan(header.header_bytes, length),
                   header.first_token};
}

}  // namespace hearth
