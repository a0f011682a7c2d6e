// The bytes of a journal file: docs/formats/journal.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/files/vault.h"
#include "base/hash.h"

namespace hearth::serve {

// The ids of an answer, as they were sampled.
struct SampledIds {
  std::vector<std::int32_t> ids = {};
  std::int32_t end_id = -1;  // the end marker behind them; -1: it was cut
};

inline constexpr std::size_t kJournalHeaderBytes = 16;
inline constexpr std::uint32_t kJournalPayloadMax = std::uint32_t{16} << 20;

std::vector<std::byte> JournalHeader();
bool IsJournalHeader(ByteSpan bytes);

// One record, sealed when there is a vault. kIo when the system has no random
// numbers; kResourceFull for an answer that is too long to be kept.
Result<std::vector<std::byte>> JournalRecord(const Digest& key,
                                             const SampledIds& sampled,
                                             const Vault* vault);

struct ReadRecord {
  Digest key;
  SampledIds sampled;
};
// A record's payload, its checksum already checked or to be checked here.
// kCorrupt, kIncompatible: not ours to read.
Result<ReadRecord> ReadJournalRecord(ByteSpan record, const Vault* vault);

// Where the records are: calls `found` with each one's place and length, the
// head of 12 bytes included. Gives the number of bytes up to the first that is
// no record: what follows is a torn write.
std::size_t WalkJournal(
    ByteSpan bytes,
    const std::function<void(std::size_t at, std::size_t length)>& found);

}  // namespace hearth::serve
