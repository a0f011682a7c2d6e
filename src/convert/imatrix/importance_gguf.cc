#include <cstring>
#include <string_view>
#include <utility>

#include "convert/imatrix/importance_reader.h"
#include "formats/gguf/gguf.h"

namespace hearth {
namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";

std::vector<float> FloatsOf(const GgufTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = LoadLe<float>(tensor.bytes.data() + i * sizeof(float));
  }
  return values;
}

Result<ImportanceEntry> ReadEntry(const GgufFile& file, const GgufTensor& sums,
                                  std::string name) {
  const GgufTensor* counts = file.FindTensor(name + std::string(kCounts));
  if (counts == nullptr) {
    return {Code::kCorrupt,
            file.label() + ": tensor " + name + ".in_sum2 has no .counts"};
  }
  for (const GgufTensor* tensor : {&sums, counts}) {
    if (tensor->dtype == DType::kF32) continue;
    return {Code::kUnsupported, file.label() + ": tensor " +
                                    std::string(tensor->name) + " is " +
                                    tensor->type + ", not F32"};
  }
  return ImportanceEntry{.name = std::move(name),
                         .sums = FloatsOf(sums),
                         .counts = FloatsOf(*counts)};
}

}  // namespace

Result<ImportanceMatrix> ReadGgufImportance(ByteSpan bytes,
                                            const std::string& label) {
  HEARTH_ASSIGN(const GgufFile file, GgufFile::Parse(bytes, label));
  HEARTH_ASSIGN(const std::string_view type, file.Text("general.type", ""));
  if (type != "imatrix") {
    return {Code::kUnsupported,
            label + ": this is no importance matrix" +
                (type.empty() ? "" : " but a " + std::string(type))};
  }
  ImportanceMatrix matrix;
  HEARTH_ASSIGN(const std::int64_t n_chunks,
                file.Int("imatrix.chunk_count", 0));
  HEARTH_ASSIGN(const std::int64_t chunk_tokens,
                file.Int("imatrix.chunk_size", 0));
  constexpr std::int64_t kMany = 1 << 30;
  if (n_chunks < 0 || n_chunks > kMany || chunk_tokens < 0 ||
      chunk_tokens > kMany) {
    return {Code::kCorrupt, label + ": impossible counts of chunks"};
  }
  matrix.n_chunks = static_cast<int>(n_chunks);
  matrix.chunk_tokens = static_cast<int>(chunk_tokens);
  if (file.Has("imatrix.datasets")) {
    HEARTH_ASSIGN(const auto names, file.TextArray("imatrix.datasets"));
    for (const std::string_view name : names) {
      matrix.datasets.emplace_back(name);
    }
  }
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with(kSums)) continue;
    std::string name(tensor.name.substr(0, tensor.name.size() - kSums.size()));
    HEARTH_ASSIGN(ImportanceEntry entry,
                  ReadEntry(file, tensor, std::move(name)));
    matrix.entries.push_back(std::move(entry));
  }
  HEARTH_TRY(CheckImportance(matrix, label));
  return matrix;
}

}  // namespace hearth
