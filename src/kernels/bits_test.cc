// The same numbers on every processor that hearth runs on: what each table
// makes of fixed inputs is known here, from an x86-64. Other tests compare the
// tables of one machine, this one those of all.
#include <gtest/gtest.h>

#include <array>

#include "kernels/attention_inputs.h"

namespace hearth {
namespace {

using namespace kernels_testing;  // NOLINT: a test's own helpers

// FNV-1a, 64 bits.
class Print {
 public:
  void Add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) {
      value_ = (value_ ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3;
    }
  }
  void Add(std::span<const float> values) { Add(std::as_bytes(values)); }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

// From integers alone: a library's distributions may differ in the last bit.
std::vector<float> Numbers(std::size_t n, unsigned seed, int range = 2000) {
  std::mt19937 rng(seed);
  std::vector<float> values(n);
  for (float& value : values) {
    const auto steps = static_cast<int>(rng() % (2u * range + 1u)) - range;
    value = static_cast<float>(steps) / 1024.0f;
  }
  return values;
}

// Runs `make` on every table and expects the print that it has on all machines.
template <class F>
void ExpectPrint(std::uint64_t expected, const F& make) {
  for (const Kernels* kernels : AvailableKernels()) {
    Print print;
    make(*kernels, print);
    EXPECT_EQ(print.value(), expected) << kernels->isa;
  }
}

TEST(Bits, OfProductsWithBlocksAreTheSameEverywhere) {
  constexpr DType kBlocks[] = {
      DType::kQ8_0,   DType::kQ4_0,   DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
      DType::kQ2_K,   DType::kQ3_K,   DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
      DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};
  ExpectPrint(0x8b2019a01736c8e8, [&](const Kernels& k, Print& print) {
    for (const DType dtype : kBlocks) {
      const TestWeights w =
          MakeWeights(dtype, WeightLayout::kOutIn, 50, 512, 1);
      for (const int n_rows : {1, 3, 20}) {
        const auto x = Numbers(static_cast<std::size_t>(n_rows) * 512, 2);
        print.Add(RunMatmul(k, w.matrix, x, {.n_rows = n_rows}));
      }
    }
  });
}

TEST(Bits, OfProductsWithFloatsAreTheSameEverywhere) {
  ExpectPrint(0xdf98c3f379b7b928, [](const Kernels& k, Print& print) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      TestWeights w = MakeWeights(dtype, WeightLayout::kOutIn, 50, 300, 1);
      const auto values = Numbers(50 * 300, 3, 200);
      std::byte* data = w.data.data() + 2;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float v = values[i];
        if (dtype == DType::kF32) StoreLe(data + 4 * i, v);
        if (dtype == DType::kF16) StoreLe(data + 2 * i, ToF16(v).bits);
        if (dtype == DType::kBF16) StoreLe(data + 2 * i, ToBF16(v).bits);
      }
      for (const int n_rows : {1, 20}) {
        const auto x = Numbers(static_cast<std::size_t>(n_rows) * 300, 4);
        print.Add(RunMatmul(k, w.matrix, x, {.n_rows = n_rows}));
      }
    }
  });
}

TEST(Bits, OfRowsAreTheSameEverywhere) {
  constexpr std::int64_t kN = 1003;
  const auto x = Numbers(kN, 5, 9000), y = Numbers(kN, 6);
  ExpectPrint(0x579b835229dabb75, [&](const Kernels& k, Print& print) {
    std::vector<float> out(kN);
    k.rms_norm(x.data(), y.data(), 1e-6f, kN, out.data());
    print.Add(out);
    k.layer_norm(x.data(), y.data(), x.data(), 1e-5f, kN, out.data());
    print.Add(out);
    k.silu_mul(x.data(), y.data(), kN, out.data());
    print.Add(out);
    k.gelu_erf(x.data(), kN, out.data());
    print.Add(out);
    k.gelu_tanh(x.data(), kN, out.data());
    print.Add(out);
    out = x;
    k.softcap(3.0f, kN, out.data());
    print.Add(out);
    k.sigmoid_mul(y.data(), kN, out.data());
    print.Add(out);
  });
}

TEST(Bits, OfAttentionAreTheSameEverywhere) {
  constexpr int kDim = 80, kStride = 37, kRows = 9;
  const auto q = Numbers(kRows * kDim, 7, 600);
  std::vector<int> visible;
  for (int r = 0; r < kRows; ++r) visible.push_back(kStride - r);
  ExpectPrint(0x9e9ecd442e5602ea, [&](const Kernels& k, Print& print) {
    for (const KvFormat format :
         {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16, KvFormat::kInt8,
          KvFormat::kInt4}) {
      TestTile tile(format, kDim, kStride);
      for (int slot = 0; slot < kStride; ++slot) {
        const auto seed = static_cast<unsigned>(100 + 2 * slot);
        tile.Store(Numbers(kDim, seed), Numbers(kDim, seed + 1), slot);
      }
      State state(kRows, kDim);
      Attend(k, q, kDim, tile.View(k), 2, visible, &state);
      print.Add(tile.Bytes());
      print.Add(state.max);
      print.Add(state.sum);
      print.Add(state.acc);
    }
  });
}

}  // namespace
}  // namespace hearth
