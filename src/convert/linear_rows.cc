#include "convert/linear_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/kernels.h"

namespace hearth {
namespace {

std::size_t Count(std::int64_t n) { return static_cast<std::size_t>(n); }

DType PlainType(DType dtype) {
  const bool plain =
      dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
  return plain ? dtype : DType::kF32;
}

std::size_t SizeOf(DType plain) {
  return static_cast<std::size_t>(InfoOf(plain).block_bytes);
}

// [n_rows][n_columns] of `size` bytes to [n_columns][n_rows].
std::vector<std::byte> Transpose(const std::vector<std::byte>& in,
                                 std::int64_t n_rows, std::int64_t n_columns,
                                 std::size_t size) {
  std::vector<std::byte> out(in.size());
  for (std::int64_t r = 0; r < n_rows; ++r) {
    for (std::int64_t c = 0; c < n_columns; ++c) {
      std::memcpy(out.data() + Count(c * n_rows + r) * size,
                  in.data() + Count(r * n_columns + c) * size, size);
    }
  }
  return out;
}

// The whole matrix, [n_out][n_in], in `plain`, which is its own format or F32.
std::vector<std::byte> ReadMatrix(const WeightMatrix& w, DType plain) {
  const bool columns = w.layout == WeightLayout::kInOut;
  // As it lies: rows of a kOutIn matrix.
  WeightMatrix stored = w;
  stored.layout = WeightLayout::kOutIn;
  if (columns) std::swap(stored.n_out, stored.n_in);
  std::vector<std::byte> bytes(Count(w.n_out * w.n_in) * SizeOf(plain));
  if (w.dtype == plain) {
    std::memcpy(bytes.data(), w.data, bytes.size());
  } else {
    std::vector<float> row(Count(stored.n_in));
    for (std::int64_t r = 0; r < stored.n_out; ++r) {
      ActiveKernels().dequantize_row(stored, r, row.data());
      std::memcpy(bytes.data() + Count(r * stored.n_in) * sizeof(float),
                  row.data(), row.size() * sizeof(float));
    }
  }
  if (!columns) return bytes;
  return Transpose(bytes, stored.n_out, stored.n_in, SizeOf(plain));
}

}  // namespace

DType LinearRows::type() const {
  const DType first = PlainType(parts[0]->w.dtype);
  const bool same = std::all_of(
      parts.begin(), parts.end(),
      [first](const Linear* l) { return PlainType(l->w.dtype) == first; });
  return same ? first : DType::kF32;
}

std::vector<std::byte> LinearRows::Read(bool transposed, DType as) const {
  const std::size_t row_bytes = Count(n_in()) * SizeOf(as);
  std::vector<std::vector<std::byte>> read;
  for (const Linear* part : parts) read.push_back(ReadMatrix(part->w, as));
  std::vector<std::byte> bytes(Count(n) * row_bytes);
  for (std::int64_t r = 0; r < n; ++r) {
    const Place from = at(r);
    std::memcpy(bytes.data() + Count(r) * row_bytes,
                read[from.part].data() + Count(from.row) * row_bytes,
                row_bytes);
  }
  return transposed ? Transpose(bytes, n, n_in(), SizeOf(as)) : bytes;
}

std::vector<float> LinearRows::Bias() const {
  std::vector<float> bias;
  for (std::int64_t r = 0; r < n; ++r) {
    const Place from = at(r);
    bias.push_back(parts[from.part]->bias[Count(from.row)]);
  }
  return bias;
}

LinearRows CutRows(const Linear& linear, std::int64_t first, std::int64_t n) {
  return {{&linear}, n, [first](std::int64_t r) {
            return LinearRows::Place{0, first + r};
          }};
}

LinearRows WholeRows(const Linear& linear) {
  return CutRows(linear, 0, linear.w.n_out);
}

LinearRows StackedRows(std::vector<LinearRows> all) {
  LinearRows out;
  for (const LinearRows& rows : all) {
    out.n += rows.n;
    out.parts.insert(out.parts.end(), rows.parts.begin(), rows.parts.end());
  }
  out.at = [all = std::move(all)](std::int64_t r) {
    std::size_t part = 0;
    for (const LinearRows& rows : all) {
      if (r < rows.n) {
        const LinearRows::Place place = rows.at(r);
        return LinearRows::Place{part + place.part, place.row};
      }
      r -= rows.n;
      part += rows.parts.size();
    }
    return LinearRows::Place{};
  };
  return out;
}

LinearRows HalfSplitRows(LinearRows rows, std::int64_t head_dim,
                         std::int64_t rotary_dim) {
  const auto inner = rows.at;
  rows.at = [inner, head_dim, rotary_dim](std::int64_t r) {
    const std::int64_t i = r % head_dim;
    const std::int64_t half = rotary_dim / 2;
    if (i >= rotary_dim) return inner(r);
    return inner(r - i + (i < half ? 2 * i : 2 * (i - half) + 1));
  };
  return rows;
}

QkvRows RowsOfQkv(const LayerWeights& w, const ModelConfig& c) {
  if (w.qkv.empty()) return {WholeRows(w.q), WholeRows(w.k), WholeRows(w.v)};
  const std::int64_t d_q = std::int64_t{c.n_heads} * c.head_dim;
  const std::int64_t d_kv = std::int64_t{c.n_kv_heads} * c.head_dim;
  return {CutRows(w.qkv, 0, d_q), CutRows(w.qkv, d_q, d_kv),
          CutRows(w.qkv, d_q + d_kv, d_kv)};
}

}  // namespace hearth
