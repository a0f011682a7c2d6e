// gpt_oss in the form in which it is published.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/huggingface/safetensors.h"
#include "kernels/kernels.h"
#include "tensor/half.h"
#include "testing/export_gguf.h"
#include "testing/family_fixture.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

// gpt_oss as it is published: experts in MXFP4. The fixture's are rounded to
// that format and written in both forms.
struct PackedGptOss {
  TempDir dir;
  // Every expert tensor's rounded values, [expert][n_out][n_in], by name.
  std::map<std::string, std::vector<float>> values;

  // One block in Hugging Face's form: the scale of its largest value, the
  // nearest codes.
  static void Pack(const float* x, std::byte* codes, std::byte* scale,
                   float* rounded) {
    float peak = 0;
    for (int i = 0; i < 32; ++i) peak = std::max(peak, std::abs(x[i]));
    const int exponent = peak > 0 ? std::ilogb(peak) - 2 : -20;
    *scale = static_cast<std::byte>(exponent + 127);
    static constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int i = 0; i < 32; ++i) {
      const float wanted = std::ldexp(std::abs(x[i]), -exponent);
      int best = 0;
      for (int k = 1; k < 8; ++k) {
        if (std::abs(kValues[k] - wanted) < std::abs(kValues[best] - wanted)) {
          best = k;
        }
      }
      const bool negative = x[i] < 0;
      rounded[i] =
          std::ldexp(negative ? -kValues[best] : kValues[best], exponent);
      codes[i / 2] |=
          static_cast<std::byte>((best | negative << 3) << (i % 2 * 4));
    }
  }

  // `from`: a directory with plain experts [expert][n_in][n_out].
  explicit PackedGptOss(const std::string& from) {
    const auto file = SafetensorsFile::Open(from + "/model.safetensors");
    EXPECT_TRUE(file.ok()) << file.error().message;
    std::vector<SafetensorsTensor> out;
    std::list<std::vector<std::byte>> kept;
    for (const SafetensorsEntry& t : file->tensors()) {
      if (!t.name.ends_with("_proj") || t.shape.size() != 3) {
        out.push_back({t.name, t.type, t.shape, t.bytes});
        continue;
      }
      const std::size_t n_in = t.shape[1], n_out = t.shape[2];
      const std::size_t n_blocks = t.shape[0] * n_out * n_in / 32;
      std::vector<float>& rounded = values[t.name];
      rounded.resize(32 * n_blocks);
      auto& codes = kept.emplace_back(16 * n_blocks);
      auto& scales = kept.emplace_back(n_blocks);
      for (std::size_t b = 0; b < n_blocks; ++b) {
        float x[32];
        for (std::size_t i = 0; i < 32; ++i) {
          const std::size_t at = 32 * b + i;
          const std::size_t row = at / n_in;  // expert * n_out + output
          const std::size_t place =
              row / n_out * n_in * n_out + at % n_in * n_out + row % n_out;
          x[i] =
              ToFloat(BF16{LoadLe<std::uint16_t>(t.bytes.data() + 2 * place)});
        }
        Pack(x, codes.data() + 16 * b, &scales[b], rounded.data() + 32 * b);
      }
      out.push_back({t.name + "_blocks",
                     "U8",
                     {t.shape[0], n_out, n_in / 32, 16},
                     codes});
      out.push_back(
          {t.name + "_scales", "U8", {t.shape[0], n_out, n_in / 32}, scales});
    }
    EXPECT_TRUE(WriteSafetensors(dir.path() + "/model.safetensors", out, {},
                                 {.replace = true})
                    .ok());
    std::string config = *ReadTextFile(from + "/config.json");
    config.insert(config.find('{') + 1,
                  "\"quantization_config\":{\"quant_method\":\"mxfp4\"},");
    std::ofstream(dir.path() + "/config.json") << config;
  }
};

TEST(FamiliesInMxfp4, GptOssExpertsAreReadFromHuggingFaceAndGguf) {
  const std::string dir = DirectoryOf("gpt_oss");
  if (dir.empty()) GTEST_SKIP() << "no such fixture here";
  const PackedGptOss packed(dir);
  const LoadedModel model = Load(packed.dir.path(), Rounding::kBf16);
  ASSERT_EQ(model.weights.layers.size(), 4u);
  // Weights: exactly those that were packed.
  LoadedModel plain = Load(dir, Rounding::kBf16);
  std::list<std::vector<float>> kept;
  for (std::size_t i = 0; i < model.weights.layers.size(); ++i) {
    const std::string prefix =
        "model.layers." + std::to_string(i) + ".mlp.experts.";
    const auto& experts = model.weights.layers[i].experts;
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const auto check = [&](const WeightMatrix& w, WeightMatrix& other,
                             const std::string& name) {
        EXPECT_EQ(w.dtype, DType::kMXFP4);
        const auto size = static_cast<std::size_t>(w.n_out * w.n_in);
        std::vector<float>& got = kept.emplace_back(size);
        for (std::int64_t row = 0; row < w.n_out; ++row) {
          ActiveKernels().dequantize_row(w, row, got.data() + row * w.n_in);
        }
        const auto want =
            std::span(packed.values.at(prefix + name)).subspan(e * size, size);
        EXPECT_TRUE(std::ranges::equal(got, want)) << prefix << name;
        other = w;  // the same weights as floats
        other.dtype = DType::kF32;
        other.data = reinterpret_cast<const std::byte*>(got.data());
      };
      MlpWeights& floats = plain.weights.layers[i].experts[e];
      check(experts[e].gate_up.w, floats.gate_up.w, "gate_up_proj");
      check(experts[e].down.w, floats.down.w, "down_proj");
    }
  }
  // Logits: those of the float weights, but for activations in eight bits,
  // which may turn a router's near tie.
  const std::vector<std::int32_t> ids = ReadReference(dir).ids;
  const std::vector<float> want = Logits(plain, ids, 512, 1);
  const std::vector<float> got = Logits(model, ids, 512, 1);
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error +=
        std::pow(static_cast<double>(got[i]) - static_cast<double>(want[i]), 2);
    size += std::pow(static_cast<double>(want[i]), 2);
  }
  EXPECT_LT(std::sqrt(error / size), 0.1);
  // GGUF: the same blocks, the same bits.
  const std::string path = packed.dir.path() + "/model.gguf";
  ASSERT_TRUE(ExportGguf(model, path).ok());
  const LoadedModel gguf = Load(path, Rounding::kBf16);
  ASSERT_FALSE(gguf.weights.layers.empty());
  EXPECT_EQ(gguf.weights.layers[0].experts[0].down.w.dtype, DType::kMXFP4);
  EXPECT_EQ(Logits(gguf, ids, 512, 1), got);
}

}  // namespace
}  // namespace hearth
