// A journal's records behind its header, as they would be in a file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "serve/journal/journal_records.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace hearth;
  using namespace hearth::serve;
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  (void)IsJournalHeader(bytes);
  std::size_t end = 0;
  const std::size_t all =
      WalkJournal(bytes, [&](std::size_t at, std::size_t length) {
        if (at != end || length > size - at) std::abort();
        end = at + length;
        const auto record =
            ReadJournalRecord(bytes.subspan(at, length), nullptr);
        if (!record.ok()) return;
        // What was read is what would be written.
        const auto again = JournalRecord(record->key, record->sampled, nullptr);
        if (!again.ok() || again->size() != length ||
            !std::equal(again->begin(), again->end(),
                        bytes.begin() + static_cast<std::ptrdiff_t>(at))) {
          std::abort();
        }
      });
  if (all != end) std::abort();
  return 0;
}
