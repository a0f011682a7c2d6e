#include "model/cpu/mixers/causal_conv.h"

#include <algorithm>
#include <vector>

namespace hearth {

void RunConv(const Kernels& kernels, ThreadPool& pool, const ConvWeights& conv,
             int n_taps, std::int64_t n_channels, const ConvRows& rows) {
  const int n_before = n_taps - 1;
  // Input `i` of the sequence, counted from the first that the state has.
  const auto input = [&](std::int64_t i) {
    return i < n_before ? rows.before + i * n_channels
                        : rows.inputs + (i - n_before) * n_channels;
  };
  pool.ParallelFor(rows.n_rows, [&](std::int64_t r, int) {
    std::vector<const float*> seen;
    for (int t = 0; t < n_taps; ++t) seen.push_back(input(r + t));
    kernels.conv_row(conv.taps.data(), n_taps, seen.data(), n_channels,
                     rows.out + r * n_channels);
    if (!conv.bias.empty()) {
      kernels.add(conv.bias.data(), n_channels, rows.out + r * n_channels);
    }
  });
  for (int t = 0; t < n_before; ++t) {
    std::copy_n(input(rows.n_rows + t), n_channels,
                rows.after + t * n_channels);
  }
  if (rows.journal != nullptr) {
    std::copy_n(rows.inputs, rows.n_rows * n_channels, rows.journal);
  }
}

}  // namespace hearth
