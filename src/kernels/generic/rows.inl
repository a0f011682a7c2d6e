// Work on one row of floats: norms, activations, rope, argmax.

void RmsNorm(const float* x, const float* weight, float eps, std::int64_t n,
             float* out) {
  Floats squares = Splat(0.0f);
  ForEachVector(n, [&](std::int64_t i, int count) {
    const Floats v = LoadUpTo(x + i, count);
    squares = MulAdd(v, v, squares);
  });
  const float mean = ReduceAdd(squares) / static_cast<float>(n);
  const Floats inverse = Splat(1.0f / std::sqrt(mean + eps));
  ForEachVector(n, [&](std::int64_t i, int count) {
    const Floats scaled = Mul(LoadUpTo(x + i, count), inverse);
    StoreUpTo(out + i, Mul(scaled, LoadUpTo(weight + i, count)), count);
  });
}

// Two passes: the variance of the differences, not the difference of squares.
void LayerNorm(const float* x, const float* weight, const float* bias,
               float eps, std::int64_t n, float* out) {
  const auto size = static_cast<float>(n);
  Floats total = Splat(0.0f);
  ForEachVector(n, [&](std::int64_t i, int count) {
    total = Add(total, LoadUpTo(x + i, count));
  });
  const Floats mean = Splat(ReduceAdd(total) / size);
  Floats squares = Splat(0.0f);
  ForEachVector(n, [&](std::int64_t i, int count) {
    // Lanes past the end must add nothing, so the difference is masked.
    const Floats d = Select(LanesBetween(0, count),
                            Sub(LoadUpTo(x + i, count), mean), Splat(0.0f));
    squares = MulAdd(d, d, squares);
  });
  const float variance = ReduceAdd(squares) / size;
  const Floats inverse = Splat(1.0f / std::sqrt(variance + eps));
  ForEachVector(n, [&](std::int64_t i, int count) {
    const Floats normal = Mul(Sub(LoadUpTo(x + i, count), mean), inverse);
    const Floats shift = bias ? LoadUpTo(bias + i, count) : Splat(0.0f);
    StoreUpTo(out + i, MulAdd(normal, LoadUpTo(weight + i, count), shift),
              count);
  });
}

void AddTo(const float* x, std::int64_t n, float* accumulator) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    float* a = accumulator + i;
    StoreUpTo(a, Add(LoadUpTo(a, count), LoadUpTo(x + i, count)), count);
  });
}

// 0 x is 0 but for NaNs and infinities, and nothing turns a NaN back.
bool AllFinite(const float* x, std::int64_t n) {
  const Floats zero = Splat(0.0f);
  Floats sum = zero;
  ForEachVector(n, [&](std::int64_t i, int count) {
    sum = MulAdd(LoadUpTo(x + i, count), zero, sum);
  });
  return ReduceAdd(sum) == 0.0f;
}

void SiluMul(const float* gate, const float* up, std::int64_t n, float* out) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    const Floats silu = Silu(LoadUpTo(gate + i, count));
    StoreUpTo(out + i, Mul(silu, LoadUpTo(up + i, count)), count);
  });
}

void SiluRow(const float* x, std::int64_t n, float* out) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    StoreUpTo(out + i, Silu(LoadUpTo(x + i, count)), count);
  });
}

void SigmoidMul(const float* gate, std::int64_t n, float* x) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    const Floats e = Exp(Sub(Splat(0.0f), LoadUpTo(gate + i, count)));
    StoreUpTo(x + i, Div(LoadUpTo(x + i, count), Add(Splat(1.0f), e)), count);
  });
}

void ReluSquaredRow(const float* x, std::int64_t n, float* out) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    // In this order a NaN stays one.
    const Floats kept = Max(Splat(0.0f), LoadUpTo(x + i, count));
    StoreUpTo(out + i, Mul(kept, kept), count);
  });
}

void GeluErfRow(const float* x, std::int64_t n, float* out) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    StoreUpTo(out + i, GeluErf(LoadUpTo(x + i, count)), count);
  });
}

void GeluTanhRow(const float* x, std::int64_t n, float* out) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    StoreUpTo(out + i, GeluTanh(LoadUpTo(x + i, count)), count);
  });
}

void SoftcapRow(float cap, std::int64_t n, float* x) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    StoreUpTo(x + i, Softcap(LoadUpTo(x + i, count), cap), count);
  });
}

// (a, b) -> (a cos - b sin, a sin + b cos).
HEARTH_INLINE void Rotate(Floats& a, Floats& b, Floats cos, Floats sin) {
  const Floats old_a = a;
  a = NegMulAdd(b, sin, Mul(a, cos));
  b = MulAdd(old_a, sin, Mul(b, cos));
}

void Rope(float* head, int rotary_dim, const float* cos, const float* sin,
          bool interleaved) {
  const int pairs = rotary_dim / 2;
  ForEachVector(pairs, [&](std::int64_t i, int count) {
    float first[kLanes] = {};
    float second[kLanes] = {};
    Floats a, b;
    if (interleaved) {
      for (int lane = 0; lane < count; ++lane) {
        first[lane] = head[2 * (i + lane)];
        second[lane] = head[2 * (i + lane) + 1];
      }
      a = Load(first);
      b = Load(second);
    } else {
      a = LoadUpTo(head + i, count);
      b = LoadUpTo(head + pairs + i, count);
    }
    Rotate(a, b, LoadUpTo(cos + i, count), LoadUpTo(sin + i, count));
    if (interleaved) {
      Store(first, a);
      Store(second, b);
      for (int lane = 0; lane < count; ++lane) {
        head[2 * (i + lane)] = first[lane];
        head[2 * (i + lane) + 1] = second[lane];
      }
    } else {
      StoreUpTo(head + i, a, count);
      StoreUpTo(head + pairs + i, b, count);
    }
  });
}

// First pass the maximum (a NaN loses every comparison), second pass its place.
std::int64_t ArgMax(const float* x, std::int64_t n) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  Floats best = Splat(kLowest);
  ForEachVector(n, [&](std::int64_t i, int count) {
    const Floats v = count == kLanes
                         ? Load(x + i)
                         : Select(LanesBetween(0, count), LoadN(x + i, count),
                                  Splat(kLowest));
    best = Max(v, best);
  });
  const Floats largest = Splat(ReduceMax(best));
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const int count = static_cast<int>(std::min<std::int64_t>(kLanes, n - i));
    const std::uint32_t live = (1u << count) - 1u;
    const std::uint32_t hits =
        Bits(Equal(LoadUpTo(x + i, count), largest)) & live;
    if (hits != 0) return i + std::countr_zero(hits);
  }
  return 0;  // nothing but NaN
}
