// Structs whose first member is the size that their caller knows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "capi/failure.h"

namespace hearth::capi {

// Copies what the caller knows of `values`. HEARTH_INVALID_ARGUMENT when its
// size was not set. A null `report` is not wanted.
template <typename T>
hearth_code FillReport(const T& values, T* report) {
  if (report == nullptr) return HEARTH_OK;
  const std::size_t size = std::min(report->struct_size, sizeof(T));
  std::memcpy(reinterpret_cast<char*>(report) + sizeof(std::size_t),
              reinterpret_cast<const char*>(&values) + sizeof(std::size_t),
              size - sizeof(std::size_t));
  return HEARTH_OK;
}

// Before the work is done.
template <typename T>
hearth_code CheckReport(const T* report) {
  if (report == nullptr || report->struct_size > sizeof(std::size_t)) {
    return HEARTH_OK;
  }
  return Fail(HEARTH_INVALID_ARGUMENT,
              "the report's struct_size is not set; set it to its sizeof");
}

// `values` into a caller's buffer, with `n_behind` zero ones behind them that
// do not count.
template <typename T>
hearth_code CopyOut(const T* values, std::size_t n, std::size_t n_behind,
                    T* out, std::size_t capacity, std::size_t* n_out) {
  if (n_out != nullptr) *n_out = n;
  if (capacity < n + n_behind) {
    return Fail(HEARTH_BUFFER_TOO_SMALL,
                "the buffer holds " + std::to_string(capacity) + " and " +
                    std::to_string(n + n_behind) + " are needed");
  }
  if (out == nullptr) {
    return n + n_behind == 0
               ? HEARTH_OK
               : Fail(HEARTH_INVALID_ARGUMENT, "the buffer is NULL");
  }
  std::copy(values, values + n, out);
  std::fill(out + n, out + n + n_behind, T{});
  return HEARTH_OK;
}

}  // namespace hearth::capi
