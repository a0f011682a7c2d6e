// One KV tile folded into the running softmax of query rows (online softmax).
//
//   score[t] = sum over d, rising, of q[d] * k[d][t]        lanes: 16 tokens
//   p[t]     = exp(score[t] - max)
//   acc[d]   = acc[d] * exp(old max - max), then + p[t] * v[t][d], t rising
//                                                           lanes: 16 dims
// Token slots are taken sixteen at a time from slot 0, so a token's lane
// depends on its slot alone. A masked slot's score becomes -infinity by
// selection, its p is exactly 0 and its value is never multiplied: whatever
// bytes lie there cannot matter. So a row's result is the same alone or among
// others, and the same while the tile grows behind `visible`. With a soft cap
// the score is cap * tanh(score / cap) before the mask.
// Quantised tiles: kv_fold.inl; the softmax: online_softmax.inl.

// Scores of tokens [16 * group, +16 * kGroups) for kRows rows, masked, into p;
// row r's sums start at start[r]. The last group may reach beyond the stride.
template <class Format, int kRows, int kGroups>
HEARTH_INLINE void ScoreGroups(const float* q, const float* start, int head_dim,
                               const KvTile& tile, int group, const int* begin,
                               const int* visible, float softcap, float* p,
                               std::int64_t p_stride) {
  const std::int64_t first = std::int64_t{group} * kLanes;
  const int last_room =
      static_cast<int>(tile.stride - first) - (kGroups - 1) * kLanes;
  const std::byte* keys = tile.keys + Format::Offset(first);
  const std::byte* ahead = NextOf(tile.keys, tile.next_keys, keys);
  const std::int64_t step = Format::Offset(tile.stride);
  Floats score[kRows][kGroups];
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HEARTH_UNROLL
    for (int g = 0; g < kGroups; ++g) score[r][g] = Splat(start[r]);
  }
  for (int d = 0; d < head_dim; ++d, keys += step, ahead += step) {
    PrefetchBytes(ahead, Format::Offset(kGroups * kLanes));
    Floats k[kGroups];
    HEARTH_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const std::byte* in = keys + Format::Offset(g * kLanes);
      k[g] = g == kGroups - 1 && last_room < kLanes
                 ? ReadN<Format>(in, last_room)
                 : Format::Read(in);
    }
    HEARTH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Floats factor = Splat(q[std::int64_t{r} * head_dim + d]);
      HEARTH_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        score[r][g] = MulAdd(factor, k[g], score[r][g]);
      }
    }
  }
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HEARTH_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int slot = (group + g) * kLanes;
      if (softcap > 0.0f) score[r][g] = Softcap(score[r][g], softcap);
      if (begin[r] > slot || visible[r] < slot + kLanes) {
        const Mask seen = LanesBetween(begin[r] - slot, visible[r] - slot);
        score[r][g] = Select(seen, score[r][g], Splat(kNothing));
      }
      Store(p + r * p_stride + slot, score[r][g]);
    }
  }
}

// acc[r][first..] of kVectors vectors: times scale[r], then the weighted sum
// over tokens [begin, end).
template <class Format, int kRows, int kVectors>
HEARTH_INLINE void WeighValues(const KvTile& tile, int head_dim, int first,
                               int last_count, int begin, int end,
                               const float* p, std::int64_t p_stride,
                               const float* scale, float* acc) {
  Floats sum[kRows][kVectors];
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HEARTH_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const float* in = acc + std::int64_t{r} * head_dim + first + v * kLanes;
      sum[r][v] = Mul(LoadUpTo(in, v == kVectors - 1 ? last_count : kLanes),
                      Splat(scale[r]));
    }
  }
  const std::int64_t step = KvRowBytes(tile.value_format, head_dim);
  const std::byte* values = tile.values + begin * step + Format::Offset(first);
  const std::byte* ahead = NextOf(tile.values, tile.next_values, values);
  for (int t = begin; t < end; ++t, values += step, ahead += step) {
    PrefetchBytes(ahead, Format::Offset(kVectors * kLanes));
    HEARTH_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const std::byte* in = values + Format::Offset(v * kLanes);
      const Floats value = v == kVectors - 1 && last_count < kLanes
                               ? ReadN<Format>(in, last_count)
                               : Format::Read(in);
      HEARTH_UNROLL
      for (int r = 0; r < kRows; ++r) {
        sum[r][v] = MulAdd(Splat(p[r * p_stride + t]), value, sum[r][v]);
      }
    }
  }
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HEARTH_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* out = acc + std::int64_t{r} * head_dim + first + v * kLanes;
      StoreUpTo(out, sum[r][v], v == kVectors - 1 ? last_count : kLanes);
    }
  }
}

template <class Format, int kRows>
void WeighAllValues(const KvTile& tile, int head_dim, int begin, int end,
                    const float* p, std::int64_t p_stride, const float* scale,
                    float* acc) {
  int first = 0;
  for (; first + 2 * kLanes <= head_dim; first += 2 * kLanes) {
    WeighValues<Format, kRows, 2>(tile, head_dim, first, kLanes, begin, end, p,
                                  p_stride, scale, acc);
  }
  for (; first < head_dim; first += kLanes) {
    WeighValues<Format, kRows, 1>(tile, head_dim, first,
                                  std::min(kLanes, head_dim - first), begin,
                                  end, p, p_stride, scale, acc);
  }
}

// Tokens [first, last) of the one row r.
template <class Format>
HEARTH_INLINE void WeighRow(const KvTile& tile, int head_dim, int r, int first,
                            int last, const float* p, std::int64_t p_stride,
                            const float* scale, float* acc) {
  WeighAllValues<Format, 1>(tile, head_dim, first, last, p + r * p_stride,
                            p_stride, scale, acc + std::int64_t{r} * head_dim);
}

// Rows that see different runs of tokens share those that all see; each row
// still meets its tokens in rising order, after one scaling.
template <class Format, int kRows>
HEARTH_INLINE void WeighRows(const KvTile& tile, int head_dim, const int* begin,
                             const int* visible, const float* p,
                             std::int64_t p_stride, float* scale, float* acc) {
  int latest = begin[0];
  int shortest = visible[0];
  for (int r = 1; r < kRows; ++r) {
    latest = std::max(latest, begin[r]);
    shortest = std::min(shortest, visible[r]);
  }
  if (latest > shortest) {  // nothing in common
    for (int r = 0; r < kRows; ++r) {
      WeighRow<Format>(tile, head_dim, r, begin[r], visible[r], p, p_stride,
                       scale + r, acc);
    }
    return;
  }
  for (int r = 0; r < kRows; ++r) {
    if (begin[r] < latest) {
      WeighRow<Format>(tile, head_dim, r, begin[r], latest, p, p_stride,
                       scale + r, acc);
      scale[r] = 1.0f;
    }
  }
  WeighAllValues<Format, kRows>(tile, head_dim, latest, shortest, p, p_stride,
                                scale, acc);
  const float one = 1.0f;
  for (int r = 0; r < kRows; ++r) {
    if (visible[r] > shortest) {
      WeighRow<Format>(tile, head_dim, r, shortest, visible[r], p, p_stride,
                       &one, acc);
    }
  }
}

// Scores of the slots of groups [first_group, last_group) into p.
template <class Format, int kRows>
HEARTH_INLINE void ScoreTile(const float* q, const float* start, int head_dim,
                             const KvTile& tile, int first_group,
                             int last_group, const int* begin,
                             const int* visible, float softcap, float* p,
                             std::int64_t p_stride) {
  int g = first_group;
  for (; g + kScoreGroups <= last_group; g += kScoreGroups) {
    ScoreGroups<Format, kRows, kScoreGroups>(q, start, head_dim, tile, g, begin,
                                             visible, softcap, p, p_stride);
  }
  for (; g < last_group; ++g) {
    ScoreGroups<Format, kRows, 1>(q, start, head_dim, tile, g, begin, visible,
                                  softcap, p, p_stride);
  }
}

// The scores of a row group against one tile, by the keys' format.
struct ScoreCall {
  const float* q;
  int head_dim;
  const KvTile& tile;
  int first_group, last_group;
  const int* begin;
  const int* visible;
  float softcap;
  const AttendScratch& scratch;
};

template <class Format, int kRows>
HEARTH_NOINLINE void ScoreRows(const ScoreCall& c) {
  const AttendScratch& scratch = c.scratch;
  const float* q = c.q;
  float start[kRows] = {};
  if constexpr (Format::kQuantised) {
    for (int r = 0; r < kRows; ++r) {
      start[r] = FoldQuery(q + std::int64_t{r} * c.head_dim, c.head_dim,
                           scratch, scratch.q + std::int64_t{r} * c.head_dim);
    }
    q = scratch.q;
  }
  ScoreTile<Format, kRows>(q, start, c.head_dim, c.tile, c.first_group,
                           c.last_group, c.begin, c.visible, c.softcap,
                           scratch.p, scratch.p_stride);
}

// acc = acc * scale + weights times values, by the values' format.
struct WeighCall {
  const KvTile& tile;
  int head_dim;
  int first_group;
  const int* begin;
  const int* visible;
  float* scale;
  float* acc;
  const AttendScratch& scratch;
};

template <class Format, int kRows>
HEARTH_NOINLINE void WeighTile(const WeighCall& c) {
  const AttendScratch& scratch = c.scratch;
  float offset[kRows] = {};
  if constexpr (Format::kQuantised) {
    for (int r = 0; r < kRows; ++r) {
      offset[r] = FoldWeights(scratch.p + r * scratch.p_stride, c.first_group,
                              (c.visible[r] + kLanes - 1) / kLanes, scratch);
    }
  }
  WeighRows<Format, kRows>(c.tile, c.head_dim, c.begin, c.visible, scratch.p,
                           scratch.p_stride, c.scale, c.acc);
  if constexpr (Format::kQuantised) {
    for (int r = 0; r < kRows; ++r) {
      AddToAll(offset[r], c.head_dim, c.acc + std::int64_t{r} * c.head_dim);
    }
  }
}

template <class Body>
HEARTH_INLINE void WithKvFormat(KvFormat format, Body body) {
  switch (format) {
    case KvFormat::kF32:
      return body(F32Format{});
    case KvFormat::kF16:
      return body(F16Format{});
    case KvFormat::kBF16:
      return body(Bf16Format{});
    case KvFormat::kInt8:
      return body(Int8Format{});
    case KvFormat::kInt4:
      return body(Int4Format{});
  }
}

// kRows rows that all see at least one token.
template <int kRows>
HEARTH_NOINLINE void AttendRows(const float* q, int head_dim,
                                const KvTile& tile, const int* begin,
                                const int* visible, float softcap, float* max,
                                float* sum, float* acc,
                                const AttendScratch& scratch) {
  int earliest = begin[0];
  int longest = visible[0];
  for (int r = 1; r < kRows; ++r) {
    earliest = std::min(earliest, begin[r]);
    longest = std::max(longest, visible[r]);
  }
  const int first_group = earliest / kLanes;
  const int last_group = (longest + kLanes - 1) / kLanes;
  const ScoreCall score{q,     head_dim, tile,    first_group, last_group,
                        begin, visible,  softcap, scratch};
  WithKvFormat(tile.key_format,
               [&](auto format) { ScoreRows<decltype(format), kRows>(score); });
  float scale[kLanes];
  SoftmaxRows<kRows>(scratch.p, scratch.p_stride, first_group, visible, max,
                     sum, scale);
  const WeighCall weigh{tile,    head_dim, first_group, begin,
                        visible, scale,    acc,         scratch};
  WithKvFormat(tile.value_format,
               [&](auto format) { WeighTile<decltype(format), kRows>(weigh); });
}

template <int kRows = kAttendRows>
void AttendUpTo(int n_rows, const float* q, int head_dim, const KvTile& tile,
                const int* begin, const int* visible, float softcap, float* max,
                float* sum, float* acc, const AttendScratch& scratch) {
  if constexpr (kRows > 1) {
    if (n_rows < kRows) {
      AttendUpTo<kRows - 1>(n_rows, q, head_dim, tile, begin, visible, softcap,
                            max, sum, acc, scratch);
      return;
    }
  }
  AttendRows<kRows>(q, head_dim, tile, begin, visible, softcap, max, sum, acc,
                    scratch);
}

void AttendTile(const float* q, int n_rows, int head_dim, const KvTile& tile,
                const int* begin, const int* visible, float softcap, float* max,
                float* sum, float* acc, std::byte* scratch_bytes) {
  const AttendScratch scratch(scratch_bytes, head_dim, tile.stride);
  scratch.ReadParams(tile, head_dim);
  for (int r = 0; r < n_rows;) {
    if (visible[r] <= begin[r]) {
      ++r;
      continue;
    }
    int rows = 1;
    while (rows < kAttendRows && r + rows < n_rows &&
           visible[r + rows] > begin[r + rows]) {
      ++rows;
    }
    const std::int64_t offset = std::int64_t{r} * head_dim;
    AttendUpTo(rows, q + offset, head_dim, tile, begin + r, visible + r,
               softcap, max + r, sum + r, acc + offset, scratch);
    r += rows;
  }
}

// Sixteen dimensions of sixteen tokens at a time.
template <class Format>
HEARTH_NOINLINE void TransposeKeys(const KvTile& tile, int head_dim,
                                   float* values) {
  const std::int64_t row = KvRowBytes(tile.key_format, tile.stride);
  for (int first = 0; first < head_dim; first += kLanes) {
    const int n_dims = std::min(kLanes, head_dim - first);
    for (int slot = 0; slot < tile.n_tokens; slot += kLanes) {
      const int n_slots = std::min(kLanes, tile.n_tokens - slot);
      float block[kLanes][kLanes];
      for (int d = 0; d < n_dims; ++d) {
        const std::byte* in =
            tile.keys + (first + d) * row + Format::Offset(slot);
        Floats x =
            n_slots < kLanes ? ReadN<Format>(in, n_slots) : Format::Read(in);
        if constexpr (Format::kQuantised) {
          const auto param = [&](int i) {
            return Splat(
                ToFloat(F16{LoadLe<std::uint16_t>(tile.key_params + 2 * i)}));
          };
          x = MulAdd(x, param(first + d), param(head_dim + first + d));
        }
        Store(block[d], x);
      }
      for (int t = 0; t < n_slots; ++t) {
        float* out = values + std::int64_t{slot + t} * head_dim + first;
        for (int d = 0; d < n_dims; ++d) out[d] = block[d][t];
      }
    }
  }
}

void KeysAsValues(const KvTile& tile, int head_dim, float* values) {
  WithKvFormat(tile.key_format, [&](auto format) {
    TransposeKeys<decltype(format)>(tile, head_dim, values);
  });
}

std::size_t AttendScratchBytes(int head_dim, int stride) {
  return AttendScratch::Bytes(head_dim, stride);
}

void MergeAttention(float* max_a, float* sum_a, float* acc_a, float max_b,
                    float sum_b, const float* acc_b, int head_dim) {
  if (max_b == kNothing) return;
  const float max = max_b > *max_a ? max_b : *max_a;
  float scale[kLanes] = {*max_a - max, max_b - max};
  Store(scale, ExpNegative(Load(scale)));
  const float scale_a = scale[0];
  const float scale_b = scale[1];
  *max_a = max;
  *sum_a = __builtin_fmaf(*sum_a, scale_a, sum_b * scale_b);
  ForEachVector(head_dim, [&](std::int64_t i, int count) {
    const Floats b = Mul(LoadUpTo(acc_b + i, count), Splat(scale_b));
    StoreUpTo(acc_a + i, MulAdd(LoadUpTo(acc_a + i, count), Splat(scale_a), b),
              count);
  });
}

// A row that saw nothing gives zeros.
void FinishAttention(float sum, const float* acc, int head_dim, float* out) {
  const Floats divisor = Splat(sum == 0.0f ? 1.0f : sum);
  ForEachVector(head_dim, [&](std::int64_t i, int count) {
    StoreUpTo(out + i, Div(LoadUpTo(acc + i, count), divisor), count);
  });
}
