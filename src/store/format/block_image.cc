#include "store/format/block_image.h"

#include <algorithm>
#include <cstring>

#include "cache/kv_layout.h"
#include "store/format/block_pieces.h"

namespace hearth {
namespace {

std::size_t AlignUp(std::size_t n, std::size_t align) {
  return (n + align - 1) / align * align;
}

std::size_t SectionsAt(std::size_t n_tokens) {
  return AlignUp(kBlockTokensAt + n_tokens * sizeof(std::int32_t), 8);
}

std::size_t HeaderBytes(std::size_t n_tokens, std::size_t n_sections,
                        std::uint32_t version) {
  return AlignUp(SectionsAt(n_tokens) + n_sections * kSectionBytes,
                 version == kBlockVersion ? kImageAlign : kPieceAlign);
}

void PutDigest(std::vector<std::byte>& out, std::size_t at,
               const Digest& digest) {
  std::memcpy(out.data() + at, digest.bytes.data(), digest.bytes.size());
}

Digest GetDigest(ByteSpan bytes, std::size_t at) {
  Digest digest;
  std::memcpy(digest.bytes.data(), bytes.data() + at, digest.bytes.size());
  return digest;
}

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

bool IsKnown(std::uint16_t kind) {
  const auto known = static_cast<KvPart::Kind>(kind);
  return known == KvPart::Kind::kKeys || known == KvPart::Kind::kValues;
}

void PutSection(std::byte* at, const BlockSection& section) {
  StoreLe(at, section.kind);
  StoreLe(at + 2, section.flags);
  StoreLe(at + 4, section.layer);
  StoreLe(at + 8, section.offset);
  StoreLe(at + 16, section.length);
  StoreLe(at + 24, section.checksum);
}

BlockSection GetSection(const std::byte* at) {
  return {LoadLe<std::uint16_t>(at),      LoadLe<std::uint16_t>(at + 2),
          LoadLe<std::uint32_t>(at + 4),  LoadLe<std::uint64_t>(at + 8),
          LoadLe<std::uint64_t>(at + 16), LoadLe<std::uint64_t>(at + 24)};
}

Error Corrupt(const std::string& what, const std::string& why) {
  return {Code::kCorrupt, what + ": " + why};
}

// Sections must follow each other without a gap and end with the payload.
bool SectionsTile(const BlockHeader& header) {
  std::uint64_t at = 0;
  for (const BlockSection& section : header.sections) {
    if (section.offset != at) return false;
    const auto end = CheckedAdd(at, section.length);
    if (!end || *end > header.payload_bytes) return false;
    at = *end;
  }
  return at == header.payload_bytes;
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
  const std::uint32_t version = whole ? kBlockVersion : kPieceVersion;
  std::vector<BlockSection> sections = LayoutSections(spec, n_held);
  if (!mac.empty()) {
    sections.push_back(
        {kMacSection, 0, 0, payload.size(), mac.size(), Checksum64(mac)});
  }
  const std::size_t header_bytes =
      HeaderBytes(tokens.size(), sections.size(), version);
  std::vector<std::byte> out(header_bytes);
  std::memcpy(out.data() + kBlockMagicAt, kBlockMagic.data(), 8);
  StoreLe(out.data() + kBlockVersionAt, version);
  StoreLe(out.data() + kBlockHeaderBytesAt,
          static_cast<std::uint32_t>(header_bytes));
  StoreLe(out.data() + kBlockTokenCountAt,
          static_cast<std::uint32_t>(tokens.size()));
  StoreLe(out.data() + kBlockSectionCountAt,
          static_cast<std::uint32_t>(sections.size()));
  PutDigest(out, kBlockModelIdAt, identity.model_id);
  PutDigest(out, kBlockFormatIdAt, identity.format_id);
  PutDigest(out, kBlockRootIdAt, root_id);
  PutDigest(out, kBlockParentIdAt, parent_id);
  PutDigest(out, kBlockIdAt, block_id);
  StoreLe(out.data() + kBlockPayloadBytesAt,
          std::uint64_t{payload.size() + mac.size()});
  StoreLe(out.data() + kBlockFirstTokenAt,
          static_cast<std::uint32_t>(first_token));
  std::memcpy(out.data() + kBlockTokensAt, tokens.data(), tokens.size_bytes());
  std::byte* at = out.data() + SectionsAt(tokens.size());
  for (BlockSection& section : sections) {
    if (section.kind != kMacSection) {
      section.checksum =
          Checksum64(payload.subspan(section.offset, section.length));
    }
    PutSection(at, section);
    at += kSectionBytes;
  }
  StoreLe(out.data() + kBlockChecksumAt,
          Checksum64(ByteSpan(out).subspan(kBlockVersionAt)));
  return out;
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

namespace {

// The MAC of an image; empty without one.
ByteSpan MacOf(ByteSpan image, const BlockHeader& header) {
  const auto section =
      std::find_if(header.sections.begin(), header.sections.end(),
                   [](const auto& s) { return s.kind == kMacSection; });
  if (section == header.sections.end() || section->length != kMacBytes) {
    return {};
  }
  return image.subspan(header.header_bytes).subspan(section->offset, kMacBytes);
}

}  // namespace

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
  // In a time that does not tell how much of it is right.
  std::byte differs{0};
  for (std::size_t i = 0; i < kMacBytes; ++i) differs |= right[i] ^ found[i];
  if (differs == std::byte{0}) return {};
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

std::size_t StatedHeaderBytes(ByteSpan start) {
  if (start.size() < kBlockHeaderBytesAt + sizeof(std::uint32_t)) return 0;
  return LoadLe<std::uint32_t>(start.data() + kBlockHeaderBytesAt);
}

Result<BlockHeader> ParseBlockHeader(ByteSpan bytes, std::uint64_t image_bytes,
                                     const std::string& what) {
  if (bytes.size() < kBlockTokensAt || image_bytes < bytes.size()) {
    return Corrupt(what, "shorter than a block header");
  }
  const std::byte* p = bytes.data();
  if (std::memcmp(p, kBlockMagic.data(), kBlockMagic.size()) != 0) {
    return Corrupt(what, "not a block (wrong magic)");
  }
  const auto header_bytes = LoadLe<std::uint32_t>(p + kBlockHeaderBytesAt);
  if (header_bytes < kBlockTokensAt || header_bytes % kPieceAlign != 0 ||
      header_bytes > bytes.size()) {
    return Corrupt(what, "the header's length does not fit the file");
  }
  if (LoadLe<std::uint64_t>(p + kBlockChecksumAt) !=
      Checksum64(
          bytes.subspan(kBlockVersionAt, header_bytes - kBlockVersionAt))) {
    return Corrupt(what, "the header's checksum does not match");
  }
  // The checksum held, so another version is really one and no damage.
  const auto version = LoadLe<std::uint32_t>(p + kBlockVersionAt);
  if (version != kBlockVersion && version != kPieceVersion) {
    return {Code::kIncompatible,
            what + ": block format version " + std::to_string(version)};
  }
  const auto n_tokens = LoadLe<std::uint32_t>(p + kBlockTokenCountAt);
  const auto n_sections = LoadLe<std::uint32_t>(p + kBlockSectionCountAt);
  if (n_tokens == 0 || n_tokens > kBlockTokensMax ||
      n_sections > kBlockSectionsMax ||
      HeaderBytes(n_tokens, n_sections, version) != header_bytes) {
    return Corrupt(what, "the header's counts do not fit its length");
  }
  const auto first_token = LoadLe<std::uint32_t>(p + kBlockFirstTokenAt);
  if (first_token >= (version == kBlockVersion ? 1 : n_tokens)) {
    return Corrupt(what, "it begins behind its end");
  }
  BlockHeader header;
  header.model_id = GetDigest(bytes, kBlockModelIdAt);
  header.format_id = GetDigest(bytes, kBlockFormatIdAt);
  header.root_id = GetDigest(bytes, kBlockRootIdAt);
  header.parent_id = GetDigest(bytes, kBlockParentIdAt);
  header.block_id = GetDigest(bytes, kBlockIdAt);
  header.header_bytes = header_bytes;
  header.payload_bytes = LoadLe<std::uint64_t>(p + kBlockPayloadBytesAt);
  if (header.payload_bytes != image_bytes - header_bytes) {
    return Corrupt(what, "the payload's length does not fit the file");
  }
  header.first_token = static_cast<int>(first_token);
  header.tokens.resize(n_tokens);
  std::memcpy(header.tokens.data(), p + kBlockTokensAt,
              n_tokens * sizeof(std::int32_t));
  header.sections.reserve(n_sections);
  const std::byte* at = p + SectionsAt(n_tokens);
  for (std::uint32_t i = 0; i < n_sections; ++i, at += kSectionBytes) {
    header.sections.push_back(GetSection(at));
  }
  if (!SectionsTile(header)) {
    return Corrupt(what, "the sections do not cover the payload");
  }
  return header;
}

Result<void> CheckBlockHeader(const BlockHeader& header,
                              const BlockQuery& query,
                              const std::string& what) {
  if (header.model_id != query.model_id) {
    return Corrupt(what, "of another model");
  }
  if (header.format_id != query.format_id) {
    return Corrupt(what, "of another storage format");
  }
  if (header.root_id != query.root_id) {
    return Corrupt(what, "of another name space");
  }
  if (header.parent_id != query.parent_id ||
      header.block_id != query.block_id) {
    return Corrupt(what, "another block than its name says");
  }
  if (!std::equal(header.tokens.begin(), header.tokens.end(),
                  query.tokens.begin(), query.tokens.end())) {
    return Corrupt(what, "other tokens than its id stands for");
  }
  if (ChildId(header.parent_id, header.tokens) != header.block_id) {
    return Corrupt(what, "its id is not that of its tokens");
  }
  return {};
}

Result<void> CheckSections(ByteSpan image, const BlockHeader& header,
                           const std::string& what) {
  const ByteSpan payload = image.subspan(header.header_bytes);
  for (const BlockSection& section : header.sections) {
    if (Checksum64(payload.subspan(section.offset, section.length)) !=
        section.checksum) {
      return Corrupt(what, "the checksum of layer " +
                               std::to_string(section.layer) +
                               " does not match");
    }
  }
  return {};
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
  const std::vector<BlockSection> expected = LayoutSections(spec, n_held);
  std::size_t n_found = 0;
  for (const BlockSection& section : header.sections) {
    if (!IsKnown(section.kind)) {
      if ((section.flags & kSectionRequired) == 0) continue;
      return {Code::kUnsupported, what + ": needs section kind " +
                                      std::to_string(section.kind) +
                                      ", which this version does not know"};
    }
    if (n_found == expected.size() || section.kind != expected[n_found].kind ||
        section.layer != expected[n_found].layer ||
        section.offset != expected[n_found].offset ||
        section.length != expected[n_found].length) {
      return Corrupt(what, "its sections are not those of the layout");
    }
    ++n_found;
  }
  if (n_found != expected.size()) {
    return Corrupt(what, "keys or values are missing");
  }
  if (check_payload) HEARTH_TRY(CheckSections(image, header, what));
  const std::size_t length = KvLayout(spec, n_held).block_bytes();
  return OpenImage{image.subspan(header.header_bytes, length),
                   header.first_token};
}

}  // namespace hearth
