#include "formats/tensors/tensor_set.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/describe.h"
#include "tensor/half.h"

namespace hearth {
namespace {

constexpr char kSupportedTypes[] =
    "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ1, IQ2, "
    "IQ3, IQ4, TQ1_0, TQ2_0 and MXFP4";

std::uint64_t ElementsOf(const std::vector<std::uint64_t>& shape) {
  std::uint64_t n = 1;
  for (const std::uint64_t d : shape) n *= d;  // checked by the parser
  return n;
}

}  // namespace

std::span<const std::uint64_t> WithoutOuterOnes(
    std::span<const std::uint64_t> shape) {
  while (shape.size() > 1 && shape.front() == 1) shape = shape.subspan(1);
  return shape;
}

std::vector<float> WidenToFloat(DType dtype, ByteSpan bytes, ByteSpan scales,
                                std::uint64_t n) {
  std::vector<float> out(n);
  const std::byte* p = bytes.data();
  switch (dtype) {
    case DType::kF16:
      for (std::size_t i = 0; i < n; ++i) {
        out[i] = ToFloat(F16{LoadLe<std::uint16_t>(p + 2 * i)});
      }
      break;
    case DType::kBF16:
      for (std::size_t i = 0; i < n; ++i) {
        out[i] = ToFloat(BF16{LoadLe<std::uint16_t>(p + 2 * i)});
      }
      break;
    case DType::kTgInt4:
      for (std::size_t i = 0; i < n; ++i) {
        const F16 scale{LoadLe<std::uint16_t>(scales.data() + 2 * (i / 64))};
        const int byte = std::to_integer<int>(p[i / 2]);
        const int nibble = i % 2 == 0 ? byte & 15 : byte >> 4;
        out[i] = ToFloat(scale) * static_cast<float>(nibble - 8);
      }
      break;
    default:
      if (n > 0) std::memcpy(out.data(), p, 4 * n);
  }
  return out;
}

Result<void> TensorSet::Add(SourceTensor tensor) {
  if (!index_.emplace(tensor.name, tensors_.size()).second) {
    return {Code::kCorrupt,
            label_ + ": tensor " + Quoted(tensor.name) + " is there twice"};
  }
  tensors_.push_back(std::move(tensor));
  used_.push_back(false);
  return {};
}

void TensorSet::Replace(const std::string& name, const std::string& other,
                        SourceTensor tensor) {
  const std::string dropped = other;  // may be part of what is erased
  tensors_[index_.at(name)] = std::move(tensor);
  tensors_.erase(tensors_.begin() +
                 static_cast<std::ptrdiff_t>(index_.at(dropped)));
  used_.pop_back();  // nothing is used yet
  index_.clear();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    index_.emplace(tensors_[i].name, i);
  }
}

Result<void> TensorSet::Assign(std::vector<SourceTensor> tensors) {
  tensors_.clear();
  used_.clear();
  index_.clear();
  for (SourceTensor& tensor : tensors) HEARTH_TRY(Add(std::move(tensor)));
  return {};
}

Result<void> TensorSet::Rename(
    const std::function<std::string(std::string_view)>& name) {
  std::vector<SourceTensor> all;
  for (SourceTensor& tensor : tensors_) {
    tensor.name = name(tensor.name);
    if (!tensor.name.empty()) all.push_back(std::move(tensor));
  }
  return Assign(std::move(all));
}

void TensorSet::DropPrefix(std::string_view prefix) {
  // Names stay as they are, so that none can be there twice.
  (void)Rename([prefix](std::string_view name) {
    return name.starts_with(prefix) ? std::string() : std::string(name);
  });
}

const SourceTensor* TensorSet::Find(std::string_view name) const {
  const auto it = index_.find(std::string(name));
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

void TensorSet::MarkUsed(std::string_view name) {
  const auto it = index_.find(std::string(name));
  if (it != index_.end()) used_[it->second] = true;
}

Result<const SourceTensor*> TensorSet::Take(
    std::string_view name, std::span<const std::uint64_t> shape) {
  const SourceTensor* tensor = Find(name);
  if (tensor == nullptr) {
    return {Code::kCorrupt,
            label_ + ": tensor " + Quoted(name) + " is missing"};
  }
  if (!std::ranges::equal(WithoutOuterOnes(shape),
                          WithoutOuterOnes(tensor->shape))) {
    return {Code::kCorrupt, label_ + ": tensor " + Quoted(name) +
                                " has shape " + ShapeText(tensor->shape) +
                                ", but the configuration implies " +
                                ShapeText(shape)};
  }
  if (!tensor->dtype.has_value()) {
    return {Code::kUnsupported, label_ + ": tensor " + Quoted(name) +
                                    " has type " + tensor->type +
                                    "; supported are " + kSupportedTypes};
  }
  MarkUsed(name);
  return tensor;
}

Result<WeightMatrix> TensorSet::Matrix(std::string_view name,
                                       std::int64_t n_out, std::int64_t n_in,
                                       WeightLayout layout) {
  const std::uint64_t shape[] = {static_cast<std::uint64_t>(n_out),
                                 static_cast<std::uint64_t>(n_in)};
  HEARTH_ASSIGN(const SourceTensor* tensor, Take(name, shape));
  WeightMatrix matrix;
  matrix.dtype = *tensor->dtype;
  matrix.layout = layout;
  matrix.n_out = n_out;
  matrix.n_in = n_in;
  matrix.data = tensor->bytes.data();
  matrix.scales = tensor->scales.data();
  return matrix;
}

Result<WeightMatrix> TensorSet::Linear(std::string_view name,
                                       std::int64_t n_out, std::int64_t n_in) {
  return Matrix(name, n_out, n_in, linear_layout_);
}

Result<WeightMatrix> TensorSet::Transposed(std::string_view name,
                                           std::int64_t n_out,
                                           std::int64_t n_in) {
  HEARTH_ASSIGN(WeightMatrix matrix,
                Matrix(name, n_in, n_out, WeightLayout::kInOut));
  std::swap(matrix.n_out, matrix.n_in);
  HEARTH_TRY(CheckTransposable(name, matrix.dtype));
  return matrix;
}

Result<void> TensorSet::CheckTransposable(std::string_view name,
                                          DType dtype) const {
  if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16) {
    return {};
  }
  return {Code::kUnsupported, label_ + ": tensor " + Quoted(name) +
                                  " is stored transposed and " +
                                  "must be F32, F16 or BF16"};
}

Result<std::vector<WeightMatrix>> TensorSet::Stack(std::string_view name,
                                                   std::int64_t count,
                                                   std::int64_t n_out,
                                                   std::int64_t n_in,
                                                   bool transposed) {
  // Blocks run along the inputs, whatever the plain form does.
  const SourceTensor* found = Find(name);
  if (found != nullptr && found->dtype.has_value() &&
      IsBlockQuantised(*found->dtype)) {
    transposed = false;
  }
  const std::uint64_t shape[] = {
      static_cast<std::uint64_t>(count),
      static_cast<std::uint64_t>(transposed ? n_in : n_out),
      static_cast<std::uint64_t>(transposed ? n_out : n_in)};
  HEARTH_ASSIGN(const SourceTensor* tensor, Take(name, shape));
  if (transposed) HEARTH_TRY(CheckTransposable(name, *tensor->dtype));
  WeightMatrix matrix;
  matrix.dtype = *tensor->dtype;
  matrix.layout = transposed ? WeightLayout::kInOut : WeightLayout::kOutIn;
  matrix.n_out = n_out;
  matrix.n_in = n_in;
  // Whole blocks, because the parser checked every row of the tensor.
  const std::size_t bytes =
      tensor->bytes.size() / static_cast<std::size_t>(count);
  std::vector<WeightMatrix> matrices;
  for (std::int64_t i = 0; i < count; ++i) {
    matrix.data = tensor->bytes.data() + static_cast<std::size_t>(i) * bytes;
    matrices.push_back(matrix);
  }
  return matrices;
}

Result<WeightMatrix> TensorSet::Embedding(std::string_view name,
                                          std::int64_t rows,
                                          std::int64_t columns) {
  return Matrix(name, rows, columns, WeightLayout::kOutIn);
}

Result<std::vector<float>> TensorSet::Floats(
    std::string_view name, std::span<const std::uint64_t> shape) {
  HEARTH_ASSIGN(const SourceTensor* tensor, Take(name, shape));
  if (IsBlockQuantised(*tensor->dtype)) {
    return {Code::kUnsupported, label_ + ": tensor " + Quoted(name) +
                                    " has type " + tensor->type +
                                    "; vectors must be F32, F16 or BF16"};
  }
  return WidenToFloat(*tensor->dtype, tensor->bytes, tensor->scales,
                      ElementsOf(tensor->shape));
}

Result<void> TensorSet::CheckAllUsed() const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!used_[i]) {
      return {Code::kUnsupported,
              label_ + ": hearth has no use for tensor " +
                  Quoted(tensors_[i].name) + " " +
                  ShapeText(tensors_[i].shape) +
                  " in this architecture and refuses to ignore it"};
    }
  }
  return {};
}

std::vector<TensorRecord> TensorSet::Records() const {
  std::vector<TensorRecord> records;
  records.reserve(tensors_.size());
  for (const SourceTensor& t : tensors_) {
    records.push_back({t.name, t.type, t.shape, t.bytes, t.scales});
  }
  return records;
}

std::uint64_t TensorSet::CountParameters() const {
  std::uint64_t n = 0;
  for (const SourceTensor& t : tensors_) n += ElementsOf(t.shape);
  return n;
}

}  // namespace hearth
