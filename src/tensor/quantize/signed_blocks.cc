// Q3_K, Q6_K, IQ4_NL and IQ4_XS: sub-blocks with a scale each and codes for
// values around zero. The codes of the K formats are evenly spaced, those of
// the others a table.
//
// The search, by squared error, all values alike where their columns'
// importance is not known: weighted with the square of the value, as is usual,
// files were up to a fifth worse (docs/convert.md).
//   1. per sub-block: guesses of the scale that give the peak a code at one end
//      or near it; for the codes that each gives, the best scale is the
//      projection; the one that explains most is kept;
//   2. d from the largest of them; every sub-block takes the integer that fits
//      best among the neighbours of the rounded one;
//   3. with all codes fixed d is fitted once more, and step 2 is repeated, if
//      the whole block gains.
#include <cstdint>

#include "tensor/dequantize.h"
#include "tensor/quantize/block.h"

namespace hearth {
namespace {

// Evenly spaced levels low..high.
struct EvenLevels {
  float low, high;

  float Nearest(float x) const { return CodeOf(x, low, high); }
};

// The sixteen levels of IQ4. All midpoints are halves, so that the floor of
// twice a value decides exactly.
class TableLevels {
 public:
  static constexpr float low = -127.0f, high = 113.0f;

  TableLevels() {
    std::size_t level = 0;
    for (int twice = -256; twice < 256; ++twice) {
      while (level + 1 < 16 &&
             twice >= kIq4Values[level] + kIq4Values[level + 1]) {
        ++level;
      }
      codes_[static_cast<std::size_t>(twice + 256)] =
          static_cast<std::uint8_t>(level);
    }
  }

  int CodeOfLevel(float x) const {
    const float bounded = std::min(std::max(low, x), high);
    return codes_[static_cast<std::size_t>(2.0f * bounded + 256.0f)];
  }
  float Nearest(float x) const {
    return static_cast<float>(
        kIq4Values[static_cast<std::size_t>(CodeOfLevel(x))]);
  }

 private:
  std::array<std::uint8_t, 512> codes_;
};

// Guesses: the peak lies at the lowest level plus an offset, and where the ends
// differ much, at the highest level plus one.
struct Guesses {
  float first, step;
  int n;
  bool both_ends;
};
constexpr Guesses kQ3Guesses{-0.9f, 0.15f, 13, true};
constexpr Guesses kQ6Guesses{-0.9f, 0.1f, 19, false};
constexpr Guesses kIq4Guesses{-12.0f, 2.4f, 11, true};

// Values and how much their errors count.
struct Weighted {
  const float* x;
  const float* w;
  int n;
};

struct Projection {
  double lx = 0, ll = 0;

  bool ExplainsMoreThan(const Projection& other) const {
    return lx * lx * other.ll > other.lx * other.lx * ll;
  }
  float scale() const { return ll > 0 ? static_cast<float>(lx / ll) : 0.0f; }
};

template <typename Levels>
Projection ProjectOn(const Weighted& v, float inverse, const Levels& levels) {
  float lx[kLanes] = {}, ll[kLanes] = {};
  for (int i = 0; i < v.n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const float value = v.x[i + k];
      const float level = levels.Nearest(value * inverse);
      const float weighted = v.w[i + k] * level;
      lx[k] += weighted * value;
      ll[k] += weighted * level;
    }
  }
  return {SumOf(lx), SumOf(ll)};
}

template <typename Levels>
float ErrorOf(const Weighted& v, float scale, const Levels& levels) {
  const float inverse = Inverse(scale);
  float lanes[kLanes] = {};
  for (int i = 0; i < v.n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const float value = v.x[i + k];
      const float miss = scale * levels.Nearest(value * inverse) - value;
      lanes[k] += v.w[i + k] * miss * miss;
    }
  }
  return SumOf(lanes);
}

template <typename Levels>
float ChooseScale(const Weighted& v, const Guesses& guesses,
                  const Levels& levels) {
  const float peak = Peak(v.x, v.n);
  if (peak == 0.0f) return 0.0f;
  Projection best;
  best.ll = 1;
  for (const float end : {levels.low, levels.high}) {
    if (end > 0 && !guesses.both_ends) break;
    for (int i = 0; i < guesses.n; ++i) {
      const float offset = guesses.first + guesses.step * static_cast<float>(i);
      const Projection tried = ProjectOn(v, (end + offset) / peak, levels);
      if (tried.ll > 0 && tried.ExplainsMoreThan(best)) best = tried;
    }
  }
  const Projection again = ProjectOn(v, Inverse(best.scale()), levels);
  return again.ll > 0 && again.ExplainsMoreThan(best) ? again.scale()
                                                      : best.scale();
}

// A block's factor as stored, and the integers -limit..limit-1 of its parts.
struct SignedBlock {
  float d = 0;
  std::array<int, 16> scales{};
  float error = 0;

  float At(std::size_t j) const { return d * static_cast<float>(scales[j]); }
};

template <typename Levels>
class SignedSearch {
 public:
  SignedSearch(const ScaledBlock& block, const ColumnWeights& weights, int n,
               int limit, Levels levels, std::byte* out_d)
      : block_(block),
        weights_(weights),
        n_(n),
        n_parts_(static_cast<std::size_t>(256 / n)),
        limit_(limit),
        levels_(levels),
        out_d_(out_d) {}

  SignedBlock Run(const Guesses& guesses) {
    for (std::size_t j = 0; j < n_parts_; ++j) {
      wanted_[j] = ChooseScale(Part(j), guesses, levels_);
    }
    const float largest = Peak(wanted_.data(), static_cast<int>(n_parts_));
    SignedBlock best = Settle(largest / static_cast<float>(-limit_));
    const SignedBlock tried = Settle(Refit(best));
    if (tried.error < best.error) best = tried;
    best.d = block_.PutScale(best.d, out_d_);
    return best;
  }

  // The level of each value, divided by its part's scale.
  float Scaled(const SignedBlock& block, std::size_t i) const {
    return block_.values()[i] * Inverse(block.At(i / U(n_)));
  }

 private:
  static std::size_t U(int n) { return static_cast<std::size_t>(n); }
  Weighted Part(std::size_t j) const {
    return {block_.values() + j * U(n_), weights_.data() + j * U(n_), n_};
  }

  SignedBlock Settle(float d) const {
    SignedBlock block;
    block.d = block_.PutScale(d, out_d_);
    const auto limit = static_cast<float>(limit_);
    for (std::size_t j = 0; j < n_parts_; ++j) {
      const int nearest = static_cast<int>(
          CodeOf(wanted_[j] * Inverse(block.d), -limit, limit - 1));
      float least = -1.0f;
      for (int s = std::max(-limit_, nearest - 1);
           s <= std::min(limit_ - 1, nearest + 1); ++s) {
        const float error =
            ErrorOf(Part(j), block.d * static_cast<float>(s), levels_);
        if (least >= 0.0f && !(error < least)) continue;
        least = error;
        block.scales[j] = s;
      }
      block.error += least;
    }
    return block;
  }

  // The d that fits the block's codes and integers best.
  float Refit(const SignedBlock& block) const {
    Projection all;
    for (std::size_t j = 0; j < n_parts_; ++j) {
      const double s = block.scales[j];
      const Projection part = ProjectOn(Part(j), Inverse(block.At(j)), levels_);
      all.lx += s * part.lx;
      all.ll += s * s * part.ll;
    }
    return all.ll > 0 ? all.scale() : block.d;
  }

  const ScaledBlock& block_;
  const ColumnWeights& weights_;
  const int n_;  // values of a part
  const std::size_t n_parts_;
  const int limit_;
  const Levels levels_;
  std::byte* out_d_;
  std::array<float, 16> wanted_{};
};

// Formats of few bits weigh large values more where importance is known.
ColumnWeights WeightsOf(const ScaledBlock& values, int n,
                        const float* importance) {
  ColumnWeights weights(importance, n);
  if (importance != nullptr) weights.WeighBySize(values.values(), n, 2);
  return weights;
}

const TableLevels& Iq4Levels() {
  static const TableLevels levels;
  return levels;
}

}  // namespace

// One part with an f16 scale of its own, as IQ4_NL.
std::array<int, 32> WeightedSignedCodes(const float* x, const float* importance,
                                        int half, std::byte* out) {
  std::array<float, 256> padded{};
  std::copy_n(x, 32, padded.begin());
  const ScaledBlock values(padded.data());
  const auto top = static_cast<float>(half);
  const EvenLevels levels{-top, top - 1};
  float scale = 0.0f;
  if (!values.zero()) {
    const ColumnWeights weights = WeightsOf(values, 32, importance);
    scale =
        ChooseScale({values.values(), weights.data(), 32}, kQ6Guesses, levels);
  }
  const float inverse = Inverse(values.PutScale(scale, out));
  std::array<int, 32> codes;
  for (std::size_t i = 0; i < 32; ++i) {
    codes[i] =
        static_cast<int>(levels.Nearest(values.values()[i] * inverse)) + half;
  }
  return codes;
}

void PutQ3_K(const float* x, const float* importance, std::byte* out) {
  std::fill_n(out, 110, std::byte{0});
  const ScaledBlock values(x);
  if (values.zero()) return;
  const EvenLevels levels{-4.0f, 3.0f};
  const ColumnWeights weights = WeightsOf(values, 256, importance);
  SignedSearch search(values, weights, 16, 32, levels, out + 108);
  const SignedBlock block = search.Run(kQ3Guesses);
  for (std::size_t j = 0; j < 16; ++j) {
    const int scale = block.scales[j] + 32;
    out[96 + j % 8] |= ToByte((scale & 15) << (j / 8 * 4));
    out[104 + j % 4] |= ToByte(scale >> 4 << (j / 4 * 2));
  }
  for (std::size_t i = 0; i < 256; ++i) {
    const int code =
        static_cast<int>(levels.Nearest(search.Scaled(block, i))) + 4;
    out[i % 32] |= ToByte(code >> 2 << (i / 32));
    out[32 + i / 128 * 32 + i % 32] |= ToByte((code & 3) << (i / 32 % 4 * 2));
  }
}

void PutQ6_K(const float* x, const float* importance, std::byte* out) {
  std::fill_n(out, 210, std::byte{0});
  const ScaledBlock values(x);
  if (values.zero()) return;
  const EvenLevels levels{-32.0f, 31.0f};
  const ColumnWeights weights(importance, 256);
  SignedSearch search(values, weights, 16, 128, levels, out + 208);
  const SignedBlock block = search.Run(kQ6Guesses);
  for (std::size_t j = 0; j < 16; ++j) out[192 + j] = ToByte(block.scales[j]);
  for (std::size_t i = 0; i < 256; ++i) {
    const int code =
        static_cast<int>(levels.Nearest(search.Scaled(block, i))) + 32;
    out[i / 128 * 64 + i % 64] |= ToByte((code & 15) << (i / 64 % 2 * 4));
    out[128 + i / 128 * 32 + i % 32] |= ToByte(code >> 4 << (i / 32 % 4 * 2));
  }
}

// One part with an f16 scale of its own: a block whose only integer is 1.
void PutIq4Nl(const float* x, const float* importance, std::byte* out) {
  std::array<float, 256> padded{};
  std::copy_n(x, 32, padded.begin());
  std::fill_n(out, 18, std::byte{0});
  const ScaledBlock values(padded.data());
  const TableLevels& levels = Iq4Levels();
  float scale = 0.0f;
  if (!values.zero()) {
    const ColumnWeights weights = WeightsOf(values, 32, importance);
    scale =
        ChooseScale({values.values(), weights.data(), 32}, kIq4Guesses, levels);
  }
  const float inverse = Inverse(values.PutScale(scale, out));
  for (std::size_t i = 0; i < 32; ++i) {
    const int code = levels.CodeOfLevel(values.values()[i] * inverse);
    out[2 + i % 16] |= ToByte(code << (i / 16 * 4));
  }
}

void PutIq4Xs(const float* x, const float* importance, std::byte* out) {
  std::fill_n(out, 136, std::byte{0});
  const ScaledBlock values(x);
  if (values.zero()) return;
  const TableLevels& levels = Iq4Levels();
  const ColumnWeights weights = WeightsOf(values, 256, importance);
  SignedSearch search(values, weights, 32, 32, levels, out);
  const SignedBlock block = search.Run(kIq4Guesses);
  unsigned high = 0;
  for (std::size_t j = 0; j < 8; ++j) {
    const int scale = block.scales[j] + 32;
    high |= static_cast<unsigned>(scale >> 4) << (2 * j);
    out[4 + j / 2] |= ToByte((scale & 15) << (j % 2 * 4));
  }
  StoreLe(out + 2, static_cast<std::uint16_t>(high));
  for (std::size_t i = 0; i < 256; ++i) {
    const int code = levels.CodeOfLevel(search.Scaled(block, i));
    out[8 + i / 32 * 16 + i % 16] |= ToByte(code << (i / 16 % 2 * 4));
  }
}

}  // namespace hearth
