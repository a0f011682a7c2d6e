// Stored tiles and running softmaxes that the attention tests share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <span>
#include <vector>

#include "kernels/test_inputs.h"

namespace hearth::kernels_testing {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Of keys and values.
struct Formats {
  KvFormat keys, values;

  bool quantised() const { return IsQuantised(keys) || IsQuantised(values); }
};

inline std::ostream& operator<<(std::ostream& out, const Formats& f) {
  return out << NameOf(f.keys) << '/' << NameOf(f.values);
}

// One row number of a stored tile.
inline double NumberAt(KvFormat format, const std::byte* row, int i,
                       const std::byte* scale, const std::byte* zero) {
  const auto half = [](const std::byte* p) {
    return double{ToFloat(F16{LoadLe<std::uint16_t>(p)})};
  };
  switch (format) {
    case KvFormat::kF32:
      return LoadLe<float>(row + 4 * i);
    case KvFormat::kF16:
      return half(row + 2 * i);
    case KvFormat::kBF16:
      return ToFloat(BF16{LoadLe<std::uint16_t>(row + 2 * i)});
    case KvFormat::kInt8:
      return std::to_integer<int>(row[i]) * half(scale) + half(zero);
    case KvFormat::kInt4:
      return (std::to_integer<int>(row[i / 2]) >> (4 * (i % 2)) & 15) *
                 half(scale) +
             half(zero);
  }
  return 0;
}

// A tile whose slots are all NaN until a token is stored. Quantised ones are
// kept as floats and sealed by View(), which wants every slot stored.
class TestTile {
 public:
  TestTile(Formats formats, int head_dim, int stride, std::size_t misalign = 2)
      : formats_(formats),
        head_dim_(head_dim),
        stride_(stride),
        float_keys_(static_cast<std::size_t>(head_dim * stride), kNan),
        float_values_(float_keys_),
        keys_(KeyBytes(), misalign),
        values_(ValueBytes(), misalign) {
    const std::vector<float> nan(static_cast<std::size_t>(head_dim), kNan);
    for (int slot = 0; slot < stride; ++slot) Store(nan, nan, slot);
    n_tokens_ = 0;
  }
  TestTile(KvFormat format, int head_dim, int stride)
      : TestTile(Formats{format, format}, head_dim, stride) {}

  void Store(std::span<const float> key, std::span<const float> value,
             int slot) {
    const Kernels& k = *AvailableKernels()[0];
    if (!formats_.quantised()) {
      k.store_key(formats_.keys, key.data(), head_dim_, keys_.data(), stride_,
                  slot);
      k.store_value(formats_.values, value.data(), head_dim_, values_.data(),
                    slot);
    }
    for (int d = 0; d < head_dim_; ++d) {
      const auto i = static_cast<std::size_t>(d);
      float_keys_[static_cast<std::size_t>(d * stride_ + slot)] = key[i];
      float_values_[static_cast<std::size_t>(slot * head_dim_ + d)] = value[i];
    }
    n_tokens_ = std::max(n_tokens_, slot + 1);
  }

  // Tokens [0, n) of a fixed random sequence.
  void Fill(int n, unsigned seed) {
    const auto dim = static_cast<std::size_t>(head_dim_);
    for (int slot = 0; slot < n; ++slot) {
      const unsigned s = seed + 2 * static_cast<unsigned>(slot);
      Store(RandomFloats(dim, s), RandomFloats(dim, s + 1), slot);
    }
  }

  KvTile View(const Kernels& k = *AvailableKernels()[0]) {
    KvTile tile;
    tile.keys = keys_.data();
    tile.values = values_.data();
    tile.key_format = formats_.keys;
    tile.value_format = formats_.values;
    tile.key_params = KeyParams();
    tile.value_params = ValueParams();
    tile.n_tokens = n_tokens_;
    tile.stride = stride_;
    if (formats_.quantised()) {
      EXPECT_EQ(n_tokens_, stride_);
      k.seal_rows(formats_.keys, float_keys_.data(), head_dim_, stride_,
                  keys_.data(), KeyParams());
      k.seal_rows(formats_.values, float_values_.data(), stride_, head_dim_,
                  values_.data(), ValueParams());
    }
    return tile;
  }
  double Key(int d, int slot) {
    return NumberAt(formats_.keys,
                    keys_.data() + d * KvRowBytes(formats_.keys, stride_), slot,
                    KeyParams() + 2 * d, KeyParams() + 2 * (head_dim_ + d));
  }
  double Value(int slot, int d) {
    return NumberAt(
        formats_.values,
        values_.data() + slot * KvRowBytes(formats_.values, head_dim_), d,
        ValueParams() + 2 * slot, ValueParams() + 2 * (stride_ + slot));
  }
  double FloatKey(int d, int slot) const {
    return float_keys_[static_cast<std::size_t>(d * stride_ + slot)];
  }
  double FloatValue(int slot, int d) const {
    return float_values_[static_cast<std::size_t>(slot * head_dim_ + d)];
  }
  std::vector<std::byte> Bytes() {
    std::vector<std::byte> all(keys_.data(), keys_.data() + KeyBytes());
    all.insert(all.end(), values_.data(), values_.data() + ValueBytes());
    return all;
  }
  std::byte* KeyParams() {
    return keys_.data() + head_dim_ * KvRowBytes(formats_.keys, stride_);
  }
  std::byte* ValueParams() {
    return values_.data() + stride_ * KvRowBytes(formats_.values, head_dim_);
  }

 private:
  std::size_t KeyBytes() const {
    return static_cast<std::size_t>(head_dim_ *
                                        KvRowBytes(formats_.keys, stride_) +
                                    KvParamBytes(formats_.keys, head_dim_));
  }
  std::size_t ValueBytes() const {
    return static_cast<std::size_t>(stride_ *
                                        KvRowBytes(formats_.values, head_dim_) +
                                    KvParamBytes(formats_.values, stride_));
  }

  Formats formats_;
  int head_dim_;
  int stride_;
  int n_tokens_ = 0;
  std::vector<float> float_keys_;    // [head_dim][stride]
  std::vector<float> float_values_;  // [stride][head_dim]
  Buffer keys_;
  Buffer values_;
};

// The running softmax of several rows.
struct State {
  std::vector<float> max, sum, acc;

  State(int n_rows, int head_dim)
      : max(static_cast<std::size_t>(n_rows), kNothing),
        sum(static_cast<std::size_t>(n_rows), 0.0f),
        acc(static_cast<std::size_t>(n_rows * head_dim), 0.0f) {}
};

inline void Attend(const Kernels& kernels, std::span<const float> q,
                   int head_dim, const KvTile& tile,
                   const std::vector<int>& begin,
                   const std::vector<int>& visible, State* state,
                   float softcap = 0.0f) {
  const auto n_rows = static_cast<int>(visible.size());
  Buffer scratch(kernels.attend_scratch_bytes(head_dim, tile.stride));
  kernels.attend_tile(q.data(), n_rows, head_dim, tile, begin.data(),
                      visible.data(), softcap, state->max.data(),
                      state->sum.data(), state->acc.data(), scratch.data());
}

// Every row begins at the same slot.
inline void Attend(const Kernels& kernels, std::span<const float> q,
                   int head_dim, const KvTile& tile, int begin,
                   const std::vector<int>& visible, State* state) {
  Attend(kernels, q, head_dim, tile, std::vector<int>(visible.size(), begin),
         visible, state);
}

inline bool SameState(const State& a, const State& b) {
  return SameBits(a.max, b.max) && SameBits(a.sum, b.sum) &&
         SameBits(a.acc, b.acc);
}

// Whether every row of `among` is what it is when it is attended to alone.
inline ::testing::AssertionResult SameAlone(const Kernels& kernels,
                                            std::span<const float> q,
                                            int head_dim, const KvTile& tile,
                                            const std::vector<int>& begin,
                                            const std::vector<int>& visible,
                                            const State& among) {
  const auto dim = static_cast<std::size_t>(head_dim);
  for (std::size_t r = 0; r < begin.size(); ++r) {
    State alone(1, head_dim);
    Attend(kernels, q.subspan(r * dim, dim), head_dim, tile, begin[r],
           {visible[r]}, &alone);
    if (alone.max[0] != among.max[r] || alone.sum[0] != among.sum[r] ||
        !SameBits(alone.acc, std::span(among.acc).subspan(r * dim, dim))) {
      return ::testing::AssertionFailure() << kernels.isa << " row " << r;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace hearth::kernels_testing
