// Builds GGUF files in memory for tests, well formed unless told otherwise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "tensor/dtype.h"
#include "tensor/half.h"

namespace hearth {

// `values` in one of GGUF's formats. REQUIRES: whole blocks.
inline std::vector<std::byte> EncodeWeights(DType dtype,
                                            std::span<const float> values) {
  std::vector<std::byte> out;
  const auto n_block = static_cast<std::size_t>(InfoOf(dtype).block_elements);
  for (std::size_t i = 0; i < values.size(); i += n_block) {
    const auto block = values.subspan(i, n_block);
    const float peak =  // the value of largest magnitude, with its sign
        *std::max_element(block.begin(), block.end(), [](float a, float b) {
          return std::abs(a) < std::abs(b);
        });
    switch (dtype) {
      case DType::kF32:
        AppendLe(out, block[0]);
        break;
      case DType::kF16:
        AppendLe(out, ToF16(block[0]).bits);
        break;
      case DType::kBF16:
        AppendLe(out, ToBF16(block[0]).bits);
        break;
      case DType::kQ8_0: {
        const float scale = std::abs(peak) / 127.0f;
        AppendLe(out, ToF16(scale).bits);
        for (const float v : block) {
          const float q = scale > 0 ? std::round(v / scale) : 0.0f;
          AppendLe(out, static_cast<std::int8_t>(q));
        }
        break;
      }
      case DType::kQ4_0: {
        const float scale = peak / -8.0f;
        AppendLe(out, ToF16(scale).bits);
        const auto nibble = [&](std::size_t k) {
          const float q = scale != 0 ? block[k] / scale + 8.5f : 8.0f;
          return static_cast<unsigned>(std::clamp(q, 0.0f, 15.0f));
        };
        for (std::size_t k = 0; k < 16; ++k) {
          out.push_back(
              static_cast<std::byte>(nibble(k) | nibble(k + 16) << 4));
        }
        break;
      }
      default:
        break;  // not a format that tests write
    }
  }
  return out;
}

class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;

  GgufBuilder& Add(std::string_view key, std::uint32_t type,
                   std::span<const std::byte> value) {
    PutText(entries_, key);
    AppendLe(entries_, type);
    entries_.insert(entries_.end(), value.begin(), value.end());
    ++n_entries_;
    return *this;
  }
  GgufBuilder& Int(std::string_view key, std::uint32_t value) {
    return Add(key, 4, std::as_bytes(std::span(&value, 1)));
  }
  GgufBuilder& Float(std::string_view key, float value) {
    return Add(key, 6, std::as_bytes(std::span(&value, 1)));
  }
  GgufBuilder& Bool(std::string_view key, bool value) {
    return Add(key, 7, std::as_bytes(std::span(&value, 1)));
  }
  GgufBuilder& Text(std::string_view key, std::string_view value) {
    std::vector<std::byte> bytes;
    PutText(bytes, value);
    return Add(key, 8, bytes);
  }
  GgufBuilder& Texts(std::string_view key,
                     const std::vector<std::string>& values) {
    std::vector<std::byte> bytes;
    AppendLe(bytes, std::uint32_t{8});
    AppendLe(bytes, std::uint64_t{values.size()});
    for (const std::string& value : values) PutText(bytes, value);
    return Add(key, 9, bytes);
  }
  // `element`: the GGUF type of T.
  template <typename T>
  GgufBuilder& Array(std::string_view key, std::uint32_t element,
                     const std::vector<T>& values) {
    std::vector<std::byte> bytes;
    AppendLe(bytes, element);
    AppendLe(bytes, std::uint64_t{values.size()});
    for (const T value : values) AppendLe(bytes, value);
    return Add(key, 9, bytes);
  }

  // `shape` outermost first; `type` as in the file (0 F32, 1 F16, 2 Q4_0, ...).
  GgufBuilder& Tensor(std::string_view name,
                      const std::vector<std::uint64_t>& shape,
                      std::uint32_t type, std::vector<std::byte> bytes) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    PutText(tensors_, name);
    AppendLe(tensors_, static_cast<std::uint32_t>(shape.size()));
    for (auto d = shape.rbegin(); d != shape.rend(); ++d) {
      AppendLe(tensors_, *d);
    }
    AppendLe(tensors_, type);
    AppendLe(tensors_, std::uint64_t{data_.size()});
    data_.insert(data_.end(), bytes.begin(), bytes.end());
    ++n_tensors_;
    return *this;
  }

  std::vector<std::byte> Build() const {
    std::vector<std::byte> out;
    for (const char c : std::string_view("GGUF")) {
      out.push_back(static_cast<std::byte>(c));
    }
    AppendLe(out, version);
    AppendLe(out, n_tensors_);
    AppendLe(out, n_entries_);
    out.insert(out.end(), entries_.begin(), entries_.end());
    out.insert(out.end(), tensors_.begin(), tensors_.end());
    if (n_tensors_ > 0) {
      out.resize((out.size() + alignment - 1) / alignment * alignment);
    }
    out.insert(out.end(), data_.begin(), data_.end());
    return out;
  }

 private:
  static void PutText(std::vector<std::byte>& out, std::string_view text) {
    AppendLe(out, std::uint64_t{text.size()});
    const ByteSpan bytes = AsBytes(text);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }

  std::vector<std::byte> entries_, tensors_, data_;
  std::uint64_t n_entries_ = 0, n_tensors_ = 0;
};

}  // namespace hearth
