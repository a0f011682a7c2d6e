#include "store/format/prompt_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hearth {
namespace {

std::uint64_t AlignUp(std::uint64_t n, std::uint64_t align) {
  return (n + align - 1) / align * align;
}

// Where the parts of a header stand.
struct Places {
  Places(std::uint64_t n_entries, std::uint64_t n_states,
         std::uint64_t name_bytes, bool holds_images) {
    const std::uint64_t length = holds_images ? sizeof(std::uint64_t) : 0;
    ends = kPromptEntriesAt + n_entries * sizeof(Digest);
    lengths = AlignUp(ends + n_entries * sizeof(std::uint32_t), 8);
    name = lengths + n_entries * length;
    state_ids = AlignUp(name + name_bytes, 8);
    state_ends = state_ids + n_states * sizeof(Digest);
    state_lengths = AlignUp(state_ends + n_states * sizeof(std::uint32_t), 8);
    all = state_lengths + n_states * length;
  }
  std::uint64_t ends, lengths, name, state_ids, state_ends, state_lengths, all;
};

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

bool StatesRise(const PromptHeader& header) {
  std::uint64_t end = 0;
  for (const PromptEntry& state : header.states) {
    if (state.end <= end || state.end > header.n_tokens()) return false;
    end = state.end;
  }
  return header.carries_states || header.states.empty();
}

void PutEntries(std::byte* header, std::uint64_t ids, std::uint64_t ends,
                const std::vector<PromptEntry>& entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    PutDigest(header + ids + i * sizeof(Digest), entries[i].id);
    StoreLe(header + ends + i * sizeof(std::uint32_t),
            static_cast<std::uint32_t>(entries[i].end));
  }
}

std::vector<PromptEntry> GetEntries(const std::byte* header, std::uint64_t ids,
                                    std::uint64_t ends, std::uint64_t lengths,
                                    std::uint32_t n, bool holds_images) {
  std::vector<PromptEntry> entries(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    entries[i].id = GetDigest(header + ids + i * sizeof(Digest));
    entries[i].end = LoadLe<std::uint32_t>(header + ends + i * 4);
    if (holds_images) {
      entries[i].image_bytes = LoadLe<std::uint64_t>(header + lengths + i * 8);
    }
  }
  return entries;
}

// Images lie in order, each on a page boundary, and only zeros lie between
// them; so every byte of the file is either checked here or part of an image.
Result<void> PlaceImages(ByteSpan file, std::uint64_t header_bytes,
                         bool holds_images, PromptHeader& header,
                         const std::string& what) {
  std::uint64_t at = header_bytes;
  std::vector<PromptEntry*> all;
  for (PromptEntry& entry : header.entries) all.push_back(&entry);
  for (PromptEntry& state : header.states) all.push_back(&state);
  if (!holds_images) all.clear();
  for (PromptEntry* entry : all) {
    entry->image_at = AlignUp(at, kImageAlign);
    if (entry->image_at > file.size() || entry->image_bytes == 0 ||
        entry->image_bytes > file.size() - entry->image_at) {
      return Corrupt(what, "an image goes beyond its end");
    }
    if (!AllZero(file.subspan(at, entry->image_at - at))) {
      return Corrupt(what, "the padding between images is not zero");
    }
    at = entry->image_at + entry->image_bytes;
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
  header.carries_states = !spec.states.empty();
  return header;
}

Result<PromptFileParts> EncodePromptFile(PromptHeader header,
                                         std::vector<PromptImage> images) {
  if (header.model_name.size() > kPromptNameBytesMax) {
    header.model_name.resize(kPromptNameBytesMax);
  }
  const std::size_t n = header.entries.size(), n_states = header.states.size();
  if (n == 0 || header.n_tokens() > kPromptTokensMax ||
      !EntriesFollow(header) || !StatesRise(header)) {
    return {Code::kInvalidArgument,
            "a prompt of these blocks cannot be stored"};
  }
  const bool holds_images = !images.empty();
  if (holds_images && images.size() != n + n_states) {
    return {Code::kInvalidArgument, "a bundle needs all blocks of its prompt"};
  }
  const Places places(n, n_states, header.model_name.size(), holds_images);
  PromptFileParts out;
  out.padding.resize(kImageAlign);
  out.images = std::move(images);
  out.header.resize(places.all);
  std::byte* p = out.header.data();
  std::uint64_t at = places.all;
  out.parts.push_back(out.header);
  for (std::size_t i = 0; i < out.images.size(); ++i) {
    const PromptImage& image = out.images[i];
    const std::uint64_t start = AlignUp(at, kImageAlign);
    const std::uint64_t length = image.header.size() + image.payload.size();
    StoreLe(p + (i < n ? places.lengths + i * 8
                       : places.state_lengths + (i - n) * 8),
            length);
    out.parts.push_back(ByteSpan(out.padding).first(start - at));
    out.parts.push_back(image.header);
    out.parts.push_back(image.payload);
    at = start + length;
  }
  std::memcpy(p, kPromptMagic.data(), kPromptMagic.size());
  StoreLe(p + kPromptVersionAt,
          header.carries_states ? kPromptStatesVersion : kPromptVersion);
  StoreLe(p + kPromptHeaderBytesAt, static_cast<std::uint32_t>(places.all));
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
  StoreLe(p + kPromptStateCountAt, static_cast<std::uint32_t>(n_states));
  PutEntries(p, kPromptEntriesAt, places.ends, header.entries);
  PutEntries(p, places.state_ids, places.state_ends, header.states);
  std::memcpy(p + places.name, header.model_name.data(),
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
  if (version != kPromptVersion && version != kPromptStatesVersion) {
    return {Code::kIncompatible,
            what + ": prompt file version " + std::to_string(version)};
  }
  const auto n_tokens = LoadLe<std::uint32_t>(p + kPromptTokenCountAt);
  const auto block_tokens = LoadLe<std::uint32_t>(p + kPromptBlockTokensAt);
  const auto n = LoadLe<std::uint32_t>(p + kPromptEntryCountAt);
  const auto name_bytes = LoadLe<std::uint32_t>(p + kPromptNameBytesAt);
  const auto flags = LoadLe<std::uint32_t>(p + kPromptFlagsAt);
  const auto n_states = LoadLe<std::uint32_t>(p + kPromptStateCountAt);
  const bool holds_images = flags == kPromptHoldsImages;
  const Places places(n, n_states, name_bytes, holds_images);
  if (n_tokens == 0 || n_tokens > kPromptTokensMax || block_tokens == 0 ||
      block_tokens > kBlockTokensMax || name_bytes > kPromptNameBytesMax ||
      n == 0 || n > n_tokens || flags > kPromptHoldsImages ||
      n_states > (version == kPromptStatesVersion ? n_tokens : 0) ||
      places.all != header_bytes) {
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
  header.model_name = AsText({p + places.name, name_bytes});
  header.entries = GetEntries(p, kPromptEntriesAt, places.ends, places.lengths,
                              n, holds_images);
  header.carries_states = version == kPromptStatesVersion;
  header.states = GetEntries(p, places.state_ids, places.state_ends,
                             places.state_lengths, n_states, holds_images);
  if (header.n_tokens() != n_tokens || !EntriesFollow(header) ||
      !StatesRise(header)) {
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

// Its parent is a block of the prompt, or a piece that ends one.
Result<void> CheckStateEntry(const PromptHeader& prompt, std::size_t index,
                             const BlockHeader& image,
                             const std::string& what) {
  const PromptEntry& state = prompt.states[index];
  const auto step = static_cast<std::uint64_t>(prompt.block_tokens);
  const std::uint64_t begin = (state.end - 1) / step * step;
  const Digest* parent = &prompt.root_id;
  for (const PromptEntry& entry : prompt.entries) {
    if (entry.end == begin) parent = &entry.id;
  }
  const BlockQuery prefix{prompt.model_id, prompt.format_id, prompt.root_id,
                          *parent,         state.id,         image.tokens};
  HEARTH_TRY(CheckBlockHeader(image, prefix, what));
  if (image.position != state.end || image.tokens.size() != state.end - begin) {
    return Corrupt(what, "another state than the prompt's");
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
