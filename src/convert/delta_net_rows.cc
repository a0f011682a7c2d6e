#include "convert/delta_net_rows.h"

#include <utility>

namespace hearth {
namespace {

// Row r is row order(r) of `rows`.
LinearRows Reordered(LinearRows rows, std::int64_t n,
                     std::function<std::int64_t(std::int64_t)> order) {
  rows.at = [inner = std::move(rows.at), order = std::move(order)](
                std::int64_t r) { return inner(order(r)); };
  rows.n = n;
  return rows;
}

// `first` rows of queries and keys, then `width` rows of each value head.
LinearRows ByHead(LinearRows rows, std::int64_t first, std::int64_t width,
                  const std::vector<int>& order) {
  const std::int64_t n = rows.n;
  return Reordered(std::move(rows), n, [first, width, order](std::int64_t r) {
    if (r < first) return r;
    const auto head = static_cast<std::size_t>((r - first) / width);
    return first + order[head] * width + (r - first) % width;
  });
}

}  // namespace

std::vector<int> ValueHeadOrder(const DeltaNetShape& shape, bool tiled) {
  const int n_keys = shape.n_key_heads;
  const int group = shape.n_value_heads / n_keys;
  std::vector<int> order;
  for (int p = 0; p < shape.n_value_heads; ++p) {
    const int grouped = tiled ? p % n_keys * group + p / n_keys : p;
    order.push_back(shape.tiled ? grouped % group * n_keys + grouped / group
                                : grouped);
  }
  return order;
}

DeltaNetRows RowsOfDeltaNet(const DeltaNetWeights& w, const DeltaNetShape& s,
                            bool tiled) {
  const std::int64_t n_keys = s.n_key_heads, d = s.key_dim;
  const std::int64_t group = s.n_value_heads / n_keys;
  const std::int64_t values = group * s.value_dim;
  const std::int64_t per_head = 2 * d + 2 * values;
  DeltaNetRows rows;
  if (w.qkv_gate.empty()) {
    rows.qkv = WholeRows(w.qkv);
    rows.gate = WholeRows(w.gate);
  } else {
    rows.qkv =
        Reordered(WholeRows(w.qkv_gate), s.n_channels(),
                  [n_keys, d, values, per_head](std::int64_t r) {
                    if (r < 2 * n_keys * d) {
                      const std::int64_t head = r / d % n_keys;
                      return head * per_head + (r < n_keys * d ? 0 : d) + r % d;
                    }
                    r -= 2 * n_keys * d;
                    return r / values * per_head + 2 * d + r % values;
                  });
    rows.gate =
        Reordered(WholeRows(w.qkv_gate), n_keys * values,
                  [d, values, per_head](std::int64_t r) {
                    return r / values * per_head + 2 * d + values + r % values;
                  });
  }
  if (w.rate_decay.empty()) {
    rows.rate = WholeRows(w.rate);
    rows.decay = WholeRows(w.decay);
  } else {
    const auto half = [&](std::int64_t first) {
      return Reordered(WholeRows(w.rate_decay), s.n_value_heads,
                       [group, first](std::int64_t r) {
                         return r / group * 2 * group + first + r % group;
                       });
    };
    rows.rate = half(0);
    rows.decay = half(group);
  }
  const std::vector<int> order = ValueHeadOrder(s, tiled);
  rows.qkv = ByHead(std::move(rows.qkv), 2 * n_keys * d, s.value_dim, order);
  rows.gate = ByHead(std::move(rows.gate), 0, s.value_dim, order);
  rows.rate = ByHead(std::move(rows.rate), 0, 1, order);
  rows.decay = ByHead(std::move(rows.decay), 0, 1, order);
  return rows;
}

LinearRows FusedQkvGate(const DeltaNetRows& rows, const DeltaNetShape& s) {
  const std::int64_t n_keys = s.n_key_heads, d = s.key_dim;
  const std::int64_t values = s.n_value_heads / n_keys * s.value_dim;
  const std::int64_t n_qkv = s.n_channels();
  const LinearRows both = StackedRows({rows.qkv, rows.gate});
  const std::int64_t n = both.n;
  return Reordered(both, n, [n_keys, d, values, n_qkv](std::int64_t r) {
    const std::int64_t head = r / (2 * d + 2 * values);
    r %= 2 * d + 2 * values;
    if (r < d) return head * d + r;
    if (r < 2 * d) return (n_keys + head) * d + r - d;
    r -= 2 * d;
    if (r < values) return 2 * n_keys * d + head * values + r;
    return n_qkv + head * values + r - values;
  });
}

LinearRows FusedRates(const DeltaNetRows& rows, const DeltaNetShape& s) {
  const std::int64_t n = s.n_value_heads, group = n / s.n_key_heads;
  return Reordered(StackedRows({rows.rate, rows.decay}), 2 * n,
                   [n, group](std::int64_t r) {
                     const std::int64_t head = r / (2 * group);
                     r %= 2 * group;
                     return (r < group ? 0 : n - group) + head * group + r;
                   });
}

std::vector<float> OfValueHeads(const std::vector<float>& values,
                                const std::vector<int>& order) {
  std::vector<float> out;
  for (const int head : order) {
    out.push_back(values[static_cast<std::size_t>(head)]);
  }
  return out;
}

std::vector<float> TapsByChannel(const std::vector<float>& taps,
                                 std::int64_t n_channels) {
  const auto n = static_cast<std::size_t>(n_channels);
  std::vector<float> out;
  for (std::size_t c = 0; c < n; ++c) {
    for (std::size_t i = c; i < taps.size(); i += n) out.push_back(taps[i]);
  }
  return out;
}

std::vector<float> TapsByChannel(const std::vector<float>& taps,
                                 const DeltaNetShape& shape,
                                 const std::vector<int>& order) {
  const auto n = static_cast<std::size_t>(shape.n_channels());
  const auto first =
      static_cast<std::size_t>(2 * shape.n_key_heads * shape.key_dim);
  const auto width = static_cast<std::size_t>(shape.value_dim);
  std::vector<float> out;
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t from = c;
    if (c >= first) {
      const auto head = static_cast<std::size_t>(order[(c - first) / width]);
      from = first + head * width + (c - first) % width;
    }
    for (std::size_t t = 0; t < taps.size() / n; ++t) {
      out.push_back(taps[t * n + from]);
    }
  }
  return out;
}

std::vector<std::byte> OfValueColumns(const std::byte* row,
                                      std::size_t value_bytes,
                                      const std::vector<int>& order) {
  std::vector<std::byte> out;
  for (const int head : order) {
    const std::byte* from = row + static_cast<std::size_t>(head) * value_bytes;
    out.insert(out.end(), from, from + value_bytes);
  }
  return out;
}

}  // namespace hearth
