// Layers that remember a state instead of keys and values. Lanes are channels
// or columns of the state, so that every sum has one order on every CPU.

void ConvRow(const float* taps, int n_taps, const float* const* inputs,
             std::int64_t n, float* out) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    Floats sum = Splat(0.0f);
    for (int t = 0; t < n_taps; ++t) {
      sum = MulAdd(LoadUpTo(taps + t * n + i, count),
                   LoadUpTo(inputs[t] + i, count), sum);
    }
    StoreUpTo(out + i, sum, count);
  });
}

// kStrips runs of sixteen columns side by side, which hide each other's
// latency; with one run, the last `count` columns. The decayed state is made
// twice rather than stored and read again.
template <int kStrips>
HEARTH_INLINE void DeltaStrips(const float* before, float* after, int key_dim,
                               int value_dim, int column, int count,
                               const DeltaTokens& tokens) {
  for (int t = 0; t < tokens.n; ++t) {
    const float* from = (t == 0 ? before : after) + column;
    const float* q = tokens.q + t * tokens.qk_stride;
    const float* k = tokens.k + t * tokens.qk_stride;
    const float* v = tokens.v + t * tokens.v_stride + column;
    float* out = tokens.out + t * tokens.out_stride + column;
    const Floats decay = Splat(tokens.decay[t * tokens.gate_stride]);
    const Floats rate = Splat(tokens.rate[t * tokens.gate_stride]);
    Floats recalled[kStrips], result[kStrips];
    HEARTH_UNROLL
    for (int s = 0; s < kStrips; ++s) {
      recalled[s] = result[s] = Splat(0.0f);
    }
    for (int i = 0; i < key_dim; ++i) {
      const Floats key = Splat(k[i]);
      HEARTH_UNROLL
      for (int s = 0; s < kStrips; ++s) {
        const float* at = from + std::int64_t{i} * value_dim + s * kLanes;
        recalled[s] = MulAdd(key, Mul(LoadUpTo(at, count), decay), recalled[s]);
      }
    }
    HEARTH_UNROLL
    for (int s = 0; s < kStrips; ++s) {
      recalled[s] =
          Mul(Sub(LoadUpTo(v + s * kLanes, count), recalled[s]), rate);
    }
    for (int i = 0; i < key_dim; ++i) {
      const Floats key = Splat(k[i]), query = Splat(q[i]);
      HEARTH_UNROLL
      for (int s = 0; s < kStrips; ++s) {
        const std::int64_t at = std::int64_t{i} * value_dim + s * kLanes;
        const Floats decayed = Mul(LoadUpTo(from + at, count), decay);
        const Floats state = MulAdd(key, recalled[s], decayed);
        StoreUpTo(after + column + at, state, count);
        result[s] = MulAdd(query, state, result[s]);
      }
    }
    HEARTH_UNROLL
    for (int s = 0; s < kStrips; ++s) {
      StoreUpTo(out + s * kLanes, result[s], count);
    }
  }
}

void DeltaUpdate(const float* before, float* after, int key_dim, int value_dim,
                 const DeltaTokens& tokens) {
  constexpr int kStrips = 2;
  int column = 0;
  for (; column + kStrips * kLanes <= value_dim; column += kStrips * kLanes) {
    DeltaStrips<kStrips>(before, after, key_dim, value_dim, column, kLanes,
                         tokens);
  }
  for (; column < value_dim; column += kLanes) {
    DeltaStrips<1>(before, after, key_dim, value_dim, column,
                   std::min(kLanes, value_dim - column), tokens);
  }
}

// As DeltaStrips.
template <int kStrips>
HEARTH_INLINE void SsmStrips(const float* before, float* after, int n_state,
                             int head_dim, int column, int count,
                             const SsmTokens& tokens) {
  for (int t = 0; t < tokens.n; ++t) {
    const float* from = (t == 0 ? before : after) + column;
    const float* write = tokens.write + t * tokens.state_stride;
    const float* read = tokens.read + t * tokens.state_stride;
    const float* x = tokens.x + t * tokens.x_stride + column;
    float* out = tokens.out + t * tokens.out_stride + column;
    const Floats decay = Splat(tokens.decay[t * tokens.decay_stride]);
    Floats input[kStrips], result[kStrips];
    HEARTH_UNROLL
    for (int s = 0; s < kStrips; ++s) {
      input[s] = LoadUpTo(x + s * kLanes, count);
      result[s] = Splat(0.0f);
    }
    for (int i = 0; i < n_state; ++i) {
      const Floats written = Splat(write[i]), asked = Splat(read[i]);
      HEARTH_UNROLL
      for (int s = 0; s < kStrips; ++s) {
        const std::int64_t at = std::int64_t{i} * head_dim + s * kLanes;
        const Floats state =
            MulAdd(written, input[s], Mul(LoadUpTo(from + at, count), decay));
        StoreUpTo(after + column + at, state, count);
        result[s] = MulAdd(asked, state, result[s]);
      }
    }
    HEARTH_UNROLL
    for (int s = 0; s < kStrips; ++s) {
      StoreUpTo(out + s * kLanes, result[s], count);
    }
  }
}

void SsmUpdate(const float* before, float* after, int n_state, int head_dim,
               const SsmTokens& tokens) {
  constexpr int kStrips = 4;
  int column = 0;
  for (; column + kStrips * kLanes <= head_dim; column += kStrips * kLanes) {
    SsmStrips<kStrips>(before, after, n_state, head_dim, column, kLanes,
                       tokens);
  }
  for (; column < head_dim; column += kLanes) {
    SsmStrips<1>(before, after, n_state, head_dim, column,
                 std::min(kLanes, head_dim - column), tokens);
  }
}
