// Delta nets as another file format wants them: projections in one matrix or
// apart, value heads tiled or in groups.
#pragma once

#include <cstddef>
#include <vector>

#include "convert/linear_rows.h"
#include "model/config.h"
#include "model/weights.h"

namespace hearth {

// Which of the model's value heads each written one is: position p of a form
// that is tiled or not.
std::vector<int> ValueHeadOrder(const DeltaNetShape& shape, bool tiled);

// Borrows the layer.
struct DeltaNetRows {
  LinearRows qkv, gate, rate, decay;
};
DeltaNetRows RowsOfDeltaNet(const DeltaNetWeights& layer,
                            const DeltaNetShape& shape, bool tiled);

// Of each key head: query, key, values, gates; and rates, decays. REQUIRES: the
// rows are in groups.
LinearRows FusedQkvGate(const DeltaNetRows& rows, const DeltaNetShape& shape);
LinearRows FusedRates(const DeltaNetRows& rows, const DeltaNetShape& shape);

// A number of each value head, in the written order.
std::vector<float> OfValueHeads(const std::vector<float>& values,
                                const std::vector<int>& order);
// Taps as [n_channels][n_taps].
std::vector<float> TapsByChannel(const std::vector<float>& taps,
                                 std::int64_t n_channels);
// The same of a delta net, the values' channels in the written order.
std::vector<float> TapsByChannel(const std::vector<float>& taps,
                                 const DeltaNetShape& shape,
                                 const std::vector<int>& order);
// A row of the output projection, `value_bytes` for each value head, in the
// written order.
std::vector<std::byte> OfValueColumns(const std::byte* row,
                                      std::size_t value_bytes,
                                      const std::vector<int>& order);

}  // namespace hearth
