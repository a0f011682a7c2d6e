#include "tensor/kv_format.h"

#include <array>

namespace hearth {
namespace {

constexpr std::array<std::string_view, kKvFormats> kNames = {
    "fp32", "fp16", "bf16", "int8", "int4"};

}  // namespace

std::string_view NameOf(KvFormat format) {
  return kNames[static_cast<std::size_t>(format)];
}

std::optional<KvFormat> KvFormatNamed(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<KvFormat>(i);
  }
  return std::nullopt;
}

}  // namespace hearth
