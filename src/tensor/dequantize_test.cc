#include "tensor/dequantize.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "hearth_test_paths.h"
#include "tensor/half.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr DType kBlockTypes[] = {
    DType::kQ8_0,    DType::kQ4_0,    DType::kQ4_1,   DType::kQ5_0,
    DType::kQ5_1,    DType::kQ2_K,    DType::kQ3_K,   DType::kQ4_K,
    DType::kQ5_K,    DType::kQ6_K,    DType::kIQ4_NL, DType::kIQ4_XS,
    DType::kMXFP4,   DType::kIQ2_XXS, DType::kIQ2_XS, DType::kIQ2_S,
    DType::kIQ3_XXS, DType::kIQ3_S,   DType::kIQ1_S,  DType::kIQ1_M,
    DType::kTQ1_0,   DType::kTQ2_0};

// "Q4_K-blk.0.attn_q.weight.safetensors" is of type Q4_K.
const DType* TypeOf(const std::string& name) {
  for (const DType& dtype : kBlockTypes) {
    const std::string prefix = std::string(InfoOf(dtype).name) + "-";
    if (name.rfind(prefix, 0) == 0) return &dtype;
  }
  return nullptr;
}

// The bytes of one tensor of a safetensors file, which is trusted here.
std::string TensorBytes(const std::string& file, const char* name) {
  const auto n =
      LoadLe<std::uint64_t>(reinterpret_cast<const std::byte*>(file.data()));
  const Json header = Json::parse(file.substr(8, n));
  const Json& offsets = header.at(name).at("data_offsets");
  const auto begin = offsets.at(0).get<std::size_t>();
  const auto end = offsets.at(1).get<std::size_t>();
  return file.substr(8 + n + begin, end - begin);
}

// `raw` rows and the `values` that another implementation read from them.
void ExpectSameBits(DType dtype, const fs::path& path) {
  const auto file = ReadTextFile(path.string());
  ASSERT_TRUE(file.ok()) << path;
  const std::string raw = TensorBytes(*file, "raw");
  const std::string values = TensorBytes(*file, "values");
  const std::size_t n = values.size() / sizeof(float);
  ASSERT_EQ(BytesOf(dtype, n), raw.size()) << path;
  std::vector<float> out(n);
  DequantizeBlocks(dtype, reinterpret_cast<const std::byte*>(raw.data()),
                   static_cast<std::int64_t>(n), out.data());
  EXPECT_EQ(std::memcmp(out.data(), values.data(), values.size()), 0) << path;
}

std::set<DType> CheckDirectory(const std::string& directory) {
  std::set<DType> seen;
  if (!fs::is_directory(directory)) return seen;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    const DType* dtype = TypeOf(name);
    if (dtype == nullptr || entry.path().extension() != ".safetensors") {
      continue;
    }
    ExpectSameBits(*dtype, entry.path());
    seen.insert(*dtype);
  }
  return seen;
}

TEST(Dequantize, EqualsTheReferenceBitForBit) {
  const auto seen = CheckDirectory(HEARTH_TEST_DATA "/gguf");
  for (const DType dtype : kBlockTypes) {
    EXPECT_TRUE(seen.count(dtype)) << InfoOf(dtype).name;
  }
}

TEST(Dequantize, EqualsTheReferenceBitForBitOnMoreRows) {
  if (CheckDirectory(HEARTH_SHARED "/fixtures/gguf").empty()) {
    GTEST_SKIP() << "no shared fixtures here";
  }
}

// docs/formats/tensor-types.md, "Example".
TEST(Dequantize, TheExampleOfTheFormatPage) {
  std::vector<std::byte> block(144);
  StoreLe(block.data(), ToF16(0.5f).bits);
  StoreLe(block.data() + 2, ToF16(0.25f).bits);
  block[4 + 0] = std::byte{0x43};   // scale 0: 3; high bits of scale 4: 1
  block[4 + 4] = std::byte{0x82};   // minimum 0: 2; high bits of minimum 4: 2
  block[4 + 8] = std::byte{0x5a};   // scale 4: 16 + 10; minimum 4: 32 + 5
  block[16 + 1] = std::byte{0xe7};  // codes of values 1 and 33
  block[80] = std::byte{0x09};      // codes of values 128 and 160
  std::vector<float> out(256);
  DequantizeBlocks(DType::kQ4_K, block.data(), 256, out.data());
  EXPECT_EQ(out[0], -0.5f);
  EXPECT_EQ(out[1], 1.5f * 7 - 0.5f);
  EXPECT_EQ(out[33], 0.0f);
  EXPECT_EQ(out[128], 13.0f * 9 - 9.25f);
  EXPECT_EQ(out[160], 0.0f);
}

TEST(Dequantize, MxfpScalesReachFromSubnormalToHuge) {
  std::vector<std::byte> block(17);
  block[1] = std::byte{1};  // one half in the format's terms
  float out[32];
  for (const auto& [exponent, expected] : {std::pair{0, 0x1p-128f},
                                           {1, 0x1p-127f},
                                           {2, 0x1p-126f},
                                           {128, 1.0f},
                                           {255, 0x1p127f}}) {
    block[0] = static_cast<std::byte>(exponent);
    DequantizeBlocks(DType::kMXFP4, block.data(), 32, out);
    EXPECT_EQ(out[0], expected) << exponent;
  }
}

}  // namespace
}  // namespace hearth
