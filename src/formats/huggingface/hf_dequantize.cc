#include "formats/huggingface/hf_dequantize.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "formats/describe.h"
#include "tensor/float8.h"
#include "tensor/half.h"

namespace hearth {
namespace {

constexpr std::uint64_t kNvfp4Group = 16;
// Its codes: one bit of mantissa, two of exponent; zero has a sign, too.
constexpr std::array<float, 16> kE2M1 = {
    0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
    -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Of what is not weights.
constexpr std::string_view kDroppedEndings[] = {
    "input_scale",      "input_scale_ub", "input_global_scale",
    "activation_scale", ".k_scale",       ".v_scale"};

std::array<float, 256> Table(float (*value)(std::uint8_t)) {
  std::array<float, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    table[i] = value(static_cast<std::uint8_t>(i));
  }
  return table;
}

bool IsFp8(const SourceTensor& t) {
  return t.type == "F8_E4M3" || t.type == "F8_E5M2";
}

// Scales of any of the formats that they have; nothing for another.
std::optional<std::vector<float>> ScalesOf(const SourceTensor& t) {
  if (t.dtype.has_value()) {
    std::uint64_t n = 1;
    for (const std::uint64_t d : t.shape) n *= d;  // checked by the parser
    return WidenToFloat(*t.dtype, t.bytes, {}, n);
  }
  float (*value)(std::uint8_t) = t.type == "F8_E4M3"   ? E4M3ToFloat
                                 : t.type == "F8_E8M0" ? E8M0ToFloat
                                                       : nullptr;
  if (value == nullptr) return std::nullopt;
  std::vector<float> out;
  for (const std::byte b : t.bytes) {
    out.push_back(value(std::to_integer<std::uint8_t>(b)));
  }
  return out;
}

// A tensor of codes as matrices one after the other.
struct Matrices {
  std::uint64_t count = 1, rows = 0, columns = 0;
  std::uint64_t size() const { return count * rows * columns; }
};

// How many rows and columns share a scale.
struct Sharing {
  std::uint64_t rows, columns;
};

std::uint64_t Blocks(std::uint64_t n, std::uint64_t side) {
  return n / side + (n % side != 0 ? 1 : 0);
}

// `code(i)` is value i without the scale of its block.
template <typename Code>
void Fill(const Matrices& m, const Sharing& sharing,
          const std::vector<float>& scales, Code code, std::byte* out) {
  const std::uint64_t across = Blocks(m.columns, sharing.columns);
  const std::uint64_t down = Blocks(m.rows, sharing.rows);
  std::uint64_t i = 0;
  for (std::uint64_t row = 0; row < m.count * m.rows; ++row) {
    const std::uint64_t block =
        row / m.rows * down + row % m.rows / sharing.rows;
    for (std::uint64_t c = 0; c < m.columns; c += sharing.columns) {
      const float scale = scales[block * across + c / sharing.columns];
      const std::uint64_t end = std::min(m.columns, c + sharing.columns);
      for (std::uint64_t k = c; k < end; ++k, ++i) {
        const BF16 value = ToBF16(code(i) * scale);
        std::memcpy(out + 2 * i, &value.bits, 2);
      }
    }
  }
}

class Dequantizer {
 public:
  Dequantizer(const HfQuantization& quantization, const TensorSet& tensors,
              LoadedModel& model)
      : quantization_(quantization), tensors_(tensors), model_(model) {}

  Result<std::vector<SourceTensor>> Run() {
    FindCompanions();
    std::vector<SourceTensor> out;
    for (const SourceTensor& t : tensors_.tensors()) {
      if (companions_.contains(t.name)) continue;
      if (IsFp8(t)) {
        HEARTH_ASSIGN(SourceTensor made, Fp8(t));
        out.push_back(std::move(made));
      } else if (IsNvfp4(t)) {
        HEARTH_ASSIGN(SourceTensor made, Nvfp4(t));
        out.push_back(std::move(made));
      } else {
        out.push_back(t);
      }
    }
    return out;
  }

 private:
  static std::string BaseOf(const SourceTensor& t) {
    constexpr std::string_view kPacked = "_packed";
    return t.name.ends_with(kPacked)
               ? t.name.substr(0, t.name.size() - kPacked.size())
               : t.name;
  }
  const SourceTensor* Companion(const SourceTensor& t,
                                const char* ending) const {
    return tensors_.Find(BaseOf(t) + ending);
  }
  bool IsNvfp4(const SourceTensor& t) const {
    return t.type == "U8" &&
           (t.name.ends_with("_packed") || Companion(t, "_scale_2") != nullptr);
  }

  // Names of tensors that only belong to others.
  void FindCompanions() {
    for (const SourceTensor& t : tensors_.tensors()) {
      for (const std::string_view ending : kDroppedEndings) {
        if (t.name.ends_with(ending)) companions_.insert(t.name);
      }
      const bool fp8 = IsFp8(t), nvfp4 = IsNvfp4(t);
      if (!fp8 && !nvfp4) continue;
      for (const char* ending :
           {"_scale_inv", "_scale", "_scale_2", "_global_scale"}) {
        const SourceTensor* other = Companion(t, ending);
        if (other != nullptr) companions_.insert(other->name);
      }
    }
  }

  Error Misfit(const SourceTensor& t, const std::string& what) const {
    return {Code::kCorrupt, tensors_.label() + ": tensor " + Quoted(t.name) +
                                " " + ShapeText(t.shape) + " of type " +
                                t.type + " " + what};
  }

  SourceTensor Made(const SourceTensor& t, const Matrices& m) {
    const std::uint64_t n_bytes = 2 * m.size();
    const auto& bytes =
        model_.made.emplace_back(std::make_unique<std::byte[]>(n_bytes));
    std::vector<std::uint64_t> shape = t.shape;
    shape.back() = m.columns;
    return {BaseOf(t),
            "BF16",
            DType::kBF16,
            std::move(shape),
            ByteSpan(bytes.get(), n_bytes),
            {}};
  }

  Result<SourceTensor> Fp8(const SourceTensor& t);
  Result<SourceTensor> Nvfp4(const SourceTensor& t);

  const HfQuantization& quantization_;
  const TensorSet& tensors_;
  LoadedModel& model_;
  std::set<std::string, std::less<>> companions_;
};

// The last two sizes are a matrix'; nothing for other tensors.
std::optional<Matrices> MatricesOf(const std::vector<std::uint64_t>& shape) {
  if (shape.size() != 2 && shape.size() != 3) return std::nullopt;
  const std::size_t n = shape.size();
  Matrices m{n == 3 ? shape[0] : 1, shape[n - 2], shape[n - 1]};
  if (m.count == 0 || m.rows == 0 || m.columns == 0) return std::nullopt;
  return m;
}

bool SameShape(const std::vector<std::uint64_t>& a,
               const std::vector<std::uint64_t>& b) {
  return std::ranges::equal(WithoutOuterOnes(a), WithoutOuterOnes(b));
}

// Who shares one of these scales; nothing when they do not go with the matrix.
std::optional<Sharing> SharingOf(const Matrices& m, const SourceTensor& scale,
                                 const HfQuantization& quantization) {
  if (quantization.block_rows > 0) {
    const Sharing block{quantization.block_rows, quantization.block_columns};
    if (!SameShape(scale.shape, {m.count, Blocks(m.rows, block.rows),
                                 Blocks(m.columns, block.columns)})) {
      return std::nullopt;
    }
    return block;
  }
  std::vector<std::uint64_t> shape = scale.shape;
  while (shape.size() > 1 && shape.back() == 1) shape.pop_back();
  if (shape.empty() || SameShape(shape, {1}) || SameShape(shape, {m.count})) {
    return Sharing{m.rows, m.columns};
  }
  if (SameShape(shape, {m.count, m.rows})) return Sharing{1, m.columns};
  return std::nullopt;
}

Result<SourceTensor> Dequantizer::Fp8(const SourceTensor& t) {
  const SourceTensor* scale = Companion(t, "_scale_inv");
  if (scale == nullptr) scale = Companion(t, "_scale");
  const std::optional<Matrices> m = MatricesOf(t.shape);
  if (!m.has_value()) return Misfit(t, "is no matrix, but quantised");
  if (scale == nullptr) {
    return Misfit(t, "has no scale beside it (" + Quoted(t.name + "_scale") +
                         " or " + Quoted(t.name + "_scale_inv") + ")");
  }
  std::optional<std::vector<float>> scales = ScalesOf(*scale);
  const std::optional<Sharing> sharing = SharingOf(*m, *scale, quantization_);
  if (!scales.has_value() || !sharing.has_value()) {
    return Misfit(*scale, "is no scale of " + Quoted(t.name) + " " +
                              ShapeText(t.shape) +
                              " as quantization_config describes it");
  }
  if (scales->size() == 1) scales->resize(m->count, scales->front());
  static const std::array<float, 256> kE4M3 = Table(E4M3ToFloat);
  static const std::array<float, 256> kE5M2 = Table(E5M2ToFloat);
  const auto& table = t.type == "F8_E4M3" ? kE4M3 : kE5M2;
  SourceTensor made = Made(t, *m);
  Fill(
      *m, *sharing, *scales,
      [&](std::uint64_t i) {
        return table[std::to_integer<std::uint8_t>(t.bytes[i])];
      },
      model_.made.back().get());
  return made;
}

Result<SourceTensor> Dequantizer::Nvfp4(const SourceTensor& t) {
  const SourceTensor* scale = Companion(t, "_scale");
  const bool divides = quantization_.divides_by_global;
  const char* ending = divides ? "_global_scale" : "_scale_2";
  const SourceTensor* global = Companion(t, ending);
  std::optional<Matrices> m = MatricesOf(t.shape);
  if (!m.has_value()) return Misfit(t, "is no matrix, but quantised");
  m->columns *= 2;
  std::vector<std::uint64_t> wanted = t.shape;
  wanted.back() = m->columns / kNvfp4Group;
  if (scale == nullptr || scale->type != "F8_E4M3" ||
      m->columns % kNvfp4Group != 0 || !SameShape(scale->shape, wanted)) {
    return Misfit(t, "has no F8_E4M3 " + ShapeText(wanted) + " named " +
                         Quoted(BaseOf(t) + "_scale") + " beside it");
  }
  if (global == nullptr || !global->dtype.has_value()) {
    return Misfit(t, "has no " + Quoted(BaseOf(t) + ending) + " beside it");
  }
  const std::vector<float> globals = *ScalesOf(*global);
  if (globals.size() != 1 && globals.size() != m->count) {
    return Misfit(*global,
                  "is not one number for each matrix of " + Quoted(t.name));
  }
  std::vector<float> scales = *ScalesOf(*scale);
  const std::size_t n_each = scales.size() / m->count;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const float g = globals[globals.size() == 1 ? 0 : i / n_each];
    scales[i] = divides ? scales[i] / g : scales[i] * g;
  }
  SourceTensor made = Made(t, *m);
  Fill(
      *m, {1, kNvfp4Group}, scales,
      [&](std::uint64_t i) {
        const auto byte = std::to_integer<unsigned>(t.bytes[i / 2]);
        return kE2M1[i % 2 == 0 ? byte & 15u : byte >> 4];
      },
      model_.made.back().get());
  return made;
}

}  // namespace

Result<void> DequantizeHf(const HfQuantization& quantization,
                          TensorSet& tensors, LoadedModel& model) {
  Dequantizer dequantizer(quantization, tensors, model);
  HEARTH_ASSIGN(std::vector<SourceTensor> all, dequantizer.Run());
  return tensors.Assign(std::move(all));
}

}  // namespace hearth
