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

}  // namespace hearth
