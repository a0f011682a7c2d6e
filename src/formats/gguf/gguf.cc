#include "formats/gguf/gguf.h"

#include <limits>
#include <utility>

#include "formats/describe.h"

namespace hearth {
namespace {

// An integer entry's value; nothing for other types or beyond 63 bits.
std::optional<std::int64_t> IntegerAt(GgufType type, const std::byte* p) {
  switch (type) {
    case GgufType::kU8:
      return LoadLe<std::uint8_t>(p);
    case GgufType::kI8:
      return LoadLe<std::int8_t>(p);
    case GgufType::kU16:
      return LoadLe<std::uint16_t>(p);
    case GgufType::kI16:
      return LoadLe<std::int16_t>(p);
    case GgufType::kU32:
      return LoadLe<std::uint32_t>(p);
    case GgufType::kI32:
      return LoadLe<std::int32_t>(p);
    case GgufType::kI64:
      return LoadLe<std::int64_t>(p);
    case GgufType::kU64: {
      const auto value = LoadLe<std::uint64_t>(p);
      if (value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::size_t SizeOf(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    default:
      return 4;
  }
}

}  // namespace

const GgufEntry* GgufFile::Find(std::string_view key) const {
  const auto it = entry_index_.find(key);
  return it == entry_index_.end() ? nullptr : &entries_[it->second];
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  const auto it = tensor_index_.find(name);
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

Error GgufFile::Missing(std::string_view key) const {
  return {Code::kCorrupt, label_ + ": key " + Quoted(key) + " is missing"};
}

Error GgufFile::Mistyped(std::string_view key, const char* wanted) const {
  return {Code::kCorrupt,
          label_ + ": key " + Quoted(key) + " is not " + wanted};
}

Result<std::int64_t> GgufFile::OneForAllLayers(const GgufEntry& entry) const {
  HEARTH_ASSIGN(const std::vector<std::int32_t> values, IntArray(entry.key));
  if (values.empty()) return Mistyped(entry.key, "an integer");
  for (const std::int32_t value : values) {
    if (value == values.front()) continue;
    return {Code::kUnsupported,
            label_ + ": key " + Quoted(entry.key) +
                " differs from layer to layer (" +
                std::to_string(values.front()) + " and " +
                std::to_string(value) +
                "), which is not supported in this architecture"};
  }
  return values.front();
}

Result<std::int64_t> GgufFile::Int(std::string_view key) const {
  const GgufEntry* entry = Find(key);
  if (entry == nullptr) return Missing(key);
  if (entry->type == GgufType::kArray) return OneForAllLayers(*entry);
  const auto value = IntegerAt(entry->type, entry->value.data());
  if (!value.has_value()) return Mistyped(key, "an integer below 2^63");
  return *value;
}

Result<std::int64_t> GgufFile::Int(std::string_view key,
                                   std::int64_t fallback) const {
  if (!Has(key)) return fallback;
  return Int(key);
}

Result<double> GgufFile::Float(std::string_view key, double fallback) const {
  const GgufEntry* entry = Find(key);
  if (entry == nullptr) return fallback;
  if (entry->type == GgufType::kF32) {
    return static_cast<double>(LoadLe<float>(entry->value.data()));
  }
  if (entry->type == GgufType::kF64) return LoadLe<double>(entry->value.data());
  const auto value = IntegerAt(entry->type, entry->value.data());
  if (!value.has_value()) return Mistyped(key, "a number");
  return static_cast<double>(*value);
}

Result<bool> GgufFile::Bool(std::string_view key, bool fallback) const {
  const GgufEntry* entry = Find(key);
  if (entry == nullptr) return fallback;
  if (entry->type != GgufType::kBool || entry->value[0] > std::byte{1}) {
    return Mistyped(key, "a boolean");
  }
  return entry->value[0] == std::byte{1};
}

Result<std::string_view> GgufFile::Text(std::string_view key) const {
  const GgufEntry* entry = Find(key);
  if (entry == nullptr) return Missing(key);
  if (entry->type != GgufType::kString) return Mistyped(key, "a string");
  return AsText(entry->value.subspan(8));
}

Result<std::string_view> GgufFile::Text(std::string_view key,
                                        std::string_view fallback) const {
  if (!Has(key)) return fallback;
  return Text(key);
}

Result<const GgufEntry*> GgufFile::Array(std::string_view key) const {
  const GgufEntry* entry = Find(key);
  if (entry == nullptr) return Missing(key);
  if (entry->type != GgufType::kArray) return Mistyped(key, "an array");
  return entry;
}

Result<std::vector<std::string_view>> GgufFile::TextArray(
    std::string_view key) const {
  HEARTH_ASSIGN(const GgufEntry* entry, Array(key));
  if (entry->element != GgufType::kString) {
    return Mistyped(key, "an array of strings");
  }
  std::vector<std::string_view> texts;
  texts.reserve(entry->count);
  ByteReader reader(entry->value);
  for (std::uint64_t i = 0; i < entry->count; ++i) {
    texts.push_back(AsText(reader.Take(reader.Read<std::uint64_t>())));
  }
  return texts;
}

Result<std::vector<float>> GgufFile::FloatArray(std::string_view key) const {
  HEARTH_ASSIGN(const GgufEntry* entry, Array(key));
  const bool wide = entry->element == GgufType::kF64;
  if (!wide && entry->element != GgufType::kF32) {
    return Mistyped(key, "an array of floats");
  }
  std::vector<float> values(entry->count);
  const std::byte* p = entry->value.data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!wide) {
      values[i] = LoadLe<float>(p + 4 * i);
      continue;
    }
    const auto value = LoadLe<double>(p + 8 * i);
    if (value > std::numeric_limits<float>::max() ||
        value < std::numeric_limits<float>::lowest()) {
      return Mistyped(key, "an array of numbers in the range of a float");
    }
    values[i] = static_cast<float>(value);
  }
  return values;
}

Result<std::vector<std::int32_t>> GgufFile::IntArray(
    std::string_view key) const {
  HEARTH_ASSIGN(const GgufEntry* entry, Array(key));
  if (entry->element == GgufType::kString) {
    return Mistyped(key, "an array of integers");
  }
  std::vector<std::int32_t> values(entry->count);
  const std::size_t stride = SizeOf(entry->element);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value =
        IntegerAt(entry->element, entry->value.data() + stride * i);
    if (!value.has_value() ||
        *value > std::numeric_limits<std::int32_t>::max() ||
        *value < std::numeric_limits<std::int32_t>::min()) {
      return Mistyped(key, "an array of 32-bit integers");
    }
    values[i] = static_cast<std::int32_t>(*value);
  }
  return values;
}

}  // namespace hearth
