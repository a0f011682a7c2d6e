#include "convert/gguf/gguf_writer.h"

#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "convert/stream_writer.h"
#include "formats/describe.h"
#include "formats/gguf/gguf.h"

namespace hearth {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kAlignment = 32;  // what readers assume without a key
constexpr std::size_t kDimsMax = 4;

Error Invalid(const std::string& path, const std::string& what) {
  return {Code::kInvalidArgument, path + ": " + what};
}

void Put(std::vector<std::byte>& out, ByteSpan bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void PutText(std::vector<std::byte>& out, std::string_view text) {
  AppendLe(out, std::uint64_t{text.size()});
  Put(out, AsBytes(text));
}

void PutType(std::vector<std::byte>& out, GgufType type) {
  AppendLe(out, static_cast<std::uint32_t>(type));
}

void PutScalar(std::vector<std::byte>& out, const std::string& text) {
  PutText(out, text);
}
void PutScalar(std::vector<std::byte>& out, bool value) {
  AppendLe(out, static_cast<std::uint8_t>(value));
}
template <typename T>
void PutScalar(std::vector<std::byte>& out, T value) {
  AppendLe(out, value);
}

template <typename T>
constexpr GgufType TypeOf() {
  if constexpr (std::is_same_v<T, std::uint32_t>) return GgufType::kU32;
  if constexpr (std::is_same_v<T, std::int32_t>) return GgufType::kI32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return GgufType::kU64;
  if constexpr (std::is_same_v<T, float>) return GgufType::kF32;
  if constexpr (std::is_same_v<T, bool>) return GgufType::kBool;
  return GgufType::kString;
}

void PutValue(std::vector<std::byte>& out, const GgufEntry& entry) {
  PutType(out, entry.type);
  if (entry.type == GgufType::kArray) {
    PutType(out, entry.element);
    AppendLe(out, entry.count);
  }
  Put(out, entry.value);
}
template <typename T>
void PutValue(std::vector<std::byte>& out, const T& value) {
  PutType(out, TypeOf<T>());
  PutScalar(out, value);
}
template <typename T>
void PutValue(std::vector<std::byte>& out, const std::vector<T>& values) {
  PutType(out, GgufType::kArray);
  PutType(out, TypeOf<T>());
  AppendLe(out, std::uint64_t{values.size()});
  for (const T& value : values) PutScalar(out, value);
}

std::uint64_t Padded(std::uint64_t n) {
  return (n + kAlignment - 1) / kAlignment * kAlignment;
}

// Bytes of a tensor, once its shape has been found sound.
Result<std::uint64_t> SizeOf(const std::string& path,
                             const GgufTensorSource& tensor) {
  std::uint64_t n = 1;
  bool sound = !tensor.shape.empty() && tensor.shape.size() <= kDimsMax;
  for (const std::uint64_t d : tensor.shape) {
    const auto product = CheckedMul(n, d);
    sound = sound && d > 0 && product.has_value();
    if (sound) n = *product;
  }
  const auto bytes = sound ? BytesOf(tensor.dtype, n) : std::nullopt;
  const auto block =
      static_cast<std::uint64_t>(InfoOf(tensor.dtype).block_elements);
  if (!bytes.has_value() || tensor.shape.back() % block != 0) {
    return Invalid(path, "tensor " + Quoted(tensor.name) + " with shape " +
                             ShapeText(tensor.shape) +
                             " does not fill whole blocks");
  }
  return *bytes;
}

Result<std::vector<std::byte>> Header(const std::string& path,
                                      std::span<const GgufMetadata> metadata,
                                      std::span<const GgufTensorSource> tensors,
                                      std::span<const std::uint64_t> sizes) {
  std::vector<std::byte> out;
  out.reserve(4096);
  Put(out, AsBytes("GGUF"));
  AppendLe(out, kVersion);
  AppendLe(out, std::uint64_t{tensors.size()});
  AppendLe(out, std::uint64_t{metadata.size()});
  std::unordered_set<std::string_view> seen;
  for (const GgufMetadata& entry : metadata) {
    if (!seen.insert(entry.key).second) {
      return Invalid(path, "key " + Quoted(entry.key) + " is there twice");
    }
    PutText(out, entry.key);
    std::visit([&](const auto& value) { PutValue(out, value); }, entry.value);
  }
  seen.clear();
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const GgufTensorSource& tensor = tensors[i];
    if (!seen.insert(tensor.name).second) {
      return Invalid(path, "tensor " + Quoted(tensor.name) + " is there twice");
    }
    const auto id = GgufFormatId(tensor.dtype);
    if (!id.has_value()) {
      return Error{Code::kUnsupported,
                   path + ": GGUF has no number format " +
                       std::string(InfoOf(tensor.dtype).name) + " (tensor " +
                       Quoted(tensor.name) + ")"};
    }
    PutText(out, tensor.name);
    AppendLe(out, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto d = tensor.shape.rbegin(); d != tensor.shape.rend(); ++d) {
      AppendLe(out, *d);
    }
    AppendLe(out, *id);
    AppendLe(out, offset);
    offset += Padded(sizes[i]);
  }
  out.resize(Padded(out.size()));
  return out;
}

Result<void> WriteTensor(const std::string& path,
                         const GgufTensorSource& tensor, std::uint64_t size,
                         StreamWriter& file) {
  std::uint64_t written = 0;
  HEARTH_TRY(tensor.write([&](ByteSpan bytes) -> Result<void> {
    written += bytes.size();
    if (written > size) return {};  // reported below
    return file.Append(bytes);
  }));
  if (written != size) {
    return Invalid(path, "tensor " + Quoted(tensor.name) + " gave " +
                             std::to_string(written) + " bytes instead of " +
                             std::to_string(size));
  }
  static constexpr std::byte kZeros[kAlignment] = {};
  return file.Append(ByteSpan(kZeros, Padded(size) - size));
}

}  // namespace

Result<void> WriteGguf(const std::string& path,
                       std::span<const GgufMetadata> metadata,
                       std::span<const GgufTensorSource> tensors,
                       const WriteOptions& options,
                       std::vector<std::string> inputs) {
  std::vector<std::uint64_t> sizes;
  for (const GgufTensorSource& tensor : tensors) {
    HEARTH_ASSIGN(const std::uint64_t size, SizeOf(path, tensor));
    sizes.push_back(size);
  }
  HEARTH_ASSIGN(const std::vector<std::byte> header,
                Header(path, metadata, tensors, sizes));
  std::uint64_t total = header.size();
  for (const std::uint64_t size : sizes) total += Padded(size);
  HEARTH_ASSIGN(StreamWriter file,
                StreamWriter::Create(path, options, std::move(inputs), total));
  HEARTH_TRY(file.Append(header));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    HEARTH_TRY(WriteTensor(path, tensors[i], sizes[i], file));
  }
  return file.Commit();
}

}  // namespace hearth
