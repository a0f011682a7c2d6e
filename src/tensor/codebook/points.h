// The codebooks of GGUF's IQ1, IQ2 and IQ3 formats: the vectors of eight or
// four magnitudes that an index of a block stands for.
#pragma once

#include <cstdint>
#include <span>

namespace hearth {

// Eight bytes each, the first value in the lowest byte.
struct EightPoints {
  // 8 x + 64 for values x of -1, 0 and 1.
  std::uint64_t iq1[2048];
  // Magnitudes of 8, 25 and 43.
  std::uint64_t iq2_xxs[256], iq2_xs[512], iq2_s[1024];
};
// Four bytes each.
struct FourPoints {
  std::uint32_t iq3_xxs[256];  // magnitudes of 4, 12, ... 52 and 62
  std::uint32_t iq3_s[512];    // magnitudes of 1, 3, ... 15
};

// Made at the first call, which any thread may do.
const EightPoints& CodebookEights();
const FourPoints& CodebookFours();

}  // namespace hearth
