#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "formats/describe.h"
#include "formats/gguf/gguf.h"

namespace hearth {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kAlignmentDefault = 32;
constexpr std::uint32_t kDimsMax = 4;
// The least bytes that one entry and one tensor can take: what bounds the
// counts in the header before anything is reserved for them.
constexpr std::uint64_t kEntryBytesMin = 8 + 4 + 1;
constexpr std::uint64_t kTensorBytesMin = 8 + 4 + 4 + 8;

struct NumberFormat {
  std::uint32_t id;
  const char* name;
  std::uint32_t block_elements, block_bytes;
  std::optional<DType> dtype;
};

// Every type whose size is known, so that the places of all tensors can be
// checked even in files that hearth cannot run.
constexpr std::array<NumberFormat, 33> kFormats = {{
    {0, "F32", 1, 4, DType::kF32},
    {1, "F16", 1, 2, DType::kF16},
    {2, "Q4_0", 32, 18, DType::kQ4_0},
    {3, "Q4_1", 32, 20, DType::kQ4_1},
    {6, "Q5_0", 32, 22, DType::kQ5_0},
    {7, "Q5_1", 32, 24, DType::kQ5_1},
    {8, "Q8_0", 32, 34, DType::kQ8_0},
    {9, "Q8_1", 32, 36, {}},
    {10, "Q2_K", 256, 84, DType::kQ2_K},
    {11, "Q3_K", 256, 110, DType::kQ3_K},
    {12, "Q4_K", 256, 144, DType::kQ4_K},
    {13, "Q5_K", 256, 176, DType::kQ5_K},
    {14, "Q6_K", 256, 210, DType::kQ6_K},
    {15, "Q8_K", 256, 292, {}},
    {16, "IQ2_XXS", 256, 66, DType::kIQ2_XXS},
    {17, "IQ2_XS", 256, 74, DType::kIQ2_XS},
    {18, "IQ3_XXS", 256, 98, DType::kIQ3_XXS},
    {19, "IQ1_S", 256, 50, DType::kIQ1_S},
    {20, "IQ4_NL", 32, 18, DType::kIQ4_NL},
    {21, "IQ3_S", 256, 110, DType::kIQ3_S},
    {22, "IQ2_S", 256, 82, DType::kIQ2_S},
    {23, "IQ4_XS", 256, 136, DType::kIQ4_XS},
    {24, "I8", 1, 1, {}},
    {25, "I16", 1, 2, {}},
    {26, "I32", 1, 4, {}},
    {27, "I64", 1, 8, {}},
    {28, "F64", 1, 8, {}},
    {29, "IQ1_M", 256, 56, DType::kIQ1_M},
    {30, "BF16", 1, 2, DType::kBF16},
    {34, "TQ1_0", 256, 54, DType::kTQ1_0},
    {35, "TQ2_0", 256, 66, DType::kTQ2_0},
    {39, "MXFP4", 32, 17, DType::kMXFP4},
    {40, "NVFP4", 64, 36, {}},
}};

const NumberFormat* FormatOf(std::uint32_t id) {
  const auto it = std::find_if(kFormats.begin(), kFormats.end(),
                               [&](const auto& f) { return f.id == id; });
  return it == kFormats.end() ? nullptr : &*it;
}

// Bytes of one value of a fixed-size type; 0 for the others.
std::uint64_t ScalarBytes(std::uint32_t type) {
  static constexpr std::array<std::uint8_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4,
                                                          1, 0, 0, 8, 8, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}

}  // namespace

std::optional<std::uint32_t> GgufFormatId(DType dtype) {
  for (const NumberFormat& f : kFormats) {
    if (f.dtype == dtype) return f.id;
  }
  return std::nullopt;
}

class GgufParser {
 public:
  GgufParser(ByteSpan bytes, const std::string& label)
      : bytes_(bytes), reader_(bytes) {
    file_.label_ = label;
  }

  Result<GgufFile> Run() {
    HEARTH_TRY(ReadHeader());
    for (std::uint64_t i = 0; i < n_entries_; ++i) HEARTH_TRY(ReadEntry());
    for (std::uint64_t i = 0; i < n_tensors_; ++i) HEARTH_TRY(ReadTensor());
    HEARTH_TRY(PlaceTensors());
    return std::move(file_);
  }

 private:
  // Where a tensor's data begins, and its size, relative to the data section.
  struct Place {
    std::uint64_t offset;
    std::optional<std::uint64_t> n_bytes;  // nothing: unknown type
    std::size_t tensor;
  };

  Error Corrupt(const std::string& what) const {
    return {Code::kCorrupt, file_.label_ + ": " + what};
  }
  Error Unsupported(const std::string& what) const {
    return {Code::kUnsupported, file_.label_ + ": " + what};
  }
  Error Truncated() const { return Corrupt("GGUF header is cut off"); }

  Result<void> ReadHeader() {
    if (reader_.Read<std::uint32_t>() != kMagic) {
      return Corrupt("not a GGUF file");
    }
    file_.version_ = reader_.Read<std::uint32_t>();
    if (!reader_.ok()) return Truncated();
    if (file_.version_ == 1) {
      return Unsupported("GGUF version 1 is not read; convert the model again");
    }
    if (file_.version_ != 2 && file_.version_ != 3) {
      const std::uint32_t swapped = __builtin_bswap32(file_.version_);
      if (swapped >= 1 && swapped <= 3) {
        return Unsupported(
            "big-endian GGUF is not read; convert the model to "
            "little-endian");
      }
      return Unsupported("GGUF version " + std::to_string(file_.version_) +
                         " is not read, only 2 and 3");
    }
    n_tensors_ = reader_.Read<std::uint64_t>();
    n_entries_ = reader_.Read<std::uint64_t>();
    if (!reader_.ok()) return Truncated();
    if (n_entries_ > reader_.remaining() / kEntryBytesMin ||
        n_tensors_ > reader_.remaining() / kTensorBytesMin) {
      return Corrupt("GGUF header claims " + std::to_string(n_entries_) +
                     " entries and " + std::to_string(n_tensors_) +
                     " tensors, more than the file can hold");
    }
    return {};
  }

  std::string_view ReadText() {
    return AsText(reader_.Take(reader_.Read<std::uint64_t>()));
  }

  Result<void> ReadEntry() {
    GgufEntry entry;
    entry.key = ReadText();
    std::uint32_t type = reader_.Read<std::uint32_t>();
    entry.type = static_cast<GgufType>(type);
    entry.count = 1;
    if (entry.type == GgufType::kArray) {
      type = reader_.Read<std::uint32_t>();
      entry.count = reader_.Read<std::uint64_t>();
      if (static_cast<GgufType>(type) == GgufType::kArray) {
        return Unsupported("key " + Quoted(entry.key) +
                           " is an array of arrays");
      }
    }
    if (!reader_.ok()) return Truncated();
    entry.element = static_cast<GgufType>(type);
    if (entry.element == GgufType::kString) {
      const std::size_t begin = reader_.position();
      for (std::uint64_t i = 0; i < entry.count && reader_.ok(); ++i) {
        ReadText();
      }
      entry.value = bytes_.subspan(begin, reader_.position() - begin);
    } else {
      const std::uint64_t size = ScalarBytes(type);
      if (size == 0) {
        return Corrupt("key " + Quoted(entry.key) + " has the unknown type " +
                       std::to_string(type));
      }
      const auto n_bytes = CheckedMul(size, entry.count);
      if (!n_bytes.has_value()) return Truncated();
      entry.value = reader_.Take(*n_bytes);
    }
    if (!reader_.ok()) return Truncated();
    if (!file_.entry_index_.emplace(entry.key, file_.entries_.size()).second) {
      return Corrupt("key " + Quoted(entry.key) + " is there twice");
    }
    file_.entries_.push_back(entry);
    return {};
  }

  Result<void> ReadTensor() {
    GgufTensor tensor;
    tensor.name = ReadText();
    const auto n_dims = reader_.Read<std::uint32_t>();
    if (!reader_.ok()) return Truncated();
    const std::string what = "tensor " + Quoted(tensor.name);
    if (n_dims > kDimsMax) {
      return Corrupt(what + " has " + std::to_string(n_dims) +
                     " dimensions, more than 4");
    }
    for (std::uint32_t i = 0; i < n_dims; ++i) {
      tensor.shape.insert(tensor.shape.begin(), reader_.Read<std::uint64_t>());
    }
    const auto type = reader_.Read<std::uint32_t>();
    const auto offset = reader_.Read<std::uint64_t>();
    if (!reader_.ok()) return Truncated();
    std::optional<std::uint64_t> n_elements = 1;
    for (const std::uint64_t d : tensor.shape) {
      if (d == 0) return Corrupt(what + " has an empty dimension");
      if (n_elements.has_value()) n_elements = CheckedMul(*n_elements, d);
    }
    if (!n_elements.has_value()) {
      return Corrupt(what + " has the impossible shape " +
                     ShapeText(tensor.shape));
    }
    Place place{offset, std::nullopt, file_.tensors_.size()};
    const NumberFormat* format = FormatOf(type);
    tensor.type = format ? format->name : "type " + std::to_string(type);
    if (format != nullptr) {
      tensor.dtype = format->dtype;
      const std::uint64_t row = n_dims == 0 ? 1 : tensor.shape.back();
      if (row % format->block_elements != 0) {
        return Corrupt(what + ": rows of " + std::to_string(row) +
                       " values are no whole blocks of " + tensor.type);
      }
      place.n_bytes =
          CheckedMul(*n_elements / format->block_elements, format->block_bytes);
      if (!place.n_bytes.has_value()) {
        return Corrupt(what + " has the impossible shape " +
                       ShapeText(tensor.shape));
      }
    }
    if (!file_.tensor_index_.emplace(tensor.name, place.tensor).second) {
      return Corrupt(what + " is there twice");
    }
    file_.tensors_.push_back(std::move(tensor));
    places_.push_back(place);
    return {};
  }

  // Alignment, bounds and overlaps of all tensors.
  Result<void> PlaceTensors() {
    HEARTH_ASSIGN(const std::int64_t alignment,
                  file_.Int("general.alignment", kAlignmentDefault));
    const auto align = static_cast<std::uint64_t>(alignment);
    if (alignment < 1 || alignment > 1 << 30 || !std::has_single_bit(align)) {
      return Corrupt("general.alignment is not a power of two");
    }
    if (places_.empty()) return {};
    const std::uint64_t start =
        (reader_.position() + align - 1) / align * align;
    const std::uint64_t data_bytes =
        start <= bytes_.size() ? bytes_.size() - start : 0;
    for (const Place& place : places_) {
      GgufTensor& tensor = file_.tensors_[place.tensor];
      const std::uint64_t n_bytes = place.n_bytes.value_or(0);
      if (place.offset % align != 0) {
        return Corrupt("tensor " + Quoted(tensor.name) + " is not aligned to " +
                       std::to_string(align) + " bytes");
      }
      if (place.offset > data_bytes || n_bytes > data_bytes - place.offset) {
        return Corrupt("tensor " + Quoted(tensor.name) +
                       " ends beyond the file: the file is cut off; "
                       "download it again");
      }
      if (n_bytes > 0) {
        tensor.bytes = bytes_.subspan(start + place.offset, n_bytes);
      }
    }
    std::sort(places_.begin(), places_.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
    for (std::size_t i = 1; i < places_.size(); ++i) {
      const Place& before = places_[i - 1];
      if (before.offset + before.n_bytes.value_or(1) > places_[i].offset) {
        return Corrupt(
            "tensors " + Quoted(file_.tensors_[before.tensor].name) + " and " +
            Quoted(file_.tensors_[places_[i].tensor].name) + " overlap");
      }
    }
    return {};
  }

  ByteSpan bytes_;
  ByteReader reader_;
  GgufFile file_;
  std::uint64_t n_tensors_ = 0, n_entries_ = 0;
  std::vector<Place> places_;
};

Result<GgufFile> GgufFile::Parse(ByteSpan bytes, const std::string& label) {
  return GgufParser(bytes, label).Run();
}

Result<GgufFile> GgufFile::Open(const std::string& path) {
  HEARTH_ASSIGN(MappedFile file, MappedFile::Open(path));
  HEARTH_ASSIGN(GgufFile gguf, Parse(file.bytes(), path));
  gguf.file_ = std::move(file);
  return gguf;
}

}  // namespace hearth
