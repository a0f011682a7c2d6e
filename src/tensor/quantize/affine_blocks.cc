// Q2_K, Q4_K and Q5_K: sub-blocks with a scale and a minimum each, which are
// small integers times the block's d and dmin.
//
// The search, all by weighted squared error:
//   1. per sub-block: guesses of the step; for the codes that each gives, scale
//      and minimum are the weighted least squares fit; the best is kept;
//   2. d and dmin from the largest of each; then every sub-block takes the pair
//      of integers that fits best among the neighbours of the rounded one;
//   3. with all codes fixed d and dmin are fitted once more, and step 2 is
//      repeated, if the whole block gains.
#include <optional>

#include "tensor/quantize/block.h"

namespace hearth {
namespace {

struct Affine {
  float scale = 0.0f;
  float minimum = 0.0f;  // >= 0; a value is scale * code - minimum
};

// What distinguishes the formats.
struct AffineForm {
  int n;              // values of a sub-block
  float last_code;    // codes are 0..last_code
  int last_scale;     // scales and minimums are 0..last_scale
  float guess_first;  // steps in the range are last_code + guess_first + ...
  float guess_step;
  int n_guesses;
  // A value's weight without importance is |x| or, for formats of more bits,
  // |x| + rms.
  bool rms_in_weight;
};
constexpr AffineForm kQ2Form{16, 3.0f, 15, -0.5f, 0.1f, 16, false};
constexpr AffineForm kQ4Form{32, 15.0f, 63, -1.0f, 0.1f, 21, true};
constexpr AffineForm kQ5Form{32, 31.0f, 63, -0.9f, 0.15f, 21, true};

// The values of one sub-block and their weights.
struct Weighted {
  const float* x;
  const float* w;
  int n;
  double wx = 0, wxx = 0, w_sum = 0;
};

Weighted WeightedPart(const float* x, const float* w, int n) {
  Weighted part{.x = x, .w = w, .n = n};
  for (int i = 0; i < n; ++i) {
    part.w_sum += double{w[i]};
    part.wx += double{w[i]} * x[i];
    part.wxx += double{w[i]} * x[i] * x[i];
  }
  return part;
}

float ErrorOf(const Weighted& v, Affine a, float last_code) {
  const float inverse = Inverse(a.scale);
  float lanes[kLanes] = {};
  for (int i = 0; i < v.n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const float x = v.x[i + k];
      const float code = CodeOf((x + a.minimum) * inverse, 0.0f, last_code);
      const float miss = a.scale * code - a.minimum - x;
      lanes[k] += v.w[i + k] * miss * miss;
    }
  }
  return SumOf(lanes);
}

// What the least squares problem of given codes needs: sums of weight times
// code, squared code, and code times value.
struct CodeSums {
  double l, ll, lx;
};
CodeSums SumsOf(const Weighted& v, float inverse, float low, float last_code) {
  float l[kLanes] = {}, ll[kLanes] = {}, lx[kLanes] = {};
  for (int i = 0; i < v.n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const float x = v.x[i + k];
      const float code = CodeOf((x - low) * inverse, 0.0f, last_code);
      const float weighted = v.w[i + k] * code;
      l[k] += weighted;
      ll[k] += weighted * code;
      lx[k] += weighted * x;
    }
  }
  return {SumOf(l), SumOf(ll), SumOf(lx)};
}

// The best scale and minimum for the codes that a step of 1 / `inverse` from
// `low` on gives, and their error.
struct Fitted {
  Affine affine;
  double error;
};
std::optional<Fitted> Fit(const Weighted& v, float inverse, float low,
                          float last_code) {
  const CodeSums s = SumsOf(v, inverse, low, last_code);
  const double determinant = v.w_sum * s.ll - s.l * s.l;
  if (!(determinant > 0)) return std::nullopt;
  double scale = (v.w_sum * s.lx - s.l * v.wx) / determinant;
  double minimum = (scale * s.l - v.wx) / v.w_sum;
  if (minimum < 0) {
    scale = s.lx / s.ll;
    minimum = 0;
  }
  if (!(scale > 0)) return std::nullopt;
  const double error = v.wxx + scale * (scale * s.ll - 2 * s.lx) +
                       minimum * (minimum * v.w_sum + 2 * v.wx) -
                       2 * scale * minimum * s.l;
  return Fitted{{static_cast<float>(scale), static_cast<float>(minimum)},
                error};
}

Affine ChooseAffine(const Weighted& v, const AffineForm& form) {
  const float low = std::min(0.0f, *std::min_element(v.x, v.x + v.n));
  const float high = *std::max_element(v.x, v.x + v.n);
  if (!(high > low)) return {0.0f, -low};
  Fitted best{{(high - low) / form.last_code, -low}, 0};
  best.error = ErrorOf(v, best.affine, form.last_code);
  const auto consider = [&](const std::optional<Fitted>& tried) {
    if (tried && tried->error < best.error) best = *tried;
  };
  for (int i = 0; i < form.n_guesses; ++i) {
    const float steps = form.last_code + form.guess_first +
                        form.guess_step * static_cast<float>(i);
    consider(Fit(v, steps / (high - low), low, form.last_code));
  }
  consider(
      Fit(v, Inverse(best.affine.scale), -best.affine.minimum, form.last_code));
  return best.affine;
}

// The integers of a block's sub-blocks, and d and dmin as they are stored.
struct AffineBlock {
  float d = 0, dmin = 0;
  std::array<int, 16> scales{}, minimums{};
  float error = 0;

  Affine At(int j) const {
    return {d * static_cast<float>(scales[static_cast<std::size_t>(j)]),
            dmin * static_cast<float>(minimums[static_cast<std::size_t>(j)])};
  }
};

class AffineSearch {
 public:
  AffineSearch(const ScaledBlock& block, const AffineForm& form,
               const float* importance, std::byte* out_d)
      : block_(block), form_(form), out_d_(out_d), n_(256 / form.n) {
    if (importance == nullptr) {
      Weigh();
    } else {
      ColumnWeights columns(importance, 256);
      columns.WeighBySize(block.values(), 256, form.rms_in_weight ? 2 : 1);
      std::copy_n(columns.data(), 256, weights_.data());
    }
    for (int j = 0; j < n_; ++j) {
      parts_[static_cast<std::size_t>(j)] = WeightedPart(
          block.values() + j * form.n, weights_.data() + j * form.n, form.n);
    }
  }

  AffineBlock Run() {
    std::array<Affine, 16> wanted;
    float scale_max = 0.0f, minimum_max = 0.0f;
    for (int j = 0; j < n_; ++j) {
      Affine& a = wanted[static_cast<std::size_t>(j)];
      a = ChooseAffine(parts_[static_cast<std::size_t>(j)], form_);
      scale_max = std::max(scale_max, a.scale);
      minimum_max = std::max(minimum_max, a.minimum);
    }
    const auto last = static_cast<float>(form_.last_scale);
    AffineBlock best = Settle(scale_max / last, minimum_max / last, wanted);
    const Affine again = Refit(best);
    const AffineBlock tried = Settle(again.scale, again.minimum, wanted);
    if (tried.error < best.error) best = tried;
    best.d = block_.PutScale(best.d, out_d_);
    best.dmin = block_.PutScale(best.dmin, out_d_ + 2);
    return best;
  }

  // Codes of all values under `block`, which Run gave.
  std::array<int, 256> Codes(const AffineBlock& block) const {
    std::array<int, 256> codes;
    for (std::size_t i = 0; i < 256; ++i) {
      const Affine a = block.At(static_cast<int>(i) / form_.n);
      codes[i] = static_cast<int>(
          CodeOf((block_.values()[i] + a.minimum) * Inverse(a.scale), 0.0f,
                 form_.last_code));
    }
    return codes;
  }

 private:
  void Weigh() {
    for (int j = 0; j < n_; ++j) {
      const float* x = block_.values() + j * form_.n;
      float* w = weights_.data() + j * form_.n;
      float square = 0.0f;
      for (int i = 0; i < form_.n; ++i) square += x[i] * x[i];
      const float rms = form_.rms_in_weight
                            ? std::sqrt(square / static_cast<float>(form_.n))
                            : 0.0f;
      for (int i = 0; i < form_.n; ++i) w[i] = rms + std::abs(x[i]);
    }
  }

  // Integers for given factors: the best neighbours of what is wanted.
  AffineBlock Settle(float d, float dmin,
                     const std::array<Affine, 16>& wanted) const {
    AffineBlock block;
    block.d = block_.PutScale(d, out_d_);
    block.dmin = block_.PutScale(dmin, out_d_ + 2);
    for (int j = 0; j < n_; ++j) SettleOne(j, wanted, block);
    return block;
  }

  void SettleOne(int j, const std::array<Affine, 16>& wanted,
                 AffineBlock& block) const {
    const auto at = static_cast<std::size_t>(j);
    const auto last = static_cast<float>(form_.last_scale);
    const auto nearest = [last](float value, float unit) {
      return static_cast<int>(CodeOf(value * Inverse(unit), 0.0f, last));
    };
    const int scale = nearest(wanted[at].scale, block.d);
    float least = -1.0f;
    for (int s = std::max(0, scale - 1);
         s <= std::min(form_.last_scale, scale + 1); ++s) {
      Affine tried{block.d * static_cast<float>(s), wanted[at].minimum};
      // The minimum that goes with the codes of this scale.
      if (s > 0 && block.dmin > 0 && parts_[at].w_sum > 0) {
        const CodeSums sums = SumsOf(parts_[at], Inverse(tried.scale),
                                     -tried.minimum, form_.last_code);
        tried.minimum = static_cast<float>(
            (tried.scale * sums.l - parts_[at].wx) / parts_[at].w_sum);
      }
      const int m = nearest(tried.minimum, block.dmin);
      tried.minimum = block.dmin * static_cast<float>(m);
      const float error = ErrorOf(parts_[at], tried, form_.last_code);
      if (least >= 0.0f && !(error < least)) continue;
      least = error;
      block.scales[at] = s;
      block.minimums[at] = m;
    }
    block.error += least;
  }

  // d and dmin that fit the block's codes and integers best.
  Affine Refit(const AffineBlock& block) const {
    const std::array<int, 256> codes = Codes(block);
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (std::size_t i = 0; i < 256; ++i) {
      const std::size_t j = i / static_cast<std::size_t>(form_.n);
      const double a = block.scales[j] * codes[i];
      const double b = -block.minimums[j];
      const double w = double{weights_[i]}, x = double{block_.values()[i]};
      aa += w * a * a;
      ab += w * a * b;
      bb += w * b * b;
      ax += w * a * x;
      bx += w * b * x;
    }
    const double determinant = aa * bb - ab * ab;
    if (!(aa > 0)) return {block.d, block.dmin};
    if (!(determinant > 1e-9 * aa * bb)) {
      return {static_cast<float>((ax - ab * double{block.dmin}) / aa),
              block.dmin};
    }
    const double d = (ax * bb - bx * ab) / determinant;
    const double dmin = (aa * bx - ab * ax) / determinant;
    return {static_cast<float>(std::max(d, 0.0)),
            static_cast<float>(std::max(dmin, 0.0))};
  }

  const ScaledBlock& block_;
  const AffineForm& form_;
  std::byte* out_d_;  // f16 d, then f16 dmin
  const int n_;       // sub-blocks
  std::array<float, 256> weights_;
  std::array<Weighted, 16> parts_{};
};

// Six bits each of eight scales and minimums; docs/formats/tensor-types.md.
void PutSixBits(const AffineBlock& block, std::byte* out) {
  const auto& s = block.scales;
  const auto& m = block.minimums;
  for (std::size_t j = 0; j < 4; ++j) {
    out[j] = ToByte(s[j] | s[j + 4] >> 4 << 6);
    out[4 + j] = ToByte(m[j] | m[j + 4] >> 4 << 6);
    out[8 + j] = ToByte((s[j + 4] & 15) | (m[j + 4] & 15) << 4);
  }
}

// The low four bits of codes 64k + i and 64k + 32 + i share a byte.
void PutHalves(const std::array<int, 256>& codes, std::byte* out) {
  for (std::size_t i = 0; i < 128; ++i) {
    const std::size_t first = i / 32 * 64 + i % 32;
    out[i] = ToByte((codes[first] & 15) | (codes[first + 32] & 15) << 4);
  }
}

}  // namespace

// One part with an f16 scale and minimum of its own.
std::array<int, 32> WeightedRangeCodes(const float* x, const float* importance,
                                       int last, std::byte* out) {
  std::array<float, 256> padded{};
  std::copy_n(x, 32, padded.begin());
  std::fill_n(out, 4, std::byte{0});
  std::array<int, 32> codes{};
  const ScaledBlock block(padded.data());
  if (block.zero()) return codes;
  const AffineForm& form = last == 15 ? kQ4Form : kQ5Form;
  ColumnWeights columns(importance, 32);
  columns.WeighBySize(block.values(), 32, 2);
  const Affine wanted =
      ChooseAffine(WeightedPart(block.values(), columns.data(), 32), form);
  Affine stored;
  stored.scale = block.PutScale(wanted.scale, out);
  stored.minimum = -block.PutScale(-wanted.minimum, out + 2);
  for (std::size_t i = 0; i < 32; ++i) {
    codes[i] = static_cast<int>(
        CodeOf((block.values()[i] + stored.minimum) * Inverse(stored.scale),
               0.0f, form.last_code));
  }
  return codes;
}

void PutQ2_K(const float* x, const float* importance, std::byte* out) {
  std::fill_n(out, 84, std::byte{0});
  const ScaledBlock values(x);
  if (values.zero()) return;
  AffineSearch search(values, kQ2Form, importance, out + 80);
  const AffineBlock block = search.Run();
  const std::array<int, 256> codes = search.Codes(block);
  for (std::size_t j = 0; j < 16; ++j) {
    out[j] = ToByte(block.scales[j] | block.minimums[j] << 4);
  }
  for (std::size_t i = 0; i < 256; ++i) {
    out[16 + i / 128 * 32 + i % 32] |= ToByte(codes[i] << (i / 32 % 4 * 2));
  }
}

void PutQ4_K(const float* x, const float* importance, std::byte* out) {
  std::fill_n(out, 144, std::byte{0});
  const ScaledBlock values(x);
  if (values.zero()) return;
  AffineSearch search(values, kQ4Form, importance, out);
  const AffineBlock block = search.Run();
  PutSixBits(block, out + 4);
  PutHalves(search.Codes(block), out + 16);
}

void PutQ5_K(const float* x, const float* importance, std::byte* out) {
  std::fill_n(out, 176, std::byte{0});
  const ScaledBlock values(x);
  if (values.zero()) return;
  AffineSearch search(values, kQ5Form, importance, out);
  const AffineBlock block = search.Run();
  const std::array<int, 256> codes = search.Codes(block);
  PutSixBits(block, out + 4);
  for (std::size_t i = 0; i < 256; ++i) {
    out[16 + i % 32] |= ToByte(codes[i] >> 4 << (i / 32));
  }
  PutHalves(codes, out + 48);
}

}  // namespace hearth
