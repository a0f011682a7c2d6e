#include "tensor/codebook/points.h"

#include <cstddef>

#include "tensor/codebook/members.h"

namespace hearth {
namespace {

bool IsMember(std::span<const std::uint64_t> members, std::size_t candidate) {
  return (members[candidate / 64] >> (candidate % 64) & 1) != 0;
}

// Candidates are the numbers of eight digits in base 3 that `step` divides,
// rising; digit i, the lowest first, is value i. With a step of 2 these are the
// ones with an even sum of digits, since powers of three are odd.
void FillEights(std::span<const std::uint64_t> members, unsigned step,
                const std::uint8_t (&values)[3], std::span<std::uint64_t> out) {
  constexpr unsigned kNumbers = 6561;  // 3^8
  std::size_t n = 0;
  for (unsigned number = 0; number < kNumbers; number += step) {
    if (!IsMember(members, number / step)) continue;
    std::uint64_t point = 0;
    unsigned rest = number;
    for (int i = 0; i < 8; ++i) {
      point |= std::uint64_t{values[rest % 3]} << (8 * i);
      rest /= 3;
    }
    out[n++] = point;
  }
}

// Candidates are all numbers of four digits in base 8.
void FillFours(std::span<const std::uint64_t> members,
               const std::uint8_t (&values)[8], std::span<std::uint32_t> out) {
  std::size_t n = 0;
  for (unsigned number = 0; number < 4096; ++number) {
    if (!IsMember(members, number)) continue;
    std::uint32_t point = 0;
    for (int i = 0; i < 4; ++i) {
      point |= std::uint32_t{values[(number >> (3 * i)) & 7]} << (8 * i);
    }
    out[n++] = point;
  }
}

EightPoints MakeEights() {
  constexpr std::uint8_t kShifted[3] = {56, 64, 72};
  constexpr std::uint8_t kMagnitudes[3] = {8, 25, 43};
  EightPoints points = {};
  FillEights(kIq1Members, 1, kShifted, points.iq1);
  FillEights(kIq2XxsMembers, 2, kMagnitudes, points.iq2_xxs);
  FillEights(kIq2XsMembers, 2, kMagnitudes, points.iq2_xs);
  FillEights(kIq2SMembers, 2, kMagnitudes, points.iq2_s);
  return points;
}

FourPoints MakeFours() {
  constexpr std::uint8_t kXxs[8] = {4, 12, 20, 28, 36, 44, 52, 62};
  constexpr std::uint8_t kS[8] = {1, 3, 5, 7, 9, 11, 13, 15};
  FourPoints points = {};
  FillFours(kIq3XxsMembers, kXxs, points.iq3_xxs);
  FillFours(kIq3SMembers, kS, points.iq3_s);
  return points;
}

}  // namespace

const EightPoints& CodebookEights() {
  static const EightPoints points = MakeEights();
  return points;
}

const FourPoints& CodebookFours() {
  static const FourPoints points = MakeFours();
  return points;
}

}  // namespace hearth
