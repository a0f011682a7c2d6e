#include "convert/quantize/row_quantizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tensor/dequantize.h"
#include "tensor/half.h"
#include "tensor/quantize.h"

namespace hearth {
namespace {

// Values that are worked on at a time: enough for every thread, little memory.
constexpr std::int64_t kBatchValues = 1 << 19;

std::size_t U(std::int64_t n) { return static_cast<std::size_t>(n); }

// A row of any GGUF format as floats.
void RowAsFloats(DType dtype, const std::byte* row, std::int64_t n,
                 float* out) {
  if (IsBlockQuantised(dtype)) return DequantizeBlocks(dtype, row, n, out);
  for (std::int64_t i = 0; i < n; ++i) {
    if (dtype == DType::kF32) {
      out[i] = LoadLe<float>(row + 4 * i);
      continue;
    }
    const auto bits = LoadLe<std::uint16_t>(row + 2 * i);
    out[i] = dtype == DType::kF16 ? ToFloat(F16{bits}) : ToFloat(BF16{bits});
  }
}

// Of the rows of a tensor's matrices, of which each has columns of its own.
struct RowImportance {
  const std::vector<float>* values;  // null: none
  std::int64_t rows_per_matrix;

  const float* Of(std::int64_t row, std::int64_t n) const {
    if (values == nullptr) return nullptr;
    return values->data() + row / rows_per_matrix * n;
  }
};

class RowQuantizer {
 public:
  RowQuantizer(std::string name, DType from, DType to, std::int64_t n,
               RowImportance importance, ThreadPool& pool, GgufSink sink)
      : name_(std::move(name)),
        from_(from),
        to_(to),
        n_(n),
        n_rows_(std::max<std::int64_t>(1, kBatchValues / n)),
        in_bytes_(U(*BytesOf(from, U(n)))),
        out_bytes_(U(*BytesOf(to, U(n)))),
        importance_(importance),
        pool_(pool),
        sink_(std::move(sink)),
        in_(in_bytes_ * U(n_rows_)),
        out_(out_bytes_ * U(n_rows_)),
        floats_(U(n) * U(pool.n_threads())),
        bad_(U(n_rows_)) {}

  Result<void> Take(ByteSpan bytes) {
    while (!bytes.empty()) {
      const std::size_t piece = std::min(bytes.size(), in_.size() - filled_);
      std::copy_n(bytes.data(), piece, in_.data() + filled_);
      filled_ += piece;
      bytes = bytes.subspan(piece);
      if (filled_ == in_.size()) HEARTH_TRY(Flush());
    }
    return {};
  }

  // Hands on the rows that are complete.
  Result<void> Flush() {
    const auto n_rows = static_cast<std::int64_t>(filled_ / in_bytes_);
    pool_.ParallelFor(n_rows, [&](std::int64_t row, int thread) {
      float* floats = floats_.data() + U(thread) * U(n_);
      RowAsFloats(from_, in_.data() + U(row) * in_bytes_, n_, floats);
      bad_[U(row)] = FirstBad(floats);
      if (bad_[U(row)] < n_) return;
      QuantizeRow(to_, floats, n_, out_.data() + U(row) * out_bytes_,
                  importance_.Of(row_ + row, n_));
    });
    for (std::int64_t row = 0; row < n_rows; ++row) {
      if (bad_[U(row)] < n_) return Refusal(row);
    }
    filled_ = 0;
    row_ += n_rows;
    return sink_(ByteSpan(out_.data(), U(n_rows) * out_bytes_));
  }

 private:
  // Of values that `to` cannot express; n_: none.
  std::int64_t FirstBad(const float* floats) const {
    const float largest = LargestIn(to_);
    for (std::int64_t i = 0; i < n_; ++i) {
      if (!(std::abs(floats[i]) <= largest)) return i;
    }
    return n_;
  }

  Error Refusal(std::int64_t row) {
    const std::int64_t column = bad_[U(row)];
    RowAsFloats(from_, in_.data() + U(row) * in_bytes_, n_, floats_.data());
    return {Code::kInvalidArgument,
            "tensor \"" + name_ + "\" holds " +
                std::to_string(floats_[U(column)]) + " at row " +
                std::to_string(row_ + row) + ", column " +
                std::to_string(column) + ", which " +
                std::string(InfoOf(to_).name) + " cannot express"};
  }

  const std::string name_;
  const DType from_, to_;
  const std::int64_t n_, n_rows_;  // values of a row, rows at a time
  const std::size_t in_bytes_, out_bytes_;
  const RowImportance importance_;
  ThreadPool& pool_;
  const GgufSink sink_;
  std::vector<std::byte> in_, out_;
  std::vector<float> floats_;      // a row for each thread
  std::vector<std::int64_t> bad_;  // the first bad column of each row
  std::size_t filled_ = 0;
  std::int64_t row_ = 0;
};

}  // namespace

void Requantize(GgufTensorSource& tensor, DType to, ThreadPool& pool,
                const std::vector<float>* importance) {
  const DType from = tensor.dtype;
  if (from == to && IsBlockQuantised(to)) return;
  const auto n = static_cast<std::int64_t>(tensor.shape.back());
  const std::size_t n_dims = tensor.shape.size();
  const RowImportance of_rows{
      importance,
      n_dims >= 2 ? static_cast<std::int64_t>(tensor.shape[n_dims - 2]) : 1};
  tensor.dtype = to;
  tensor.write =
      [name = tensor.name, from, to, n, of_rows, &pool,
       write = std::move(tensor.write)](const GgufSink& sink) -> Result<void> {
    RowQuantizer rows(name, from, to, n, of_rows, pool, sink);
    HEARTH_TRY(write([&rows](ByteSpan bytes) { return rows.Take(bytes); }));
    return rows.Flush();
  };
}

}  // namespace hearth
