#include <utility>

#include "convert/imatrix/importance_reader.h"

namespace hearth {
namespace {

constexpr std::size_t kEntryBytesMin = 12;
constexpr std::int32_t kNameBytesMax = 4096;

}  // namespace

Result<ImportanceMatrix> ReadOldImportance(ByteSpan bytes,
                                           const std::string& label) {
  const Error cut = {Code::kCorrupt,
                     label + ": no importance matrix, or one that is cut off"};
  ByteReader reader(bytes);
  const auto n_entries = reader.Read<std::int32_t>();
  if (!reader.ok() || n_entries < 1 ||
      static_cast<std::size_t>(n_entries) >
          reader.remaining() / kEntryBytesMin) {
    return cut;
  }
  ImportanceMatrix matrix;
  for (std::int32_t i = 0; i < n_entries; ++i) {
    const auto name_bytes = reader.Read<std::int32_t>();
    if (!reader.ok() || name_bytes < 1 || name_bytes > kNameBytesMax) {
      return cut;
    }
    ImportanceEntry entry;
    entry.name = AsText(reader.Take(static_cast<std::uint64_t>(name_bytes)));
    const auto n_calls = reader.Read<std::int32_t>();
    const auto n_values = reader.Read<std::int32_t>();
    if (!reader.ok() || n_values < 1 || n_calls < 0) return cut;
    const ByteSpan values =
        reader.Take(static_cast<std::uint64_t>(n_values) * sizeof(float));
    if (!reader.ok()) return cut;
    // The values are means times the number of calls.
    entry.counts = {static_cast<float>(n_calls)};
    for (std::size_t k = 0; k < values.size(); k += sizeof(float)) {
      entry.sums.push_back(LoadLe<float>(values.data() + k));
    }
    matrix.entries.push_back(std::move(entry));
  }
  // Files of before March 2024 end here.
  if (reader.remaining() > 0) {
    matrix.n_chunks = reader.Read<std::int32_t>();
    const auto name_bytes = reader.Read<std::int32_t>();
    if (!reader.ok() || matrix.n_chunks < 0 || name_bytes < 0) return cut;
    const ByteSpan name = reader.Take(static_cast<std::uint64_t>(name_bytes));
    if (!reader.ok()) return cut;
    if (!name.empty()) matrix.datasets.emplace_back(AsText(name));
  }
  HEARTH_TRY(CheckImportance(matrix, label));
  return matrix;
}

}  // namespace hearth
