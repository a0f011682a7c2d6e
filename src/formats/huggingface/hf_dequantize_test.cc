// FP8 and NVFP4 directories beside plain ones of the numbers that they stand
// for, which this test computes by the formats' definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <list>

#include "base/thread_pool.h"
#include "formats/huggingface/huggingface_testing.h"
#include "formats/huggingface/safetensors.h"
#include "model/identity.h"

namespace hearth {
namespace {

constexpr TinySpec kSpec{.layers = 1,
                         .d_model = 32,
                         .heads = 2,
                         .kv_heads = 1,
                         .d_mlp = 48,
                         .vocab = 16,
                         .context = 32};

// Bits without a pattern, the same each time.
std::uint64_t Random(std::uint64_t stream, std::uint64_t i) {
  const std::uint64_t key[] = {stream, i};
  return Checksum64(std::as_bytes(std::span(key)));
}

// 1 + 3 + 4 bits and 7 of bias, by the definition; no NaN is asked for.
double E4M3(unsigned code) {
  const int exponent = static_cast<int>(code >> 3 & 15), sign = code >> 7;
  const double mantissa = code & 7;
  const double size = exponent == 0
                          ? std::ldexp(mantissa / 8, -6)
                          : std::ldexp(1 + mantissa / 8, exponent - 7);
  return sign != 0 ? -size : size;
}

// Two checkpoints of one model: `quantised`, and `plain` with its numbers.
struct Pair {
  std::list<std::vector<std::byte>> kept;
  std::vector<SafetensorsTensor> quantised, plain;

  ByteSpan Keep(std::vector<std::byte> bytes) {
    return kept.emplace_back(std::move(bytes));
  }
  ByteSpan Floats(const std::vector<float>& values) {
    const ByteSpan bytes = std::as_bytes(std::span(values));
    return Keep({bytes.begin(), bytes.end()});
  }
  void AddPlain(const std::string& name,
                const std::vector<std::uint64_t>& shape,
                const std::vector<float>& values) {
    std::vector<std::byte> bytes;
    for (const float x : values) {
      const std::uint16_t bits = ToBF16(x).bits;
      bytes.push_back(static_cast<std::byte>(bits & 255));
      bytes.push_back(static_cast<std::byte>(bits >> 8));
    }
    plain.push_back({name, "BF16", shape, Keep(std::move(bytes))});
  }

  // Matrices of the layer become what `quantise` makes of them.
  explicit Pair(const std::function<void(Pair&, const TinyTensor&)>& quantise) {
    for (const TinyTensor& t :
         TinyTensors(kSpec, kHuggingFaceNames, true, false, true)) {
      if (t.name.ends_with("_proj.weight")) {
        quantise(*this, t);
      } else {
        AddPlain(t.name, t.shape, t.values);
        quantised.push_back(plain.back());
      }
    }
  }

  static Result<LoadedModel> Load(const std::vector<SafetensorsTensor>& tensors,
                                  const std::string& extra) {
    const TempDir dir;
    WriteTextFile(dir.path() + "/config.json", TinyHfConfig(kSpec, extra));
    HEARTH_TRY(WriteSafetensors(dir.path() + "/model.safetensors", tensors));
    return LoadHuggingFace(dir.path());
  }

  void ExpectSame(const std::string& extra) const {
    const auto got = Load(quantised, extra), want = Load(plain, "");
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_TRUE(want.ok()) << want.error().message;
    ThreadPool pool(1);
    EXPECT_EQ(ContentDigest(*got, pool), ContentDigest(*want, pool));
  }
};

// FP8 with a scale for `rows` by `columns`; 0 stands for all there are.
void ToFp8(Pair& pair, const TinyTensor& t, std::uint64_t rows,
           std::uint64_t columns, const std::string& ending,
           std::vector<std::uint64_t> scale_shape) {
  const std::uint64_t n_out = t.shape[0], n_in = t.shape[1];
  rows = rows == 0 ? n_out : rows;
  columns = columns == 0 ? n_in : columns;
  const std::uint64_t across = (n_in + columns - 1) / columns;
  const std::uint64_t down = (n_out + rows - 1) / rows;
  std::vector<float> scales, values;
  for (std::uint64_t i = 0; i < down * across; ++i) {
    scales.push_back(0.001f + 1e-6f * static_cast<float>(Random(7, i) % 999));
  }
  std::vector<std::byte> codes;
  const std::uint64_t stream = Checksum64(AsBytes(t.name));
  for (std::uint64_t i = 0; i < n_out * n_in; ++i) {
    unsigned code = Random(stream, i) & 255;
    if ((code & 127) == 127) code ^= 64;
    codes.push_back(static_cast<std::byte>(code));
    const float scale = scales[i / n_in / rows * across + i % n_in / columns];
    values.push_back(static_cast<float>(E4M3(code)) * scale);
  }
  pair.AddPlain(t.name, t.shape, values);
  if (scale_shape.empty()) scale_shape = {down, across};
  if (scale_shape == std::vector<std::uint64_t>{0}) scale_shape = {};
  pair.quantised.push_back({t.name, "F8_E4M3", t.shape, pair.Keep(codes)});
  pair.quantised.push_back(
      {t.name + ending, "F32", scale_shape, pair.Floats(scales)});
  pair.quantised.push_back({t.name.substr(0, t.name.size() - 6) + "input_scale",
                            "F32",
                            {},
                            pair.Floats({3})});
}

// NVFP4; `divides`: compressed-tensors' names, else Model Optimizer's.
void ToNvfp4(Pair& pair, const TinyTensor& t, bool divides) {
  const std::uint64_t n_out = t.shape[0], n_in = t.shape[1];
  static constexpr float kCodes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float global = divides ? 300 : 0.003f;
  std::vector<std::byte> codes(n_out * n_in / 2), scales;
  for (std::uint64_t i = 0; i < n_out * n_in / 16; ++i) {
    scales.push_back(static_cast<std::byte>(Random(9, i) % 127));
  }
  std::vector<float> values;
  for (std::uint64_t i = 0; i < n_out * n_in; ++i) {
    const unsigned code = Random(8, i) & 15;
    codes[i / 2] |= static_cast<std::byte>(i % 2 == 0 ? code : code << 4);
    const auto scale =
        static_cast<float>(E4M3(std::to_integer<unsigned>(scales[i / 16])));
    const float number = code < 8 ? kCodes[code] : -kCodes[code - 8];
    values.push_back(number * (divides ? scale / global : scale * global));
  }
  pair.AddPlain(t.name, t.shape, values);
  pair.quantised.push_back({t.name + (divides ? "_packed" : ""),
                            "U8",
                            {n_out, n_in / 2},
                            pair.Keep(codes)});
  pair.quantised.push_back(
      {t.name + "_scale", "F8_E4M3", {n_out, n_in / 16}, pair.Keep(scales)});
  pair.quantised.push_back({t.name + (divides ? "_global_scale" : "_scale_2"),
                            "F32",
                            {1},
                            pair.Floats({global})});
}

std::string Settings(const std::string& quantization) {
  return ",\"quantization_config\":{" + quantization + "}";
}

constexpr char kBlocks[] =
    R"("quant_method":"fp8","fmt":"e4m3","weight_block_size":[10,24])";

TEST(HfDequantize, Fp8InBlocksIsItsNumbers) {
  const Pair pair([](Pair& p, const TinyTensor& t) {
    ToFp8(p, t, 10, 24, "_scale_inv", {});
  });
  pair.ExpectSame(Settings(kBlocks));
}

TEST(HfDequantize, Fp8OfWholeMatricesAndOfRowsIsItsNumbers) {
  const Pair whole([](Pair& p, const TinyTensor& t) {
    ToFp8(p, t, 0, 0, "_scale_inv", {0});
  });
  whole.ExpectSame(
      Settings(R"("quant_method":"fp8","weight_block_size":null)"));
  const Pair rows(
      [](Pair& p, const TinyTensor& t) { ToFp8(p, t, 1, 0, "_scale", {}); });
  rows.ExpectSame(Settings(R"("quant_method":"fbgemm_fp8")"));
  rows.ExpectSame(
      Settings(R"("quant_method":"compressed-tensors",)"
               R"("format":"float-quantized","config_groups":{"group_0":)"
               R"({"weights":{"num_bits":8,"strategy":"channel"}}})"));
}

TEST(HfDequantize, Nvfp4IsItsNumbers) {
  const Pair packed([](Pair& p, const TinyTensor& t) { ToNvfp4(p, t, true); });
  packed.ExpectSame(
      Settings(R"("quant_method":"compressed-tensors",)"
               R"("format":"nvfp4-pack-quantized","config_groups":)"
               R"({"group_0":{"weights":{"num_bits":4}}})"));
  const Pair optimizer(
      [](Pair& p, const TinyTensor& t) { ToNvfp4(p, t, false); });
  optimizer.ExpectSame(
      Settings(R"("quant_method":"modelopt","quant_algo":"NVFP4")"));
}

TEST(HfDequantize, ScalesThatDoNotFitAreNamed) {
  const auto blocks = [](Pair& p, const TinyTensor& t) {
    ToFp8(p, t, 10, 24, "_scale_inv", {});
  };
  Pair pair(blocks);
  const auto refused = [&](const std::string& settings, const char* why) {
    const auto model = Pair::Load(pair.quantised, Settings(settings));
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, Code::kCorrupt);
    EXPECT_NE(model.error().message.find(why), std::string::npos)
        << model.error().message;
  };
  refused(R"("quant_method":"fp8","weight_block_size":[16,16])",
          "q_proj.weight_scale_inv\" [4, 2]");
  refused(R"("quant_method":"fp8")", "as quantization_config describes it");
  refused(R"("quant_method":"fp8","weight_block_size":[0,16])",
          "weight_block_size");
  std::erase_if(pair.quantised, [](const SafetensorsTensor& t) {
    return t.name.ends_with("k_proj.weight_scale_inv");
  });
  refused(kBlocks, "has no scale beside it");
}

TEST(HfDequantize, OtherSchemesAreRefusedWithTheirName) {
  const Pair pair([](Pair& p, const TinyTensor& t) { ToNvfp4(p, t, true); });
  const auto refused = [&](const std::string& settings, const char* why) {
    const auto model = Pair::Load(pair.quantised, settings);
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, Code::kUnsupported);
    for (const char* part : {why, "GGUF"}) {
      EXPECT_NE(model.error().message.find(part), std::string::npos)
          << model.error().message;
    }
  };
  refused(Settings(R"("quant_method":"gptq","bits":4)"), "gptq");
  refused(Settings(R"("quant_method":"mxfp4")"), "mxfp4");
  refused(Settings(R"("quant_method":"fp8","fmt":"e5m2")"), "e5m2");
  refused(Settings(R"("quant_method":"modelopt","quant_algo":"W4A8_AWQ")"),
          "W4A8_AWQ");
  refused(Settings(R"("quant_method":"compressed-tensors",)"
                   R"("format":"pack-quantized","config_groups":)"
                   R"({"g":{"weights":{}}})"),
          "pack-quantized");
  refused(Settings(R"("quant_method":"compressed-tensors",)"
                   R"("format":"float-quantized","config_groups":)"
                   R"({"g":{"weights":{}}},"transform_config":{"a":1})"),
          "transforms");
  // Without a word in config.json.
  refused("", "compressed-tensors");
}

TEST(HfDequantize, AFileBesideMaySayIt) {
  const Pair pair([](Pair& p, const TinyTensor& t) { ToNvfp4(p, t, false); });
  const TempDir dir;
  WriteTextFile(dir.path() + "/config.json", TinyHfConfig(kSpec, ""));
  WriteTextFile(dir.path() + "/hf_quant_config.json",
                R"({"quantization":{"quant_algo":"NVFP4","group_size":16}})");
  ASSERT_TRUE(
      WriteSafetensors(dir.path() + "/model.safetensors", pair.quantised).ok());
  const auto model = LoadHuggingFace(dir.path());
  EXPECT_TRUE(model.ok()) << model.error().message;
  WriteTextFile(dir.path() + "/hf_quant_config.json",
                R"({"quantization":{"quant_algo":"NVFP4","group_size":32}})");
  EXPECT_FALSE(LoadHuggingFace(dir.path()).ok());
}

}  // namespace
}  // namespace hearth
