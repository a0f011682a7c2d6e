// Writes GGUF files, version 3: docs/formats/gguf.md.
//
// One pass, whatever the size: a tensor's bytes are asked for when its turn
// comes, in pieces, and go straight to the file, which appears whole under its
// name or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "formats/gguf/gguf.h"
#include "hearth/convert.h"
#include "hearth/result.h"
#include "tensor/dtype.h"

namespace hearth {

// A GgufEntry is a value of another file, taken over byte for byte; it borrows
// that file.
using GgufValue = std::variant<GgufEntry, std::uint32_t, std::int32_t,
                               std::uint64_t, float, bool, std::string,
                               std::vector<std::string>, std::vector<float>,
                               std::vector<std::int32_t>, std::vector<bool>>;

struct GgufMetadata {
  std::string key;
  GgufValue value;
};

// Takes the next bytes of a tensor.
using GgufSink = std::function<Result<void>(ByteSpan)>;

struct GgufTensorSource {
  std::string name;
  DType dtype;
  std::vector<std::uint64_t> shape;  // outermost first, 1 to 4 sizes
  // Hands over all bytes, in order.
  std::function<Result<void>(const GgufSink&)> write;
};

// Writes entries and tensors in the order given. kInvalidArgument for a
// repeated name or key, a shape that does not fill whole blocks, or a source
// that hands over another number of bytes; kUnsupported for a number format
// that GGUF does not have. `inputs`: files that the result must not replace.
Result<void> WriteGguf(const std::string& path,
                       std::span<const GgufMetadata> metadata,
                       std::span<const GgufTensorSource> tensors,
                       const WriteOptions& options = {},
                       std::vector<std::string> inputs = {});

}  // namespace hearth
