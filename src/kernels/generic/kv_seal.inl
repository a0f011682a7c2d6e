// A full block's float rows in its storage format.

// The largest float16 <= x, or the smallest >= x.
inline F16 RoundDown(float x) {
  F16 h = ToF16(x);
  if (ToFloat(h) > x) {  // the next lower: towards -infinity
    if ((h.bits & 0x7fffu) == 0) {
      h.bits = 0x8001u;
    } else {
      h.bits = static_cast<std::uint16_t>(h.bits + (h.bits & 0x8000u ? 1 : -1));
    }
  }
  return h;
}
inline F16 RoundUpF16(float x) {  // REQUIRES: x >= 0
  F16 h = ToF16(x);
  if (ToFloat(h) < x) ++h.bits;
  return h;
}

// Codes of one row, relative to the scale and zero as they are stored: the
// rounding of these two costs nothing but a slightly wider step, and no number
// is further than half a step (0.5 * scale) from its code's value.
// A row with a number that float16 cannot reach, or NaN, gets a NaN scale:
// wrong output that shows, not one that looks right.
template <int kLevels, class StoreCodes>
HEARTH_INLINE void QuantiseRow(const float* x, int n, std::byte* scale_out,
                               std::byte* zero_out, StoreCodes store) {
  Floats low = Splat(x[0]);
  Floats high = low;
  std::uint32_t nan = 0;
  ForEachVector(n, [&](std::int64_t i, int count) {
    const Floats v =
        Select(LanesBetween(0, count), LoadUpTo(x + i, count), Splat(x[0]));
    low = Min(low, v);
    high = Max(high, v);
    nan |= Bits(IsNan(v));
  });
  const float smallest = -ReduceMax(Sub(Splat(0.0f), low));
  const F16 zero = RoundDown(smallest);
  F16 scale = RoundUpF16((ReduceMax(high) - ToFloat(zero)) /
                         static_cast<float>(kLevels));
  const bool finite = nan == 0 && (zero.bits & 0x7c00u) != 0x7c00u &&
                      (scale.bits & 0x7c00u) != 0x7c00u;
  if (!finite) scale = ToF16(std::numeric_limits<float>::quiet_NaN());
  StoreLe(scale_out, scale.bits);
  StoreLe(zero_out, zero.bits);
  const float step = ToFloat(scale);
  const Floats inverse = Splat(finite && step > 0.0f ? 1.0f / step : 0.0f);
  const Floats offset = Splat(finite ? ToFloat(zero) : 0.0f);
  ForEachVector(n, [&](std::int64_t i, int count) {
    const Floats v =
        Select(LanesBetween(0, count), LoadUpTo(x + i, count), offset);
    // Bounded first, which makes a code of NaN too; the addend rounds.
    const Floats code = Min(Max(Mul(Sub(v, offset), inverse), Splat(0.0f)),
                            Splat(static_cast<float>(kLevels)));
    store(i, count, AsInts(Add(code, Splat(0x1.8p23f))));
  });
}

void QuantiseRow8(const float* x, int n, std::byte* codes, std::byte* scale,
                  std::byte* zero) {
  QuantiseRow<255>(
      x, n, scale, zero, [codes](std::int64_t i, int count, Ints v) {
        std::int8_t bytes[kLanes];
        StoreLowBytes(bytes, v);
        std::memcpy(codes + i, bytes, static_cast<std::size_t>(count));
      });
}

void QuantiseRow4(const float* x, int n, std::byte* codes, std::byte* scale,
                  std::byte* zero) {
  QuantiseRow<15>(x, n, scale, zero, [codes](std::int64_t i, int, Ints v) {
    std::int8_t bytes[kLanes];
    StoreLowBytes(bytes, v);
    for (int k = 0; k < kLanes / 2; ++k) {
      codes[i / 2 + k] =
          static_cast<std::byte>((bytes[2 * k] & 15) | (bytes[2 * k + 1] << 4));
    }
  });
}

void SealRows(KvFormat format, const float* x, int n_rows, int n,
              std::byte* rows, std::byte* params) {
  const std::int64_t step = KvRowBytes(format, n);
  for (int r = 0; r < n_rows; ++r, x += n, rows += step) {
    std::byte* scale = params + 2 * r;
    std::byte* zero = params + 2 * (n_rows + r);
    switch (format) {
      case KvFormat::kInt8:
        QuantiseRow8(x, n, rows, scale, zero);
        break;
      case KvFormat::kInt4:
        QuantiseRow4(x, n, rows, scale, zero);
        break;
      case KvFormat::kF32:
      case KvFormat::kF16:
      case KvFormat::kBF16:
        StoreKey(format, x, n, rows, 1, 0);
        break;
    }
  }
}
