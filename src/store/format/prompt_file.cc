#include "store/format/prompt_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hearth {
namespace {

std::uint64_t AlignUp(std::uint64_t n, std::uint64_t align) {
  return (n + align - 1) / align * align;
}

std::uint64_t EndsAt(std::uint64_t n_entries) {
  return kPromptEntriesAt + n_entries * sizeof(Digest);
}

std::uint64_t LengthsAt(std::uint64_t n_entries) {
  return AlignUp(EndsAt(n_entries) + n_entries * sizeof(std::uint32_t), 8);
}

std::uint64_t NameAt(std::uint64_t n_entries, bool holds_images) {
  return LengthsAt(n_entries) +
         (holds_images ? n_entries * sizeof(std::uint64_t) : 0);
}

std::uint64_t HeaderBytes(std::uint64_t n_entries, std::uint64_t name_bytes,
                          bool holds_images) {
  return AlignUp(NameAt(n_entries, holds_images) + name_bytes, 8);
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

// Each begins where the one before ended, and none goes beyond its block.
bool EntriesFollow(const PromptHeader& header) {
  const auto step = static_cast<std::uint64_t>(header.block_tokens);
  for (std::size_t i = 0; i < header.entries.size(); ++i) {
    const std::uint64_t end = header.entries[i].end;
    if (end <= header.FirstOf(i) || end > header.BlockStart(i) + step) {
      return false;
    }
  }
  return true;
}

// Images lie in order, each on a page boundary, and only zeros lie between
// them; so every byte of the file is either checked here or part of an image.
Result<void> PlaceImages(ByteSpan file, std::uint64_t header_bytes,
                         bool holds_images, PromptHeader& header,
                         const std::string& what) {
  std::uint64_t at = header_bytes;
  for (std::size_t i = 0; holds_images && i < header.entries.size(); ++i) {
    PromptEntry& entry = header.entries[i];
    entry.image_at = AlignUp(at, kImageAlign);
    if (entry.image_at > file.size() || entry.image_bytes == 0 ||
        entry.image_bytes > file.size() - entry.image_at) {
      return Corrupt(what, "an image goes beyond its end");
    }
    if (!AllZero(file.subspan(at, entry.image_at - at))) {
      return Corrupt(what, "the padding between images is not zero");
    }
    at = entry.image_at + entry.image_bytes;
  }
  if (at != file.size()) return Corrupt(what, "its length is wrong");
  return {};
}

}  // namespace

const Digest& PromptHeader::ParentOf(std::size_t index) const {
  const std::uint64_t start = BlockStart(index);
  while (index > 0 && entries[index - 1].end != start) --index;
  return index == 0 ? root_id : entries[index - 1].id;
}

PromptHeader HeaderOf(const KvIdentity& identity, const KvSpec& spec) {
  PromptHeader header;
  header.model_id = identity.model_id;
  header.format_id = identity.format_id;
  header.root_id = RootId(identity);
  header.block_tokens = spec.block_tokens;
  header.model_name = identity.model_name;
  return header;
}

Result<PromptFileParts> EncodePromptFile(PromptHeader header,
                                         std::vector<PromptImage> images) {
  if (header.model_name.size() > kPromptNameBytesMax) {
    header.model_name.resize(kPromptNameBytesMax);
  }
  const std::size_t n = header.entries.size();
  if (n == 0 || header.n_tokens() > kPromptTokensMax ||
      !EntriesFollow(header)) {
    return {Code::kInvalidArgument,
            "a prompt of these blocks cannot be stored"};
  }
  const bool holds_images = !images.empty();
  if (holds_images && images.size() != n) {
    return {Code::kInvalidArgument, "a bundle needs all blocks of its prompt"};
  }
  const std::uint64_t header_bytes =
      HeaderBytes(n, header.model_name.size(), holds_images);
  PromptFileParts out;
  out.padding.resize(kImageAlign);
  out.images = std::move(images);
  out.header.resize(header_bytes);
  std::byte* p = out.header.data();
  std::uint64_t at = header_bytes;
  out.parts.push_back(out.header);
  for (std::size_t i = 0; i < out.images.size(); ++i) {
    const PromptImage& image = out.images[i];
    const std::uint64_t start = AlignUp(at, kImageAlign);
    const std::uint64_t length = image.header.size() + image.payload.size();
    StoreLe(p + LengthsAt(n) + i * sizeof(length), length);
    out.parts.push_back(ByteSpan(out.padding).first(start - at));
    out.parts.push_back(image.header);
    out.parts.push_back(image.payload);
    at = start + length;
  }
  std::memcpy(p, kPromptMagic.data(), kPromptMagic.size());
  StoreLe(p + kPromptVersionAt, kPromptVersion);
  StoreLe(p + kPromptHeaderBytesAt, static_cast<std::uint32_t>(header_bytes));
  StoreLe(p + kPromptTokenCountAt,
          static_cast<std::uint32_t>(header.n_tokens()));
  StoreLe(p + kPromptBlockTokensAt,
          static_cast<std::uint32_t>(header.block_tokens));
  PutDigest(p + kPromptModelIdAt, header.model_id);
  PutDigest(p + kPromptFormatIdAt, header.format_id);
  PutDigest(p + kPromptRootIdAt, header.root_id);
  StoreLe(p + kPromptFileBytesAt, at);
  StoreLe(p + kPromptEntryCountAt, static_cast<std::uint32_t>(n));
  StoreLe(p + kPromptNameBytesAt,
          static_cast<std::uint32_t>(header.model_name.size()));
  StoreLe(p + kPromptFlagsAt, holds_images ? kPromptHoldsImages : 0u);
  for (std::size_t i = 0; i < n; ++i) {
    PutDigest(p + kPromptEntriesAt + i * sizeof(Digest), header.entries[i].id);
    StoreLe(p + EndsAt(n) + i * sizeof(std::uint32_t),
            static_cast<std::uint32_t>(header.entries[i].end));
  }
  std::memcpy(p + NameAt(n, holds_images), header.model_name.data(),
              header.model_name.size());
  StoreLe(p + kPromptChecksumAt,
          Checksum64(ByteSpan(out.header).subspan(kPromptVersionAt)));
  return out;
}

Result<PromptHeader> ParsePromptFile(ByteSpan file, const std::string& what) {
  if (file.size() < kPromptEntriesAt) {
    return Corrupt(what, "shorter than a prompt file's header");
  }
  const std::byte* p = file.data();
  if (!LooksLikePromptFile(file)) {
    return Corrupt(what, "not a hearth prompt file (wrong magic)");
  }
  const auto header_bytes = LoadLe<std::uint32_t>(p + kPromptHeaderBytesAt);
  if (header_bytes < kPromptEntriesAt || header_bytes > file.size()) {
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
  const auto n = LoadLe<std::uint32_t>(p + kPromptEntryCountAt);
  const auto name_bytes = LoadLe<std::uint32_t>(p + kPromptNameBytesAt);
  const auto flags = LoadLe<std::uint32_t>(p + kPromptFlagsAt);
  const bool holds_images = flags == kPromptHoldsImages;
  if (n_tokens == 0 || n_tokens > kPromptTokensMax || block_tokens == 0 ||
      block_tokens > kBlockTokensMax || name_bytes > kPromptNameBytesMax ||
      n == 0 || n > n_tokens || flags > kPromptHoldsImages ||
      HeaderBytes(n, name_bytes, holds_images) != header_bytes) {
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
  header.model_name = AsText({p + NameAt(n, holds_images), name_bytes});
  header.entries.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    PromptEntry& entry = header.entries[i];
    entry.id = GetDigest(p + kPromptEntriesAt + i * sizeof(Digest));
    entry.end = LoadLe<std::uint32_t>(p + EndsAt(n) + i * 4);
    if (holds_images) {
      entry.image_bytes = LoadLe<std::uint64_t>(p + LengthsAt(n) + i * 8);
    }
  }
  if (header.n_tokens() != n_tokens || !EntriesFollow(header)) {
    return Corrupt(what, "its blocks do not follow each other");
  }
  HEARTH_TRY(PlaceImages(file, header_bytes, holds_images, header, what));
  return header;
}

Result<void> CheckEntry(const PromptHeader& prompt, std::size_t index,
                        const BlockHeader& image, const std::string& what) {
  const std::uint64_t start = prompt.BlockStart(index);
  const BlockQuery query{prompt.model_id,          prompt.format_id,
                         prompt.root_id,           prompt.ParentOf(index),
                         prompt.entries[index].id, image.tokens};
  HEARTH_TRY(CheckBlockHeader(image, query, what));
  const auto first = static_cast<std::uint64_t>(image.first_token);
  if (image.tokens.size() != prompt.entries[index].end - start ||
      first != prompt.FirstOf(index) - start ||
      (first > 0 && IdBefore(image) != prompt.entries[index - 1].id)) {
    return Corrupt(what, "another block than the prompt's");
  }
  return {};
}

std::size_t DropCovered(PromptHeader& prompt, std::size_t index,
                        int first_token) {
  const std::uint64_t from =
      prompt.BlockStart(index) + static_cast<std::uint64_t>(first_token);
  while (index > 0 && prompt.entries[index - 1].end > from) {
    prompt.entries.erase(prompt.entries.begin() +
                         static_cast<std::ptrdiff_t>(--index));
  }
  return index;
}

bool LooksLikePromptFile(ByteSpan start) {
  return start.size() >= kPromptMagic.size() &&
         std::memcmp(start.data(), kPromptMagic.data(), kPromptMagic.size()) ==
             0;
}

}  // namespace hearth
