#include "store/format/image_header.h"

#include <algorithm>
#include <cstring>

#include "cache/block_chain.h"
#include "cache/kv_layout.h"

namespace hearth {
namespace {

std::size_t AlignUp(std::size_t n, std::size_t align) {
  return (n + align - 1) / align * align;
}

std::size_t SectionsAt(std::size_t n_tokens) {
  return AlignUp(kBlockTokensAt + n_tokens * sizeof(std::int32_t), 8);
}

// Pieces are copied when they are read; all else may be mapped.
std::size_t HeaderBytes(ImageKind kind, std::size_t n_tokens,
                        std::size_t n_sections, std::uint32_t version) {
  const bool copied = kind == ImageKind::kBlock && version == kPieceVersion;
  return AlignUp(SectionsAt(n_tokens) + n_sections * kSectionBytes,
                 copied ? kPieceAlign : kImageAlign);
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

bool IsKnown(ImageKind image, std::uint16_t kind) {
  if (image == ImageKind::kState) return kind == kStateSection;
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

const std::array<char, 8>& MagicOf(ImageKind kind) {
  return kind == ImageKind::kState ? kStateMagic : kBlockMagic;
}
const char* NameOf(ImageKind kind) {
  return kind == ImageKind::kState ? "state" : "block";
}

// What stands behind the fields that say what it is, whose checksum held.
// bytes: the header.
Result<BlockHeader> ParseFields(ImageKind kind, std::uint32_t version,
                                ByteSpan bytes, std::uint64_t image_bytes,
                                const std::string& what) {
  const std::byte* p = bytes.data();
  const auto n_tokens = LoadLe<std::uint32_t>(p + kBlockTokenCountAt);
  const auto n_sections = LoadLe<std::uint32_t>(p + kBlockSectionCountAt);
  if (n_tokens == 0 || n_tokens > kBlockTokensMax ||
      n_sections > kBlockSectionsMax ||
      HeaderBytes(kind, n_tokens, n_sections, version) != bytes.size()) {
    return Corrupt(what, "the header's counts do not fit its length");
  }
  const auto first_token = LoadLe<std::uint32_t>(p + kBlockFirstTokenAt);
  const bool piece = kind == ImageKind::kBlock && version == kPieceVersion;
  if (first_token >= (piece ? n_tokens : 1)) {
    return Corrupt(what, "it begins behind its end");
  }
  const auto position = LoadLe<std::uint64_t>(p + kStatePositionAt);
  if (kind == ImageKind::kState &&
      (position < n_tokens || position > kPositionMax)) {
    return Corrupt(what, "of a position that no prefix has");
  }
  BlockHeader header;
  header.model_id = GetDigest(bytes, kBlockModelIdAt);
  header.format_id = GetDigest(bytes, kBlockFormatIdAt);
  header.root_id = GetDigest(bytes, kBlockRootIdAt);
  header.parent_id = GetDigest(bytes, kBlockParentIdAt);
  header.block_id = GetDigest(bytes, kBlockIdAt);
  header.header_bytes = static_cast<std::uint32_t>(bytes.size());
  header.payload_bytes = LoadLe<std::uint64_t>(p + kBlockPayloadBytesAt);
  if (header.payload_bytes != image_bytes - bytes.size()) {
    return Corrupt(what, "the payload's length does not fit the file");
  }
  header.first_token = static_cast<int>(first_token);
  header.position = kind == ImageKind::kState ? position : 0;
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

}  // namespace

std::vector<std::byte> EncodeImageHeader(ImageKind kind, std::uint32_t version,
                                         BlockHeader header, ByteSpan payload,
                                         ByteSpan mac) {
  for (BlockSection& section : header.sections) {
    section.checksum =
        Checksum64(payload.subspan(section.offset, section.length));
  }
  if (!mac.empty()) {
    header.sections.push_back(
        {kMacSection, 0, 0, payload.size(), mac.size(), Checksum64(mac)});
  }
  const std::vector<std::int32_t>& tokens = header.tokens;
  const std::size_t header_bytes =
      HeaderBytes(kind, tokens.size(), header.sections.size(), version);
  std::vector<std::byte> out(header_bytes);
  std::memcpy(out.data() + kBlockMagicAt, MagicOf(kind).data(), 8);
  StoreLe(out.data() + kBlockVersionAt, version);
  StoreLe(out.data() + kBlockHeaderBytesAt,
          static_cast<std::uint32_t>(header_bytes));
  StoreLe(out.data() + kBlockTokenCountAt,
          static_cast<std::uint32_t>(tokens.size()));
  StoreLe(out.data() + kBlockSectionCountAt,
          static_cast<std::uint32_t>(header.sections.size()));
  PutDigest(out, kBlockModelIdAt, header.model_id);
  PutDigest(out, kBlockFormatIdAt, header.format_id);
  PutDigest(out, kBlockRootIdAt, header.root_id);
  PutDigest(out, kBlockParentIdAt, header.parent_id);
  PutDigest(out, kBlockIdAt, header.block_id);
  StoreLe(out.data() + kBlockPayloadBytesAt,
          std::uint64_t{payload.size() + mac.size()});
  StoreLe(out.data() + kBlockFirstTokenAt,
          static_cast<std::uint32_t>(header.first_token));
  StoreLe(out.data() + kStatePositionAt, header.position);
  std::memcpy(out.data() + kBlockTokensAt, tokens.data(),
              tokens.size() * sizeof(std::int32_t));
  std::byte* at = out.data() + SectionsAt(tokens.size());
  for (const BlockSection& section : header.sections) {
    PutSection(at, section);
    at += kSectionBytes;
  }
  StoreLe(out.data() + kBlockChecksumAt,
          Checksum64(ByteSpan(out).subspan(kBlockVersionAt)));
  return out;
}

std::size_t StatedHeaderBytes(ByteSpan start) {
  if (start.size() < kBlockHeaderBytesAt + sizeof(std::uint32_t)) return 0;
  return LoadLe<std::uint32_t>(start.data() + kBlockHeaderBytesAt);
}

Result<BlockHeader> ParseImageHeader(ImageKind kind, ByteSpan bytes,
                                     std::uint64_t image_bytes,
                                     const std::string& what) {
  const std::string name = NameOf(kind);
  if (bytes.size() < kBlockTokensAt || image_bytes < bytes.size()) {
    return Corrupt(what, "shorter than a " + name + "'s header");
  }
  const std::byte* p = bytes.data();
  if (std::memcmp(p, MagicOf(kind).data(), kBlockMagic.size()) != 0) {
    return Corrupt(what, "not a " + name + " (wrong magic)");
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
  const bool known = kind == ImageKind::kState
                         ? version == kStateVersion
                         : version == kBlockVersion || version == kPieceVersion;
  if (!known) {
    return {Code::kIncompatible,
            what + ": " + name + " format version " + std::to_string(version)};
  }
  return ParseFields(kind, version, bytes.first(header_bytes), image_bytes,
                     what);
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

Result<void> CheckSectionsAre(ImageKind kind, const BlockHeader& header,
                              std::span<const BlockSection> expected,
                              const std::string& what) {
  std::size_t n_found = 0;
  for (const BlockSection& section : header.sections) {
    if (!IsKnown(kind, section.kind)) {
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
  return n_found == expected.size()
             ? Result<void>()
             : Corrupt(what, "some of its sections are missing");
}

}  // namespace hearth
