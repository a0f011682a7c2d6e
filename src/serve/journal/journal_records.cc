#include "serve/journal/journal_records.h"

#include <algorithm>
#include <cstring>

namespace hearth::serve {
namespace {

constexpr std::string_view kMagic("HRTHJRNL", 8);
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 12;  // length and checksum
constexpr std::size_t kFixedBytes = 32 + 4 + 4;

}  // namespace

std::vector<std::byte> JournalHeader() {
  std::vector<std::byte> header;
  const ByteSpan magic = AsBytes(kMagic);
  header.insert(header.end(), magic.begin(), magic.end());
  AppendLe(header, kVersion);
  AppendLe(header, std::uint32_t{0});
  return header;
}

bool IsJournalHeader(ByteSpan bytes) {
  ByteReader reader(bytes);
  const ByteSpan magic = reader.Take(kMagic.size());
  const bool known =
      AsText(magic) == kMagic && reader.Read<std::uint32_t>() == kVersion;
  (void)reader.Read<std::uint32_t>();
  return known && reader.ok();
}

Result<std::vector<std::byte>> JournalRecord(const Digest& key,
                                             const SampledIds& sampled,
                                             const Vault* vault) {
  std::vector<std::byte> payload;
  if (sampled.ids.size() > kJournalPayloadMax / 8) {
    return {Code::kResourceFull, "an answer too long for the journal"};
  }
  const ByteSpan name = std::as_bytes(std::span(key.bytes));
  payload.insert(payload.end(), name.begin(), name.end());
  AppendLe(payload, sampled.end_id);
  AppendLe(payload, static_cast<std::uint32_t>(sampled.ids.size()));
  for (const std::int32_t id : sampled.ids) AppendLe(payload, id);
  if (vault != nullptr) {
    const ByteSpan parts[] = {payload};
    HEARTH_ASSIGN(payload, vault->Seal(parts));
  }
  std::vector<std::byte> record;
  AppendLe(record, static_cast<std::uint32_t>(payload.size()));
  AppendLe(record, Checksum64(payload));
  record.insert(record.end(), payload.begin(), payload.end());
  return record;
}

Result<ReadRecord> ReadJournalRecord(ByteSpan record, const Vault* vault) {
  const Error corrupt = {Code::kCorrupt, "a damaged record of the journal"};
  ByteReader head(record);
  const auto length = head.Read<std::uint32_t>();
  const auto checksum = head.Read<std::uint64_t>();
  ByteSpan payload = head.Take(length);
  if (!head.ok() || Checksum64(payload) != checksum) return corrupt;
  HEARTH_TRY(CheckKey(payload, vault, "the journal"));
  FileBytes opened;
  if (vault != nullptr) {
    HEARTH_ASSIGN(opened, vault->Open(payload, "the journal"));
    payload = opened.bytes;
  }
  ByteReader reader(payload);
  ReadRecord out;
  const ByteSpan name = reader.Take(out.key.bytes.size());
  out.sampled.end_id = reader.Read<std::int32_t>();
  const auto n = reader.Read<std::uint32_t>();
  if (!reader.ok() || reader.remaining() != std::size_t{n} * 4) return corrupt;
  std::memcpy(out.key.bytes.data(), name.data(), name.size());
  out.sampled.ids.reserve(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    out.sampled.ids.push_back(reader.Read<std::int32_t>());
  }
  return out;
}

std::size_t WalkJournal(
    ByteSpan bytes,
    const std::function<void(std::size_t, std::size_t)>& found) {
  std::size_t at = 0;
  while (bytes.size() - at >= kHeadBytes) {
    const auto length = LoadLe<std::uint32_t>(bytes.data() + at);
    if (length < kFixedBytes || length > kJournalPayloadMax ||
        length > bytes.size() - at - kHeadBytes) {
      break;
    }
    found(at, kHeadBytes + length);
    at += kHeadBytes + length;
  }
  return at;
}

}  // namespace hearth::serve
