#include "tensor/codebook/spelled_block.h"

#include <bit>

#include "base/bytes.h"
#include "base/check.h"
#include "tensor/codebook/points.h"
#include "tensor/half.h"

namespace hearth {
namespace {

// Eight values at once, one a byte; no sum below carries into the next byte.
constexpr std::uint64_t kOnes = 0x0101010101010101u;

unsigned Byte(const std::byte* p) { return std::to_integer<unsigned>(*p); }
unsigned Half16(const std::byte* p) { return LoadLe<std::uint16_t>(p); }
float Half(const std::byte* p) {
  return ToFloat(F16{LoadLe<std::uint16_t>(p)});
}
float Float(unsigned n) { return static_cast<float>(n); }

// One in byte i where bit i is set.
std::uint64_t SpreadBits(unsigned bits) {
  const std::uint64_t each = (bits * kOnes) & 0x8040201008040201u;
  return ((each + 0x7f * kOnes) >> 7) & kOnes;
}

// Magnitudes of at most 63, negative where a bit of `signs` is set, as codes.
std::uint64_t WithSigns(std::uint64_t magnitudes, unsigned signs) {
  const std::uint64_t negative = SpreadBits(signs);
  // (64 + m) ^ 127 is 63 - m.
  return ((magnitudes + kSpelledBias * kOnes) ^ (negative * 0x7f)) + negative;
}

// Seven signs are stored, the eighth makes their number even.
unsigned EvenSigns(unsigned seven) {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1) << 7;
}

// `at`: of 32.
void PutEight(SpelledBlock& out, int at, std::uint64_t codes) {
  StoreLe(reinterpret_cast<std::byte*>(out.codes) + 8 * at, codes);
}
// Of 32 values from group `g` of 8 on.
void PutScales(SpelledBlock& out, int g, float first, float second) {
  out.scales[2 * g] = first;
  out.scales[2 * g + 1] = second;
}

// One block each. `g` is a group of 32 values, `l` eight of these.

void Iq2Xxs(const std::byte* p, SpelledBlock& out) {
  const EightPoints& points = CodebookEights();
  const float d = Half(p) * 0.125f;
  for (int g = 0; g < 8; ++g) {
    const std::byte* indices = p + 2 + 8 * g;
    const auto rest = LoadLe<std::uint32_t>(indices + 4);
    const float scale = d * Float(2 * (rest >> 28) + 1);
    PutScales(out, g, scale, scale);
    for (int l = 0; l < 4; ++l) {
      PutEight(out, 4 * g + l,
               WithSigns(points.iq2_xxs[Byte(indices + l)],
                         EvenSigns((rest >> (7 * l)) & 127)));
    }
  }
}

// The scales of a byte: its low half's, then its high half's.
void PutScalePair(SpelledBlock& out, int g, float d, unsigned byte) {
  PutScales(out, g, d * Float(2 * (byte & 15) + 1),
            d * Float(2 * (byte >> 4) + 1));
}

void Iq2Xs(const std::byte* p, SpelledBlock& out) {
  const EightPoints& points = CodebookEights();
  const float d = Half(p) * 0.125f;
  for (int g = 0; g < 8; ++g) {
    PutScalePair(out, g, d, Byte(p + 66 + g));
    for (int l = 0; l < 4; ++l) {
      const unsigned code = Half16(p + 2 + 8 * g + 2 * l);
      PutEight(out, 4 * g + l,
               WithSigns(points.iq2_xs[code & 511], EvenSigns(code >> 9)));
    }
  }
}

void Iq2S(const std::byte* p, SpelledBlock& out) {
  const EightPoints& points = CodebookEights();
  const float d = Half(p) * 0.125f;
  for (int g = 0; g < 8; ++g) {
    PutScalePair(out, g, d, Byte(p + 74 + g));
    const unsigned high = Byte(p + 66 + g);
    for (int l = 0; l < 4; ++l) {
      const unsigned index = Byte(p + 2 + 4 * g + l) | ((high >> (2 * l)) & 3)
                                                           << 8;
      PutEight(out, 4 * g + l,
               WithSigns(points.iq2_s[index], Byte(p + 34 + 4 * g + l)));
    }
  }
}

std::uint64_t Pair(const std::uint32_t* fours, unsigned first,
                   unsigned second) {
  return fours[first] | std::uint64_t{fours[second]} << 32;
}

void Iq3Xxs(const std::byte* p, SpelledBlock& out) {
  const FourPoints& points = CodebookFours();
  const float d = Half(p) * 0.25f;
  for (int g = 0; g < 8; ++g) {
    const std::byte* indices = p + 2 + 8 * g;
    const auto rest = LoadLe<std::uint32_t>(p + 66 + 4 * g);
    const float scale = d * Float(2 * (rest >> 28) + 1);
    PutScales(out, g, scale, scale);
    for (int l = 0; l < 4; ++l) {
      PutEight(out, 4 * g + l,
               WithSigns(Pair(points.iq3_xxs, Byte(indices + 2 * l),
                              Byte(indices + 2 * l + 1)),
                         EvenSigns((rest >> (7 * l)) & 127)));
    }
  }
}

void Iq3S(const std::byte* p, SpelledBlock& out) {
  const FourPoints& points = CodebookFours();
  const float d = Half(p);
  for (int g = 0; g < 8; ++g) {
    const std::byte* indices = p + 2 + 8 * g;
    const unsigned high = Byte(p + 66 + g);
    const unsigned nibble = (Byte(p + 106 + g / 2) >> (g % 2 * 4)) & 15;
    const float scale = d * Float(2 * nibble + 1);
    PutScales(out, g, scale, scale);
    for (int l = 0; l < 4; ++l) {
      const auto index = [&](int i) {
        return Byte(indices + i) | ((high >> i) & 1) << 8;
      };
      PutEight(out, 4 * g + l,
               WithSigns(Pair(points.iq3_s, index(2 * l), index(2 * l + 1)),
                         Byte(p + 74 + 4 * g + l)));
    }
  }
}

// Values x of -1, 0, 1, all moved by an eighth up or down: 8 x + 1 or 8 x - 1.
std::uint64_t Moved(std::uint64_t eight_x, bool down) {
  return down ? eight_x - kOnes : eight_x + kOnes;
}

void Iq1S(const std::byte* p, SpelledBlock& out) {
  const EightPoints& points = CodebookEights();
  const float d = Half(p) * 0.125f;
  for (int g = 0; g < 8; ++g) {
    const unsigned high = Half16(p + 34 + 2 * g);
    const float scale = d * Float(2 * ((high >> 12) & 7) + 1);
    PutScales(out, g, scale, scale);
    for (int l = 0; l < 4; ++l) {
      const unsigned index = Byte(p + 2 + 4 * g + l) | ((high >> (3 * l)) & 7)
                                                           << 8;
      PutEight(out, 4 * g + l, Moved(points.iq1[index], (high >> 15) != 0));
    }
  }
}

void Iq1M(const std::byte* p, SpelledBlock& out) {
  const EightPoints& points = CodebookEights();
  // The block's scale is in the upper quarters of four numbers.
  unsigned bits = 0;
  for (int i = 0; i < 4; ++i) bits |= Half16(p + 48 + 2 * i) >> 12 << (4 * i);
  const float d = ToFloat(F16{static_cast<std::uint16_t>(bits)}) * 0.125f;
  for (int g = 0; g < 8; ++g) {
    const unsigned small = Half16(p + 48 + g / 2 * 2) >> (g % 2 * 6);
    PutScales(out, g, d * Float(2 * (small & 7) + 1),
              d * Float(2 * ((small >> 3) & 7) + 1));
    for (int l = 0; l < 4; ++l) {
      const unsigned nibble = Byte(p + 32 + 2 * g + l / 2) >> (l % 2 * 4) & 15;
      const unsigned index = Byte(p + 4 * g + l) | (nibble & 7) << 8;
      PutEight(out, 4 * g + l, Moved(points.iq1[index], (nibble & 8) != 0));
    }
  }
}

void PutOneScale(SpelledBlock& out, float d) {
  for (float& scale : out.scales) scale = d;
}

// A byte holds a number below 1 in base 3; digit n of it behind the point.
std::uint8_t Digit(const std::byte* p, int n) {
  constexpr unsigned kPowers[] = {1, 3, 9, 27, 81};
  const unsigned rest = (Byte(p) * kPowers[n]) & 255;
  return static_cast<std::uint8_t>(kSpelledBias - 1 + (rest * 3 >> 8));
}

void Tq1(const std::byte* p, SpelledBlock& out) {
  PutOneScale(out, Half(p + 52));
  std::uint8_t* code = out.codes;
  // Runs of so many bytes, and digits taken of each.
  const auto run = [&code](const std::byte* from, int n_bytes, int n_digits) {
    for (int n = 0; n < n_digits; ++n) {
      for (int i = 0; i < n_bytes; ++i) *code++ = Digit(from + i, n);
    }
  };
  run(p, 32, 5);
  run(p + 32, 16, 5);
  run(p + 48, 4, 4);
}

void Tq2(const std::byte* p, SpelledBlock& out) {
  PutOneScale(out, Half(p + 64));
  for (int i = 0; i < 256; ++i) {
    const unsigned pair = Byte(p + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2);
    out.codes[i] = static_cast<std::uint8_t>(kSpelledBias - 1 + (pair & 3));
  }
}

using SpellFunction = void (*)(const std::byte*, SpelledBlock&);

SpellFunction FunctionFor(DType dtype) {
  switch (dtype) {
    case DType::kIQ2_XXS:
      return Iq2Xxs;
    case DType::kIQ2_XS:
      return Iq2Xs;
    case DType::kIQ2_S:
      return Iq2S;
    case DType::kIQ3_XXS:
      return Iq3Xxs;
    case DType::kIQ3_S:
      return Iq3S;
    case DType::kIQ1_S:
      return Iq1S;
    case DType::kIQ1_M:
      return Iq1M;
    case DType::kTQ1_0:
      return Tq1;
    case DType::kTQ2_0:
      return Tq2;
    default:
      return nullptr;
  }
}

}  // namespace

bool IsSpelledOut(DType dtype) { return FunctionFor(dtype) != nullptr; }

void SpellOut(DType dtype, const std::byte* block, SpelledBlock& out) {
  const SpellFunction spell = FunctionFor(dtype);
  HEARTH_CHECK(spell != nullptr);
  spell(block, out);
}

}  // namespace hearth
