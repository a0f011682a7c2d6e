// Files made of given or random numbers.
#include <array>

#include "convert/tinygpt/tinygpt_writer.h"
#include "formats/huggingface/safetensors.h"
#include "hearth/convert.h"

namespace hearth {
namespace {

// A file of one matrix of this name was written here before.
OutputRule MatrixRule(const std::string& name, const WriteOptions& options) {
  return {.replace = options.replace,
          .same_kind =
              [name](const std::string& path) {
                const auto file = SafetensorsFile::Open(path);
                return file.ok() && file->tensors().size() == 1 &&
                       file->Find(name) != nullptr;
              },
          .inputs = {}};
}

}  // namespace

Result<void> InitModel(const std::string& preset, const std::string& path,
                       int n_kv_heads, bool yoco, std::uint64_t seed,
                       const WriteOptions& options) {
  return InitTinygpt(preset, path,
                     {.n_kv_heads = n_kv_heads, .yoco = yoco, .seed = seed},
                     options);
}

Result<void> WriteFloatMatrix(const std::string& path, const std::string& name,
                              std::span<const float> values,
                              std::int64_t n_columns,
                              const WriteOptions& options) {
  if (n_columns <= 0 ||
      values.size() % static_cast<std::size_t>(n_columns) != 0) {
    return {Code::kInvalidArgument, "the values do not fill whole rows"};
  }
  const auto rows = values.size() / static_cast<std::size_t>(n_columns);
  const std::array<SafetensorsTensor, 1> tensors = {
      {{.name = name,
        .type = "F32",
        .shape = {rows, static_cast<std::uint64_t>(n_columns)},
        .bytes = std::as_bytes(values)}}};
  return WriteSafetensors(path, tensors, {}, MatrixRule(name, options));
}

Result<void> CheckFloatMatrix(const std::string& path, const std::string& name,
                              const WriteOptions& options) {
  return CheckOutput(path, MatrixRule(name, options));
}

}  // namespace hearth
