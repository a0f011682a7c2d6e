// Every family against a reference that hearth had no part in: logits that
// transformers computed (models/hf) or a double-precision forward in numpy
// (models/made, tools/make_family_models.py); from Hugging Face's form and after
// conversion to GGUF.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "cache/kv_sequence.h"
#include "kernels/kernels.h"
#include "model/forward.h"
#include "model/io/gguf_export.h"
#include "model/io/hf_export.h"
#include "model/io/safetensors.h"
#include "model/loader.h"
#include "tensor/half.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

// How the reference rounded its rotary frequencies.
enum class Rounding { kExact, kBf16, kF16 };

struct Fixture {
  const char* name;
  Rounding rounding;
  double tolerance;
};

// In the repository, or else where the whole collection lies.
std::string DirectoryOf(const std::string& name) {
  for (const std::string& root :
       {kTestData + "/models/hf/", kTestData + "/models/made/",
        std::string(HEARTH_SHARED "/fixtures/hf/")}) {
    if (std::filesystem::exists(root + name + "/reference.safetensors")) {
      return root + name;
    }
  }
  return "";
}

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const char* name) {
  const SafetensorsEntry* entry = file.Find(name);
  EXPECT_NE(entry, nullptr) << name;
  if (entry == nullptr) return {};
  std::vector<T> values(entry->bytes.size() / sizeof(T));
  std::memcpy(values.data(), entry->bytes.data(), entry->bytes.size());
  return values;
}

struct Reference {
  std::vector<std::int32_t> ids, greedy;
  std::vector<float> logits, last_logits;
};

Reference ReadReference(const std::string& dir) {
  auto file = SafetensorsFile::Open(dir + "/reference.safetensors");
  EXPECT_TRUE(file.ok()) << file.error().message;
  return {Values<std::int32_t>(*file, "input_ids"),
          Values<std::int32_t>(*file, "greedy"),
          Values<float>(*file, "logits"), Values<float>(*file, "last_logits")};
}

// As the engine prepares a model: the context decides, then the rounding.
LoadedModel Load(const std::string& path, Rounding rounding) {
  auto model = LoadModel(path);
  EXPECT_TRUE(model.ok()) << model.error().message;
  if (!model.ok()) return {};
  ModelConfig& config = model->config;
  config.rope.UseForContext(config.context_length);
  for (RopeConfig* rope : {&config.rope, &config.local_rope}) {
    for (float& f : rope->inv_freq) {
      if (rounding == Rounding::kBf16) f = ToFloat(ToBF16(f));
      if (rounding == Rounding::kF16) f = ToFloat(ToF16(f));
    }
  }
  return std::move(*model);
}

// Logits of all tokens, computed in steps of at most `step`.
std::vector<float> Logits(const LoadedModel& model,
                          const std::vector<std::int32_t>& ids, int step,
                          int threads) {
  ThreadPool pool(threads);
  Forward forward(model, pool);
  const KvSpec spec{.n_kv_layers = model.config.n_layers,
                    .n_kv_heads = model.config.n_kv_heads,
                    .head_dim = model.config.head_dim,
                    .block_tokens = 16};
  const auto sequence =
      MakeConcatSequence(spec, static_cast<int>(ids.size()));
  const auto vocab = static_cast<std::size_t>(model.config.vocab_size);
  std::vector<float> logits(ids.size() * vocab);
  for (std::size_t at = 0; at < ids.size();) {
    const std::size_t n =
        std::min(ids.size() - at, static_cast<std::size_t>(step));
    const auto done =
        forward.Step(std::span(ids).subspan(at, n), *sequence, LogitRows::kAll,
                     logits.data() + at * vocab);
    EXPECT_TRUE(done.ok()) << done.error().message;
    at += n;
  }
  return logits;
}

double LargestDifference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d =
        std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= largest)) largest = d;  // a NaN is the largest of all
  }
  return largest;
}

// How far the best of `row` is above the second.
float Lead(std::span<const float> row) {
  std::vector<float> sorted(row.begin(), row.end());
  std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(),
                    std::greater<>());
  return sorted[0] - sorted[1];
}

void CheckAgainst(const Reference& reference, const LoadedModel& model,
                  double tolerance) {
  ASSERT_FALSE(model.weights.layers.empty());
  // Along the reference's own continuation, so that one near tie does not make
  // all that follows incomparable.
  std::vector<std::int32_t> ids = reference.ids;
  ids.insert(ids.end(), reference.greedy.begin(), reference.greedy.end());
  const std::vector<float> logits = Logits(model, ids, 512, 1);
  const std::span<const float> all(logits);
  EXPECT_LT(LargestDifference(all.first(reference.logits.size()),
                              reference.logits),
            tolerance);
  const auto vocab = static_cast<std::size_t>(model.config.vocab_size);
  for (std::size_t i = 0; i < reference.greedy.size(); ++i) {
    const auto row = all.subspan((reference.ids.size() + i - 1) * vocab, vocab);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    if (best != reference.greedy[i]) {
      EXPECT_LT(Lead(row), tolerance) << "greedy step " << i;
    }
  }
  EXPECT_LT(LargestDifference(all.last(vocab), reference.last_logits),
            tolerance);
}

class Families : public ::testing::TestWithParam<Fixture> {
 protected:
  void SetUp() override {
    dir_ = DirectoryOf(GetParam().name);
    if (dir_.empty()) GTEST_SKIP() << "no such fixture here";
  }
  std::string dir_;
};

TEST_P(Families, EqualsTheReference) {
  CheckAgainst(ReadReference(dir_), Load(dir_, GetParam().rounding),
               GetParam().tolerance);
}

TEST_P(Families, EqualsTheReferenceAfterConversionToGguf) {
  const TempDir temp;
  const std::string path = temp.path() + "/model.gguf";
  const auto model = LoadModel(dir_);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto written = ExportGguf(*model, {}, path);
  ASSERT_TRUE(written.ok()) << written.error().message;
  const LoadedModel gguf = Load(path, GetParam().rounding);
  CheckAgainst(ReadReference(dir_), gguf, GetParam().tolerance);

  // Once more, from GGUF to GGUF: nothing is left to change.
  const std::string again = temp.path() + "/again.gguf";
  ASSERT_TRUE(ExportGguf(*LoadModel(path), {}, again).ok());
  const auto first = MappedFile::Open(path), second = MappedFile::Open(again);
  EXPECT_TRUE(std::ranges::equal(first->bytes(), second->bytes()));
}

// What hearth writes as a Hugging Face directory.
void WriteDirectory(const LoadedModel& model, const std::string& dir) {
  const auto description = DescribeForHf(model);
  ASSERT_TRUE(description.ok()) << description.error().message;
  std::filesystem::create_directories(dir);
  std::ofstream(dir + "/config.json") << description->json;
  const auto written =
      WriteHfTensors(model, *description, dir + "/model.safetensors");
  ASSERT_TRUE(written.ok()) << written.error().message;
}

TEST_P(Families, IsTheSameAfterConversionToHuggingFace) {
  const TempDir temp;
  const auto model = LoadModel(dir_);
  ASSERT_TRUE(model.ok());
  const std::vector<std::int32_t> ids = ReadReference(dir_).ids;
  const std::vector<float> want =
      Logits(Load(dir_, GetParam().rounding), ids, 512, 1);
  WriteDirectory(*model, temp.path() + "/direct");
  if (HasFatalFailure()) return;
  EXPECT_EQ(Logits(Load(temp.path() + "/direct", GetParam().rounding), ids, 512,
                   1),
            want);
  const std::string gguf = temp.path() + "/model.gguf";
  ASSERT_TRUE(ExportGguf(*model, {}, gguf).ok());
  const auto exported = LoadModel(gguf);
  ASSERT_TRUE(exported.ok()) << exported.error().message;
  WriteDirectory(*exported, temp.path() + "/back");
  if (HasFatalFailure()) return;
  const std::vector<float> back =
      Logits(Load(temp.path() + "/back", GetParam().rounding), ids, 512, 1);
  EXPECT_LT(LargestDifference(back, want), 1e-5);
}

TEST_P(Families, StepsAndThreadsDoNotMatter) {
  const LoadedModel model = Load(dir_, GetParam().rounding);
  const std::vector<std::int32_t> ids = ReadReference(dir_).ids;
  const std::vector<float> whole = Logits(model, ids, 512, 1);
  for (const int step : {37, 1}) {
    for (const int threads : {1, 3}) {
      const std::vector<float> cut = Logits(model, ids, step, threads);
      ASSERT_EQ(std::memcmp(whole.data(), cut.data(),
                            whole.size() * sizeof(float)),
                0)
          << "steps of " << step << ", threads: " << threads;
    }
  }
}

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
      rounded[i] = std::ldexp(negative ? -kValues[best] : kValues[best], exponent);
      codes[i / 2] |= static_cast<std::byte>((best | negative << 3) << (i % 2 * 4));
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
          const std::size_t place = row / n_out * n_in * n_out +
                                    at % n_in * n_out + row % n_out;
          x[i] = ToFloat(BF16{LoadLe<std::uint16_t>(t.bytes.data() + 2 * place)});
        }
        Pack(x, codes.data() + 16 * b, &scales[b], rounded.data() + 32 * b);
      }
      out.push_back({t.name + "_blocks", "U8",
                     {t.shape[0], n_out, n_in / 32, 16}, codes});
      out.push_back({t.name + "_scales", "U8", {t.shape[0], n_out, n_in / 32},
                     scales});
    }
    EXPECT_TRUE(WriteSafetensors(dir.path() + "/model.safetensors", out).ok());
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
        const auto want = std::span(packed.values.at(prefix + name))
                              .subspan(e * size, size);
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
    error += std::pow(static_cast<double>(got[i]) - static_cast<double>(want[i]), 2);
    size += std::pow(static_cast<double>(want[i]), 2);
  }
  EXPECT_LT(std::sqrt(error / size), 0.1);
  // GGUF: the same blocks, the same bits.
  const std::string path = packed.dir.path() + "/model.gguf";
  ASSERT_TRUE(ExportGguf(model, {}, path).ok());
  const LoadedModel gguf = Load(path, Rounding::kBf16);
  ASSERT_FALSE(gguf.weights.layers.empty());
  EXPECT_EQ(gguf.weights.layers[0].experts[0].down.w.dtype, DType::kMXFP4);
  EXPECT_EQ(Logits(gguf, ids, 512, 1), got);
}

// Beyond one attention segment of 512 tokens; the window hides whole segments.
TEST(FamiliesInALongContext, WindowsAndSinksAreTheSameHoweverItWasCut) {
  for (const char* name : {"mistral", "gpt_oss", "gemma3"}) {
    const LoadedModel model = Load(DirectoryOf(name), Rounding::kExact);
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 900; ++i) ids.push_back(i * 7919 % 384);
    const std::vector<float> whole = Logits(model, ids, 512, 1);
    for (const int step : {300, 45}) {
      const std::vector<float> cut = Logits(model, ids, step, 3);
      ASSERT_EQ(std::memcmp(whole.data(), cut.data(),
                            whole.size() * sizeof(float)),
                0)
          << name << ", steps of " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Families,
    ::testing::Values(Fixture{"llama", Rounding::kBf16, 2e-3},
                      Fixture{"mistral", Rounding::kBf16, 2e-3},
                      Fixture{"qwen2", Rounding::kBf16, 2e-3},
                      Fixture{"qwen3", Rounding::kBf16, 2e-3},
                      Fixture{"qwen3_moe", Rounding::kBf16, 5e-3},
                      Fixture{"gemma3", Rounding::kExact, 5e-3},
                      Fixture{"phi3", Rounding::kF16, 2e-3},
                      Fixture{"smollm3", Rounding::kBf16, 2e-3},
                      Fixture{"gpt2", Rounding::kExact, 2e-3},
                      Fixture{"gpt_oss", Rounding::kBf16, 5e-3},
                      Fixture{"gemma2", Rounding::kExact, 1e-4},
                      Fixture{"olmo2", Rounding::kExact, 1e-4},
                      Fixture{"granite", Rounding::kExact, 1e-4},
                      Fixture{"llama_yarn", Rounding::kExact, 1e-4},
                      Fixture{"phi3_longrope", Rounding::kExact, 1e-4}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace hearth
