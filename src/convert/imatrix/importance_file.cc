#include <cmath>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "base/files/output.h"
#include "convert/gguf/gguf_writer.h"
#include "convert/imatrix/importance_reader.h"
#include "hearth/importance.h"

namespace hearth {
namespace {

bool IsImportance(const std::string& path) { return ReadImportance(path).ok(); }

OutputRule RuleFor(const WriteOptions& options) {
  return {.replace = options.replace, .same_kind = IsImportance, .inputs = {}};
}

// Matrices of several experts have a second size, others do not.
GgufTensorSource SourceOf(std::string name, std::uint64_t n_matrices,
                          const std::vector<float>& values) {
  std::vector<std::uint64_t> shape = {values.size() / n_matrices};
  if (n_matrices > 1) shape.insert(shape.begin(), n_matrices);
  return {std::move(name), DType::kF32, std::move(shape),
          [&values](const GgufSink& sink) {
            return sink(std::as_bytes(std::span(values)));
          }};
}

}  // namespace

Result<void> CheckImportance(const ImportanceMatrix& matrix,
                             const std::string& label) {
  const auto corrupt = [&label](const std::string& what) {
    return Error{Code::kCorrupt, label + ": " + what};
  };
  if (matrix.entries.empty()) {
    return corrupt("an importance matrix of no tensors");
  }
  std::unordered_set<std::string_view> names;
  for (const ImportanceEntry& entry : matrix.entries) {
    if (entry.name.empty() || !names.insert(entry.name).second) {
      return corrupt("tensor \"" + entry.name +
                     "\" is there twice or nameless");
    }
    if (entry.counts.empty() || entry.sums.empty() ||
        entry.sums.size() % entry.counts.size() != 0) {
      return corrupt(entry.name + ": " + std::to_string(entry.sums.size()) +
                     " sums for " + std::to_string(entry.counts.size()) +
                     " counts");
    }
    for (const auto* values : {&entry.sums, &entry.counts}) {
      for (const float value : *values) {
        if (std::isfinite(value) && value >= 0) continue;
        return corrupt(entry.name + " holds " + std::to_string(value) +
                       ", which no sum of squares and no count is");
      }
    }
  }
  return {};
}

Result<ImportanceMatrix> ReadImportanceFromMemory(
    std::span<const std::byte> bytes, const std::string& label) {
  constexpr std::string_view kMagic = "GGUF";
  if (bytes.size() >= kMagic.size() &&
      AsText(bytes.first(kMagic.size())) == kMagic) {
    return ReadGgufImportance(bytes, label);
  }
  return ReadOldImportance(bytes, label);
}

Result<ImportanceMatrix> ReadImportance(const std::string& path) {
  HEARTH_ASSIGN(const MappedFile file, MappedFile::Open(path));
  return ReadImportanceFromMemory(file.bytes(), path);
}

Result<void> CheckImportanceTarget(const std::string& path,
                                   const WriteOptions& options) {
  return CheckOutput(path, RuleFor(options));
}

Result<void> WriteImportance(const std::string& path,
                             const ImportanceMatrix& matrix,
                             const WriteOptions& options) {
  HEARTH_TRY(CheckImportance(matrix, path));
  HEARTH_TRY(CheckImportanceTarget(path, options));
  const std::vector<GgufMetadata> metadata = {
      {"general.type", std::string("imatrix")},
      {"imatrix.datasets", matrix.datasets},
      {"imatrix.chunk_count", static_cast<std::uint32_t>(matrix.n_chunks)},
      {"imatrix.chunk_size", static_cast<std::uint32_t>(matrix.chunk_tokens)}};
  std::vector<GgufTensorSource> tensors;
  for (const ImportanceEntry& entry : matrix.entries) {
    const std::uint64_t n = entry.counts.size();
    tensors.push_back(SourceOf(entry.name + ".in_sum2", n, entry.sums));
    tensors.push_back(SourceOf(entry.name + ".counts", n, entry.counts));
  }
  WriteOptions checked = options;
  checked.replace = true;  // what may not be replaced is refused above
  return WriteGguf(path, metadata, tensors, checked);
}

}  // namespace hearth
