#include "formats/narrow.h"

namespace hearth {

Result<int> NarrowToSize(Result<std::int64_t> value, const std::string& label,
                         const std::string& what) {
  if (!value.ok()) return value.error();
  if (*value < 0 || *value > INT32_MAX) {
    return {Code::kCorrupt, label + ": " + what + " has the impossible value " +
                                std::to_string(*value)};
  }
  return static_cast<int>(*value);
}

}  // namespace hearth
