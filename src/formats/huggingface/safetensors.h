// safetensors files: docs/formats/safetensors.md.
//
//   file   := u64 header_bytes, header, data
//   header := JSON {"name": {"dtype", "shape", "data_offsets": [begin, end]}}
//
// The reader accepts a file only when its tensors cover the data exactly: no
// hole, no overlap, no byte left over. Nothing is copied.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/files/output.h"
#include "hearth/result.h"
#include "tensor/dtype.h"

namespace hearth {

struct SafetensorsEntry {
  std::string name;
  std::string type;            // as in the file: "F32", "BF16", "I64", ...
  std::optional<DType> dtype;  // nothing: not a number format of weights
  std::vector<std::uint64_t> shape;  // outermost first
  ByteSpan bytes;
};

class SafetensorsFile {
 public:
  // Maps and parses. Every defect of the file is kCorrupt.
  static Result<SafetensorsFile> Open(const std::string& path);
  // Borrows `bytes` for as long as the result lives. `label` starts messages.
  static Result<SafetensorsFile> Parse(ByteSpan bytes,
                                       const std::string& label);

  // In the order of their data.
  const std::vector<SafetensorsEntry>& tensors() const { return tensors_; }
  // nullptr when there is none.
  const SafetensorsEntry* Find(std::string_view name) const;
  // The "__metadata__" member.
  const std::vector<std::pair<std::string, std::string>>& metadata() const {
    return metadata_;
  }

 private:
  MappedFile file_;  // empty when the bytes are borrowed
  std::vector<SafetensorsEntry> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

// What to write of one tensor.
struct SafetensorsTensor {
  std::string name;
  std::string type;                  // "F32", "I32", ...
  std::vector<std::uint64_t> shape;  // outermost first
  ByteSpan bytes;
};

// Writes the tensors in the order given. kInvalidArgument for a repeated name,
// an unknown type, or bytes that are not what type and shape imply.
Result<void> WriteSafetensors(
    const std::string& path, std::span<const SafetensorsTensor> tensors,
    std::span<const std::pair<std::string, std::string>> metadata = {},
    const OutputRule& rule = {});

}  // namespace hearth
