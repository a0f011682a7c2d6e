// Quantised KV tiles without dequantising a number: x = code * scale + zero, so
//   score[t] = sum_d q[d] * x[d][t] = sum_d (q[d] * scale[d]) * code[d][t]
//                                     + sum_d q[d] * zero[d]
//   out[d]   = sum_t p[t] * x[t][d] = sum_t (p[t] * scale[t]) * code[t][d]
//                                     + sum_t p[t] * zero[t]
// Query and weights take the scales, once for a tile; codes become floats in
// registers and nothing is rounded but the multiply-adds.

struct Int8Format {
  static constexpr int kBytes = 1;
  static constexpr bool kQuantised = true;
  static constexpr std::int64_t Offset(std::int64_t i) { return i; }
  HEARTH_INLINE static Floats Read(const std::byte* p) {
    return ToFloats(LoadCodes(p));
  }
};
struct Int4Format {
  static constexpr bool kQuantised = true;
  static constexpr std::int64_t Offset(std::int64_t i) { return i / 2; }
  HEARTH_INLINE static Floats Read(const std::byte* p) {
    return ToFloats(LoadNibbles(p));
  }
};
// Rows of nibbles are padded to whole groups.
template <>
HEARTH_INLINE Floats ReadN<Int4Format>(const std::byte* p, int) {
  return Int4Format::Read(p);
}

// One thread's memory of attend_tile.
struct AttendScratch {
  float* p;            // [kAttendRows][p_stride]: scores, then weights
  float* q;            // [kAttendRows][head_dim]: queries times key scales
  float* key_scale;    // [head_dim]
  float* key_zero;     // [head_dim]
  float* value_scale;  // [stride]
  float* value_zero;   // [stride]
  std::int64_t p_stride;

  AttendScratch(std::byte* bytes, int head_dim, int stride)
      : p_stride(RoundUp(stride, kLanes)) {
    const std::int64_t dims = RoundUp(head_dim, kLanes);
    p = reinterpret_cast<float*>(bytes);
    q = p + kAttendRows * p_stride;
    key_scale = q + kAttendRows * dims;
    key_zero = key_scale + dims;
    value_scale = key_zero + dims;
    value_zero = value_scale + p_stride;
  }
  static std::size_t Bytes(int head_dim, int stride) {
    return static_cast<std::size_t>(
               (kAttendRows + 2) *
               (RoundUp(stride, kLanes) + RoundUp(head_dim, kLanes))) *
           sizeof(float);
  }

  static void Widen(const std::byte* halves, int n, float* out) {
    ForEachVector(n, [&](std::int64_t i, int count) {
      StoreUpTo(out + i,
                count == kLanes ? F16Format::Read(halves + 2 * i)
                                : ReadN<F16Format>(halves + 2 * i, count),
                count);
    });
  }
  void ReadParams(const KvTile& tile, int head_dim) const {
    if (IsQuantised(tile.key_format)) {
      PrefetchBytes(NextOf(tile.keys, tile.next_keys, tile.key_params),
                    KvParamBytes(tile.key_format, head_dim));
      Widen(tile.key_params, head_dim, key_scale);
      Widen(tile.key_params + 2 * head_dim, head_dim, key_zero);
    }
    if (IsQuantised(tile.value_format)) {
      PrefetchBytes(NextOf(tile.values, tile.next_values, tile.value_params),
                    KvParamBytes(tile.value_format, tile.stride));
      Widen(tile.value_params, tile.stride, value_scale);
      Widen(tile.value_params + 2 * tile.stride, tile.stride, value_zero);
    }
  }
};

// folded = q times the key scales; returns what the zeros add to every score.
HEARTH_INLINE float FoldQuery(const float* q, int head_dim,
                              const AttendScratch& scratch, float* folded) {
  Floats total = Splat(0.0f);
  ForEachVector(head_dim, [&](std::int64_t i, int count) {
    const Floats query = LoadUpTo(q + i, count);
    const Floats scale = LoadUpTo(scratch.key_scale + i, count);
    StoreUpTo(folded + i, Mul(query, scale), count);
    total = MulAdd(query, LoadUpTo(scratch.key_zero + i, count), total);
  });
  return ReduceAdd(total);
}

// Weights take the value scales; returns what the zeros add to every output. A
// masked slot's weight is 0 and its zero is not looked at.
HEARTH_INLINE float FoldWeights(float* p, int first_group, int last_group,
                                const AttendScratch& scratch) {
  Floats total = Splat(0.0f);
  for (int g = first_group; g < last_group; ++g) {
    const std::int64_t slot = std::int64_t{g} * kLanes;
    const Floats weight = Load(p + slot);
    const Mask unseen = Equal(weight, Splat(0.0f));
    const Floats zero =
        Select(unseen, Splat(0.0f), Load(scratch.value_zero + slot));
    total = MulAdd(weight, zero, total);
    Store(p + slot, Mul(weight, Load(scratch.value_scale + slot)));
  }
  return ReduceAdd(total);
}

HEARTH_INLINE void AddToAll(float offset, int n, float* acc) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    StoreUpTo(acc + i, Add(LoadUpTo(acc + i, count), Splat(offset)), count);
  });
}
