#include "store/prompt_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/block_format.h"

namespace hearth {
namespace {

std::uint64_t AlignUp(std::uint64_t n, std::uint64_t align) {
  return (n + align - 1) / align * align;
}

std::uint64_t EntriesAt(std::uint64_t n_tokens) {
  return AlignUp(kPromptTokensAt + n_tokens * sizeof(std::int32_t), 8);
}

std::uint64_t HeaderBytes(std::uint64_t n_tokens, std::uint64_t n_blocks,
                          std::uint64_t name_bytes) {
  return AlignUp(
      EntriesAt(n_tokens) + n_blocks * kPromptEntryBytes + name_bytes,
      kImageAlign);
}

Error Corrupt(const std::string& what, const std::string& why) {
  return {Code::kCorrupt, what + ": " + why};
}

Digest GetDigest(const std::byte* at) {
  Digest digest;
  std::memcpy(digest.bytes.data(), at, digest.bytes.size());
  return digest;
}

void PutDigest(std::byte* at, const Digest& digest) {
  std::memcpy(at, digest.bytes.data(), digest.bytes.size());
}

bool AllZero(ByteSpan bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte b) { return b == std::byte{0}; });
}

// Images lie in order, each on a page boundary, and only zeros lie between
// them; so every byte of the file is either checked here or part of an image.
Result<void> CheckImagePlaces(ByteSpan file, const PromptHeader& header,
                              std::uint64_t header_bytes,
                              const std::string& what) {
  std::uint64_t at = header_bytes;
  for (const PromptEntry& entry : header.blocks) {
    if (entry.image_at == 0) {
      if (entry.image_bytes == 0) continue;
      return Corrupt(what, "an image without a place");
    }
    const std::uint64_t start = AlignUp(at, kImageAlign);
    if (entry.image_at != start || start > file.size() ||
        entry.image_bytes > file.size() - start) {
      return Corrupt(what, "an image is not where the header says");
    }
    if (!AllZero(file.subspan(at, start - at))) {
      return Corrupt(what, "the padding between images is not zero");
    }
    at = start + entry.image_bytes;
  }
  if (at != file.size()) return Corrupt(what, "its length is wrong");
  return {};
}

Result<void> CheckChain(const PromptHeader& header, const std::string& what) {
  for (std::size_t i = 0; i < header.blocks.size(); ++i) {
    if (ChildId(header.ParentOf(i), header.BlockTokens(i)) !=
        header.blocks[i].id) {
      return Corrupt(what, "its block ids are not those of its tokens");
    }
  }
  return {};
}

}  // namespace

std::span<const std::int32_t> PromptHeader::BlockTokens(
    std::size_t index) const {
  const auto step = static_cast<std::size_t>(block_tokens);
  const std::size_t first = index * step;
  return std::span(tokens).subspan(first,
                                   std::min(step, tokens.size() - first));
}

Result<PromptFileParts> EncodePromptFile(PromptHeader header,
                                         std::vector<PromptImage> images) {
  if (header.model_name.size() > kPromptNameBytesMax) {
    header.model_name.resize(kPromptNameBytesMax);
  }
  if (header.tokens.empty() || header.tokens.size() > kPromptTokensMax) {
    return {Code::kInvalidArgument, "a prompt of " +
                                        std::to_string(header.tokens.size()) +
                                        " tokens cannot be stored"};
  }
  const std::uint64_t header_bytes = HeaderBytes(
      header.tokens.size(), header.blocks.size(), header.model_name.size());
  PromptFileParts out;
  out.padding.resize(kImageAlign);
  out.images = std::move(images);
  std::uint64_t at = header_bytes;
  std::vector<std::size_t> gaps;  // before each image
  for (const PromptImage& image : out.images) {
    const std::uint64_t start = AlignUp(at, kImageAlign);
    gaps.push_back(start - at);
    header.blocks[image.index].image_at = start;
    header.blocks[image.index].image_bytes =
        image.header.size() + image.payload.size();
    at = start + header.blocks[image.index].image_bytes;
  }
  out.header.resize(header_bytes);
  std::byte* p = out.header.data();
  std::memcpy(p, kPromptMagic.data(), kPromptMagic.size());
  StoreLe(p + kPromptVersionAt, kPromptVersion);
  StoreLe(p + kPromptHeaderBytesAt, static_cast<std::uint32_t>(header_bytes));
  StoreLe(p + kPromptTokenCountAt,
          static_cast<std::uint32_t>(header.tokens.size()));
  StoreLe(p + kPromptBlockTokensAt,
          static_cast<std::uint32_t>(header.block_tokens));
  PutDigest(p + kPromptModelIdAt, header.model_id);
  PutDigest(p + kPromptFormatIdAt, header.format_id);
  PutDigest(p + kPromptRootIdAt, header.root_id);
  StoreLe(p + kPromptFileBytesAt, at);
  StoreLe(p + kPromptBlockCountAt,
          static_cast<std::uint32_t>(header.blocks.size()));
  StoreLe(p + kPromptNameBytesAt,
          static_cast<std::uint32_t>(header.model_name.size()));
  std::memcpy(p + kPromptTokensAt, header.tokens.data(),
              header.tokens.size() * sizeof(std::int32_t));
  std::byte* entry_at = p + EntriesAt(header.tokens.size());
  for (const PromptEntry& entry : header.blocks) {
    PutDigest(entry_at, entry.id);
    StoreLe(entry_at + 32, entry.image_at);
    StoreLe(entry_at + 40, entry.image_bytes);
    entry_at += kPromptEntryBytes;
  }
  std::memcpy(entry_at, header.model_name.data(), header.model_name.size());
  StoreLe(p + kPromptChecksumAt,
          Checksum64(ByteSpan(out.header).subspan(kPromptVersionAt)));

  out.parts.push_back(out.header);
  for (std::size_t i = 0; i < out.images.size(); ++i) {
    out.parts.push_back(ByteSpan(out.padding).first(gaps[i]));
    out.parts.push_back(out.images[i].header);
    out.parts.push_back(out.images[i].payload);
  }
  return out;
}

Result<PromptHeader> ParsePromptFile(ByteSpan file, const std::string& what) {
  if (file.size() < kImageAlign) {
    return Corrupt(what, "shorter than a prompt file's header");
  }
  const std::byte* p = file.data();
  if (!LooksLikePromptFile(file)) {
    return Corrupt(what, "not a hearth prompt file (wrong magic)");
  }
  const auto header_bytes = LoadLe<std::uint32_t>(p + kPromptHeaderBytesAt);
  if (header_bytes < kImageAlign || header_bytes % kImageAlign != 0 ||
      header_bytes > file.size()) {
    return Corrupt(what, "the header's length does not fit the file");
  }
  if (LoadLe<std::uint64_t>(p + kPromptChecksumAt) !=
      Checksum64(
          file.subspan(kPromptVersionAt, header_bytes - kPromptVersionAt))) {
    return Corrupt(what, "the header's checksum does not match");
  }
  const auto version = LoadLe<std::uint32_t>(p + kPromptVersionAt);
  if (version != kPromptVersion) {
    return {Code::kIncompatible,
            what + ": prompt file version " + std::to_string(version)};
  }
  const auto n_tokens = LoadLe<std::uint32_t>(p + kPromptTokenCountAt);
  const auto block_tokens = LoadLe<std::uint32_t>(p + kPromptBlockTokensAt);
  const auto n_blocks = LoadLe<std::uint32_t>(p + kPromptBlockCountAt);
  const auto name_bytes = LoadLe<std::uint32_t>(p + kPromptNameBytesAt);
  if (n_tokens == 0 || n_tokens > kPromptTokensMax || block_tokens == 0 ||
      block_tokens > kBlockTokensMax || name_bytes > kPromptNameBytesMax ||
      n_blocks != (n_tokens + block_tokens - 1) / block_tokens ||
      HeaderBytes(n_tokens, n_blocks, name_bytes) != header_bytes) {
    return Corrupt(what, "the header's counts do not fit its length");
  }
  if (LoadLe<std::uint64_t>(p + kPromptFileBytesAt) != file.size()) {
    return Corrupt(what, "its length is not the one it states");
  }
  PromptHeader header;
  header.model_id = GetDigest(p + kPromptModelIdAt);
  header.format_id = GetDigest(p + kPromptFormatIdAt);
  header.root_id = GetDigest(p + kPromptRootIdAt);
  header.block_tokens = static_cast<int>(block_tokens);
  header.tokens.resize(n_tokens);
  std::memcpy(header.tokens.data(), p + kPromptTokensAt,
              n_tokens * sizeof(std::int32_t));
  header.blocks.reserve(n_blocks);
  const std::byte* at = p + EntriesAt(n_tokens);
  for (std::uint32_t i = 0; i < n_blocks; ++i, at += kPromptEntryBytes) {
    header.blocks.push_back({GetDigest(at), LoadLe<std::uint64_t>(at + 32),
                             LoadLe<std::uint64_t>(at + 40)});
  }
  header.model_name = AsText({at, name_bytes});
  HEARTH_TRY(CheckImagePlaces(file, header, header_bytes, what));
  HEARTH_TRY(CheckChain(header, what));
  return header;
}

bool LooksLikePromptFile(ByteSpan start) {
  return start.size() >= kPromptMagic.size() &&
         std::memcmp(start.data(), kPromptMagic.data(), kPromptMagic.size()) ==
             0;
}

}  // namespace hearth
