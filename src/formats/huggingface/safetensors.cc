#include "formats/huggingface/safetensors.h"

#include <algorithm>
#include <unordered_set>

#include "base/json.h"
#include "formats/describe.h"
#include "formats/huggingface/safetensors_header.h"

namespace hearth {
namespace {

constexpr std::uint64_t kHeaderBytesMax = 100'000'000;

std::optional<DType> DTypeNamed(std::string_view type) {
  if (type == "F32") return DType::kF32;
  if (type == "F16") return DType::kF16;
  if (type == "BF16") return DType::kBF16;
  return std::nullopt;
}

// Bytes that a tensor takes; nothing when type, product or bit count is off.
std::optional<std::uint64_t> BytesOf(std::string_view type,
                                     std::span<const std::uint64_t> shape) {
  std::optional<std::uint64_t> n = SafetensorsBits(type);
  for (const std::uint64_t d : shape) {
    if (n.has_value()) n = CheckedMul(*n, d);
  }
  if (!n.has_value() || *n % 8 != 0) return std::nullopt;
  return *n / 8;
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::Parse(ByteSpan bytes,
                                               const std::string& label) {
  const auto corrupt = [&](const std::string& what) {
    return Error{Code::kCorrupt, label + ": " + what};
  };
  ByteReader reader(bytes);
  const auto header_bytes = reader.Read<std::uint64_t>();
  if (!reader.ok()) return corrupt("too short for a safetensors file");
  if (header_bytes > kHeaderBytesMax) {
    return corrupt("safetensors header claims " + std::to_string(header_bytes) +
                   " bytes, more than 100 MB");
  }
  const ByteSpan json = reader.Take(header_bytes);
  if (!reader.ok()) return corrupt("safetensors header is cut off");
  HEARTH_ASSIGN(SafetensorsHeader header,
                ParseSafetensorsHeader(AsText(json), label));

  const ByteSpan data = reader.Take(reader.remaining());
  std::stable_sort(
      header.entries.begin(), header.entries.end(),
      [](const auto& a, const auto& b) { return a.offsets < b.offsets; });
  SafetensorsFile file;
  file.metadata_ = std::move(header.metadata);
  std::uint64_t position = 0;
  for (SafetensorsHeaderEntry& entry : header.entries) {
    const auto [begin, end] = entry.offsets;
    const std::string what = "tensor " + Quoted(entry.name);
    if (!SafetensorsBits(entry.type).has_value()) {
      return corrupt(what + " has the unknown type " + Quoted(entry.type));
    }
    if (begin != position || end < begin) {
      return corrupt(what + " lies at " + std::to_string(begin) + " to " +
                     std::to_string(end) + ", not right after its " +
                     "predecessor at " + std::to_string(position));
    }
    const auto n_bytes = BytesOf(entry.type, entry.shape);
    if (!n_bytes.has_value() || *n_bytes != end - begin) {
      return corrupt(what + " of type " + entry.type + " and shape " +
                     ShapeText(entry.shape) + " does not fill its " +
                     std::to_string(end - begin) + " bytes");
    }
    if (end > data.size()) {
      return corrupt(what +
                     " ends beyond the file: the file is cut off; "
                     "download it again");
    }
    position = end;
    file.tensors_.push_back({std::move(entry.name), entry.type,
                             DTypeNamed(entry.type), std::move(entry.shape),
                             data.subspan(begin, end - begin)});
  }
  if (position != data.size()) {
    return corrupt(std::to_string(data.size() - position) +
                   " bytes after the last tensor belong to none");
  }
  return file;
}

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  HEARTH_ASSIGN(MappedFile mapped, MappedFile::Open(path));
  mapped.AdviseHugePages();
  HEARTH_ASSIGN(SafetensorsFile file, Parse(mapped.bytes(), path));
  file.file_ = std::move(mapped);
  return file;
}

const SafetensorsEntry* SafetensorsFile::Find(std::string_view name) const {
  const auto it =
      std::find_if(tensors_.begin(), tensors_.end(),
                   [&](const auto& tensor) { return tensor.name == name; });
  return it == tensors_.end() ? nullptr : &*it;
}

Result<void> WriteSafetensors(
    const std::string& path, std::span<const SafetensorsTensor> tensors,
    std::span<const std::pair<std::string, std::string>> metadata,
    const OutputRule& rule) {
  // Written by hand: the members of a JSON object keep their order here.
  const auto quoted = [](const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (header.back() != '{') header += ',';
      header += quoted(key) + ":" + quoted(value);
    }
    header += '}';
  }
  std::unordered_set<std::string> names = {"__metadata__"};
  std::vector<ByteSpan> parts(2);
  std::uint64_t position = 0;
  for (const SafetensorsTensor& t : tensors) {
    if (!names.insert(t.name).second) {
      return {Code::kInvalidArgument,
              path + ": tensor " + Quoted(t.name) + " is given twice"};
    }
    if (BytesOf(t.type, t.shape) != t.bytes.size()) {
      return {Code::kInvalidArgument,
              path + ": tensor " + Quoted(t.name) + ": " +
                  std::to_string(t.bytes.size()) + " bytes are not " + t.type +
                  " " + ShapeText(t.shape)};
    }
    std::string shape;
    for (const std::uint64_t d : t.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(d);
    }
    header += (header.size() > 1 ? "," : "") + quoted(t.name) +
              ":{\"dtype\":\"" + t.type + "\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(position) + "," +
              std::to_string(position + t.bytes.size()) + "]}";
    position += t.bytes.size();
    parts.push_back(t.bytes);
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');  // data starts aligned
  const std::uint64_t header_bytes = header.size();
  parts[0] = std::as_bytes(std::span(&header_bytes, 1));
  parts[1] = AsBytes(header);
  return WriteOutput(path, rule, parts);
}

}  // namespace hearth
