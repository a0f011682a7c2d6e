// Files made of given or random numbers.
#include <array>

#include "convert/tinygpt/tinygpt_writer.h"
#include "formats/huggingface/safetensors.h"
#include "hearth/convert.h"

namespace hearth {

Result<void> InitModel(const std::string& preset, const std::string& path,
                       int n_kv_heads, bool yoco, std::uint64_t seed) {
  return InitTinygpt(preset, path,
                     {.n_kv_heads = n_kv_heads, .yoco = yoco, .seed = seed});
}

Result<void> WriteFloatMatrix(const std::string& path, const std::string& name,
                              std::span<const float> values,
                              std::int64_t n_columns) {
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
  return WriteSafetensors(path, tensors);
}

}  // namespace hearth
