// Linear layers as another file format wants them: rows picked from one or more
// of them, in any order, as F32, F16 or BF16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/weights.h"

namespace hearth {

// Row r of what is written is row at(r).row of parts[at(r).part]. Borrows the
// layers.
struct LinearRows {
  struct Place {
    std::size_t part;
    std::int64_t row;
  };
  std::vector<const Linear*> parts;
  std::int64_t n = 0;
  std::function<Place(std::int64_t)> at;

  std::int64_t n_in() const { return parts[0]->w.n_in; }
  // What they are read as: their own plain format where all have the same one,
  // else F32, which is exact.
  DType type() const;
  // [n][n_in], or [n_in][n] when transposed, in `as`: type() or F32.
  std::vector<std::byte> Read(bool transposed, DType as) const;
  // REQUIRES: the layers have biases.
  std::vector<float> Bias() const;
};

// `n` rows of one layer from `first` on, or all of them.
LinearRows CutRows(const Linear& linear, std::int64_t first, std::int64_t n);
LinearRows WholeRows(const Linear& linear);
// One behind the other.
LinearRows StackedRows(std::vector<LinearRows> all);
// From interleaved rotary pairs to half-split ones, head by head.
LinearRows HalfSplitRows(LinearRows rows, std::int64_t head_dim,
                         std::int64_t rotary_dim);

// A layer's queries, keys and values, whether they are one matrix or three.
struct QkvRows {
  LinearRows q, k, v;
};
QkvRows RowsOfQkv(const LayerWeights& layer, const ModelConfig& config);

}  // namespace hearth
