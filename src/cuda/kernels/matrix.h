// Weight matrices as they lie on a device: block formats repacked, so that
// codes are read sixteen bytes at a time and every format is one of a few forms
// whose products are the integers and scales of the file's.
//
// A group is 32 consecutive inputs of one output; group g of output n is number
// n * n_in / 32 + g.
//   codes   kNibbles: 16 bytes a group, byte i holds codes i (low) and 16 + i;
//           kBytes: 32 signed bytes
//   scales  kHalf: float16 a group, with minimums a second one behind it;
//           kSuper: the same for eight groups, times an integer of `small`;
//           kFloat: float32 a group
//   small   kSuper: for each group a signed scale (two where halves have their
//           own), then as many unsigned minimums
// Other formats: the floats as they are, rows one after the other.
#pragma once

#include <cstdint>

#include "cuda/kernels/arithmetic.h"

namespace hearth::gpu {

enum class Codes : std::uint8_t { kNibbles, kBytes, kF32, kF16, kBF16 };
enum class Scales : std::uint8_t { kHalf, kSuper, kFloat };

struct Matrix {
  Codes codes_kind;
  Scales scales_kind;
  bool halves;    // scales span 16 values
  bool minimums;  // a weight is scale * code - minimum
  bool in_out;    // floats: row k holds the weights of input k
  int bias;       // what nibbles have too much
  std::int64_t n_out, n_in;
  const std::uint8_t* codes;
  const std::uint8_t* scales;
  const std::uint8_t* small;

  HEARTH_GPU bool blocks() const {
    return codes_kind == Codes::kNibbles || codes_kind == Codes::kBytes;
  }
};

// Activations: for each row the signed codes of its values, and for each group
// of 32 its scale and the sums of its halves' codes.
struct PackedScale {
  float scale;
  std::int16_t sums[2];
};
struct PackedRows {
  const std::uint8_t* codes;  // [n_rows][n_in]
  const PackedScale* scales;  // [n_rows][n_in / 32]
};

// The same to be written.
struct PackedRoom {
  std::uint8_t* codes;
  PackedScale* scales;
};

// The weight scales of one group, decoded.
struct GroupScales {
  float scale[2];
  float minimum[2];
};

// A group's scales as they lie: of the halves (scale, minimum) and the small
// integers, lowest byte first.
struct RawScales {
  std::uint32_t halves, small;
};

template <bool kHalves, bool kMinimums>
HEARTH_GPU RawScales LoadScales(const Matrix& w, std::int64_t group) {
  constexpr int kSmall = (kHalves ? 2 : 1) * (kMinimums ? 2 : 1);
  RawScales raw = {0, 0};
  if (w.scales_kind == Scales::kFloat) {
    raw.halves = reinterpret_cast<const std::uint32_t*>(w.scales)[group];
    return raw;
  }
  const bool super = w.scales_kind == Scales::kSuper;
  const std::int64_t at = super ? group / 8 : group;
  if (kMinimums) {
    raw.halves = reinterpret_cast<const std::uint32_t*>(w.scales)[at];
  } else {
    raw.halves = reinterpret_cast<const std::uint16_t*>(w.scales)[at];
  }
  if (!super) return raw;
  if (kSmall == 4) {
    raw.small = reinterpret_cast<const std::uint32_t*>(w.small)[group];
  } else if (kSmall == 2) {
    raw.small = reinterpret_cast<const std::uint16_t*>(w.small)[group];
  } else {
    raw.small = w.small[group];
  }
  return raw;
}

template <bool kHalves, bool kMinimums>
HEARTH_GPU GroupScales Decoded(const Matrix& w, const RawScales& raw) {
  GroupScales s = {};
  constexpr int kParts = kHalves ? 2 : 1;
  if (w.scales_kind == Scales::kFloat) {
    s.scale[0] = AsFloat(raw.halves);
    return s;
  }
  const float d = HalfToFloat(static_cast<std::uint16_t>(raw.halves));
  const float m =
      kMinimums ? HalfToFloat(static_cast<std::uint16_t>(raw.halves >> 16))
                : 0.0f;
  if (w.scales_kind == Scales::kHalf) {
    s.scale[0] = d;
    s.minimum[0] = m;
    return s;
  }
  HEARTH_GPU_UNROLL
  for (int i = 0; i < kParts; ++i) {
    s.scale[i] =
        d * static_cast<float>(static_cast<std::int8_t>(raw.small >> (8 * i)));
    if (kMinimums) {
      const std::uint32_t minimum = (raw.small >> (8 * (kParts + i))) & 0xffu;
      s.minimum[i] = m * static_cast<float>(minimum);
    }
  }
  return s;
}

template <bool kHalves, bool kMinimums>
HEARTH_GPU GroupScales ScalesOf(const Matrix& w, std::int64_t group) {
  return Decoded<kHalves, kMinimums>(w,
                                     LoadScales<kHalves, kMinimums>(w, group));
}

struct Words4 {
  std::uint32_t w[4];
};
#ifdef __CUDACC__
HEARTH_GPU Words4 LoadWords4(const std::uint8_t* p) {
  const uint4 v = *reinterpret_cast<const uint4*>(p);
  return {{v.x, v.y, v.z, v.w}};
}
#else
HEARTH_GPU Words4 LoadWords4(const std::uint8_t* p) {
  return *reinterpret_cast<const Words4*>(p);
}
#endif

// The codes of one group as eight words of four signed bytes.
template <Codes kCodes>
HEARTH_GPU void LoadGroup(const Matrix& w, std::int64_t group,
                          std::uint32_t (&words)[8]) {
  if (kCodes == Codes::kNibbles) {
    const Words4 both = LoadWords4(w.codes + group * 16);
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      words[i] = both.w[i] & 0x0f0f0f0fu;
      words[4 + i] = (both.w[i] >> 4) & 0x0f0f0f0fu;
    }
  } else {
    const Words4 a = LoadWords4(w.codes + group * 32);
    const Words4 b = LoadWords4(w.codes + group * 32 + 16);
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      words[i] = a.w[i];
      words[4 + i] = b.w[i];
    }
  }
}

// Calls body(Form<...>()) for the form of a matrix in blocks.
template <Codes kCodes, bool kHalves, bool kMinimums>
struct Form {
  static constexpr Codes kCodesKind = kCodes;
  static constexpr bool kHasHalves = kHalves, kHasMinimums = kMinimums;
  // Fused multiply-adds that a group adds to an output's sum.
  static constexpr int kTerms = kMinimums ? (kHalves ? 3 : 2) : 1;
};
template <class Body>
HEARTH_GPU void WithForm(const Matrix& w, const Body& body) {
  if (w.codes_kind == Codes::kNibbles) {
    if (w.halves) {
      if (w.minimums) {
        body(Form<Codes::kNibbles, true, true>());
      } else {
        body(Form<Codes::kNibbles, true, false>());
      }
    } else if (w.minimums) {
      body(Form<Codes::kNibbles, false, true>());
    } else {
      body(Form<Codes::kNibbles, false, false>());
    }
  } else if (w.halves) {
    body(Form<Codes::kBytes, true, false>());
  } else if (w.minimums) {
    body(Form<Codes::kBytes, false, true>());
  } else {
    body(Form<Codes::kBytes, false, false>());
  }
}

struct Term {
  float a, b;
};

// What a group adds to an output's sum, in this order: acc = fma(a, b, acc).
// dots: of the two halves, without `bias`.
template <class F>
HEARTH_GPU void TermsOf(const int (&dots)[2], const GroupScales& s,
                        const PackedScale& x, Term (&terms)[F::kTerms]) {
  if (F::kHasHalves) {
    const float first = static_cast<float>(dots[0]) * s.scale[0];
    terms[0] = {x.scale, Fma(static_cast<float>(dots[1]), s.scale[1], first)};
    if (F::kHasMinimums) {
      HEARTH_GPU_UNROLL
      for (int i = 0; i < 2; ++i) {
        // The index is below kTerms whenever this is reached.
        terms[(1 + i) % F::kTerms] = {
            -(x.scale * static_cast<float>(x.sums[i])), s.minimum[i]};
      }
    }
  } else {
    terms[0] = {static_cast<float>(dots[0] + dots[1]), x.scale * s.scale[0]};
    if (F::kHasMinimums) {
      terms[1 % F::kTerms] = {
          -(x.scale * static_cast<float>(x.sums[0] + x.sums[1])), s.minimum[0]};
    }
  }
}

}  // namespace hearth::gpu
