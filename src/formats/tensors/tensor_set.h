// The tensors of a model as one file format or another offers them, by name.
//
// A loader fills the set, the assembler takes what the configuration demands,
// and CheckAllUsed then refuses whatever nobody asked for: a tensor that hearth
// does not understand is never skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hearth/result.h"
#include "model/weights.h"
#include "tensor/weight_matrix.h"

namespace hearth {

struct SourceTensor {
  std::string name;
  std::string type;                  // the file's own name of the number format
  std::optional<DType> dtype;        // nothing: hearth has no code for it
  std::vector<std::uint64_t> shape;  // outermost first
  ByteSpan bytes;                    // REQUIRES: as long as dtype and shape say
  ByteSpan scales;                   // kTgInt4 only
};

class TensorSet {
 public:
  // `label` starts every message; `linear_layout` is how this format stores the
  // weights of linear layers.
  explicit TensorSet(std::string label,
                     WeightLayout linear_layout = WeightLayout::kOutIn)
      : label_(std::move(label)), linear_layout_(linear_layout) {}

  // kCorrupt when the name is already there.
  Result<void> Add(SourceTensor tensor);

  // Puts `tensor` in the place of `name` and drops `other`: two tensors of a
  // file that are one. REQUIRES: both are there, and tensor's name is not.
  void Replace(const std::string& name, const std::string& other,
               SourceTensor tensor);

  // Puts these tensors in the place of all. kCorrupt when two have one name.
  // REQUIRES: none is used yet.
  Result<void> Assign(std::vector<SourceTensor> tensors);

  // Renames every tensor to what `name` makes of its name, and drops those of
  // which it makes nothing. kCorrupt when two get one name. REQUIRES: none is
  // used yet.
  Result<void> Rename(const std::function<std::string(std::string_view)>& name);
  // Drops the tensors whose names begin so. REQUIRES: none is used yet.
  void DropPrefix(std::string_view prefix);

  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  const SourceTensor* Find(std::string_view name) const;
  const std::vector<SourceTensor>& tensors() const { return tensors_; }
  const std::string& label() const { return label_; }

  // Each marks the tensor as used. kCorrupt when it is missing or of another
  // shape, kUnsupported when its number format is; all name the tensor.
  Result<WeightMatrix> Linear(std::string_view name, std::int64_t n_out,
                              std::int64_t n_in);
  // The same matrix stored as its transpose, [n_in, n_out] (GPT-2's Conv1D).
  Result<WeightMatrix> Transposed(std::string_view name, std::int64_t n_out,
                                  std::int64_t n_in);
  // A tensor [count, n_out, n_in], or [count, n_in, n_out] when `transposed`
  // and not of a block format: one matrix after the other.
  Result<std::vector<WeightMatrix>> Stack(std::string_view name,
                                          std::int64_t count,
                                          std::int64_t n_out, std::int64_t n_in,
                                          bool transposed);
  Result<WeightMatrix> Embedding(std::string_view name, std::int64_t rows,
                                 std::int64_t columns);
  // Widened to float. For small tensors: this reads the bytes.
  Result<std::vector<float>> Floats(std::string_view name,
                                    std::span<const std::uint64_t> shape);

  // For a tensor that carries nothing the configuration does not say.
  void MarkUsed(std::string_view name);
  // kUnsupported, naming the first tensor that nobody used.
  Result<void> CheckAllUsed() const;

  // Every tensor, in the order in which it was added.
  std::vector<TensorRecord> Records() const;
  std::uint64_t CountParameters() const;

 private:
  Result<const SourceTensor*> Take(std::string_view name,
                                   std::span<const std::uint64_t> shape);
  // Columns can be read one by one only where a value is a whole number of
  // bytes.
  Result<void> CheckTransposable(std::string_view name, DType dtype) const;
  Result<WeightMatrix> Matrix(std::string_view name, std::int64_t n_out,
                              std::int64_t n_in, WeightLayout layout);

  std::string label_;
  WeightLayout linear_layout_;
  std::vector<SourceTensor> tensors_;
  std::vector<bool> used_;
  std::unordered_map<std::string, std::size_t> index_;
};

// `shape` without the outermost dimensions that are 1: [1, 1, 64] is [64], and
// some writers store vectors so.
std::span<const std::uint64_t> WithoutOuterOnes(
    std::span<const std::uint64_t> shape);

// Widens `n` values of a plain or kTgInt4 tensor. REQUIRES: dtype is kF32,
// kF16, kBF16 or kTgInt4 and the spans are long enough.
std::vector<float> WidenToFloat(DType dtype, ByteSpan bytes, ByteSpan scales,
                                std::uint64_t n);

}  // namespace hearth
