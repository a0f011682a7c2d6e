// GGUF files, versions 2 and 3, little-endian: docs/formats/gguf.md.
//
//   file     := magic version n_tensors n_entries entry* tensor* pad data
//   entry    := string key, u32 type, value
//   tensor   := string name, u32 n_dims, u64 dims[], u32 type, u64 offset
//   string   := u64 length, bytes
//
// Parsing walks the header once and copies nothing: keys, strings, arrays and
// tensors stay where they lie, so a vocabulary of 150,000 tokens costs the same
// pass over its bytes as any other header. Values are decoded when asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "hearth/result.h"
#include "tensor/dtype.h"

namespace hearth {

// As in the file.
enum class GgufType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// What GGUF calls a number format; nothing: it has no such format.
std::optional<std::uint32_t> GgufFormatId(DType dtype);

struct GgufEntry {
  std::string_view key;
  GgufType type;
  GgufType element;     // of an array; else equal to `type`
  std::uint64_t count;  // of an array; else 1
  // The encoded value without its array header. For strings: lengths and bytes
  // one after the other, already checked.
  ByteSpan value;
};

struct GgufTensor {
  std::string_view name;
  std::string type;            // "F32", "Q4_K", or "type 99" for unknown ones
  std::optional<DType> dtype;  // nothing: hearth has no code for it
  std::vector<std::uint64_t> shape;  // outermost first: reversed from the file
  // Within the file. Empty for a type of unknown size.
  ByteSpan bytes;
};

class GgufFile {
 public:
  // Maps and parses. kCorrupt for a file that breaks the format; kUnsupported
  // for version 1, big-endian files and nested arrays.
  static Result<GgufFile> Open(const std::string& path);
  // Borrows `bytes` for as long as the result lives. `label` starts messages.
  static Result<GgufFile> Parse(ByteSpan bytes, const std::string& label);

  std::uint32_t version() const { return version_; }
  const std::string& label() const { return label_; }
  // In file order.
  const std::vector<GgufEntry>& entries() const { return entries_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  // nullptr when there is none.
  const GgufEntry* Find(std::string_view key) const;
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  const GgufTensor* FindTensor(std::string_view name) const;

  // Values by key. A missing key gives the fallback (kCorrupt without one); a
  // value of another kind or out of range is always kCorrupt. Messages name the
  // key. Integers of any width and sign serve as Int, as does an array with one
  // value per layer when all are the same (kUnsupported when they differ).
  Result<std::int64_t> Int(std::string_view key) const;
  Result<std::int64_t> Int(std::string_view key, std::int64_t fallback) const;
  Result<double> Float(std::string_view key, double fallback) const;
  Result<bool> Bool(std::string_view key, bool fallback) const;
  Result<std::string_view> Text(std::string_view key) const;
  Result<std::string_view> Text(std::string_view key,
                                std::string_view fallback) const;
  // Arrays; kCorrupt when missing. The views point into the file.
  Result<std::vector<std::string_view>> TextArray(std::string_view key) const;
  Result<std::vector<float>> FloatArray(std::string_view key) const;
  Result<std::vector<std::int32_t>> IntArray(std::string_view key) const;

 private:
  friend class GgufParser;

  Error Missing(std::string_view key) const;
  Error Mistyped(std::string_view key, const char* wanted) const;
  Result<const GgufEntry*> Array(std::string_view key) const;
  Result<std::int64_t> OneForAllLayers(const GgufEntry& entry) const;

  MappedFile file_;  // empty when the bytes are borrowed
  std::string label_;
  std::uint32_t version_ = 0;
  std::vector<GgufEntry> entries_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string_view, std::size_t> entry_index_;
  std::unordered_map<std::string_view, std::size_t> tensor_index_;
};

}  // namespace hearth
