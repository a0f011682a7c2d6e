// LoRA adapters: against llama.cpp, against weights into which they were
// merged, and that they change none of the equivalences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "formats/adapter/apply_adapters.h"
#include "hearth/engine.h"
#include "model/identity.h"
#include "testing/adapters.h"
#include "testing/expect_refused.h"
#include "testing/export_gguf.h"
#include "testing/family_fixture.h"
#include "testing/launch.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

const std::string kLora = kTestData + "/models/lora/";
constexpr char kConfig[] =
    R"("peft_type":"LORA","r":3,"lora_alpha":4,"bias":"none")";
constexpr double kFactor = 4.0 / 3.0;

// For the fixture kHfLlama.
std::vector<TinyPair> Pairs(std::uint64_t seed = 7) {
  return PairsOfLlama(4, 64, 16, 160, 8, 384, 3, seed);
}

LoadedModel LoadWith(const std::string& model,
                     const std::vector<std::pair<std::string, float>>& paths) {
  LoadedModel loaded = Load(model, Rounding::kExact);
  std::vector<AdapterToApply> adapters;
  for (const auto& [path, scale] : paths) {
    auto file = ReadAdapter(path);
    EXPECT_TRUE(file.ok()) << file.error().message;
    if (file.ok()) adapters.push_back({std::move(*file), scale});
  }
  const auto applied = ApplyAdapters(std::move(adapters), loaded);
  EXPECT_TRUE(applied.ok()) << applied.error().message;
  return loaded;
}

double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = std::abs(double{a[i]} - double{b[i]});
    if (!(d <= largest)) largest = d;
  }
  return largest;
}

// A fixture with F32 weights W + factor up down, added in double.
void WriteMerged(const std::string& base, const std::string& dir,
                 const std::vector<TinyPair>& pairs, double factor) {
  std::filesystem::create_directories(dir);
  std::filesystem::copy(base + "/config.json", dir + "/config.json");
  std::map<std::string, const TinyPair*> of;
  for (const TinyPair& pair : pairs) of[pair.hf_name + ".weight"] = &pair;
  const auto file = SafetensorsFile::Open(base + "/model.safetensors");
  ASSERT_TRUE(file.ok());
  std::vector<std::vector<std::byte>> bytes;
  std::vector<SafetensorsTensor> tensors;
  bytes.reserve(file->tensors().size());
  for (const SafetensorsEntry& t : file->tensors()) {
    std::vector<float> values(t.bytes.size() / 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = ToFloat(BF16{LoadLe<std::uint16_t>(t.bytes.data() + 2 * i)});
    }
    if (const auto at = of.find(t.name); at != of.end()) {
      const auto& [down, up] = std::pair{at->second->down, at->second->up};
      const std::size_t rank = down.shape[0], n_in = down.shape[1];
      for (std::size_t i = 0; i < values.size(); ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < rank; ++k) {
          sum += double{up.values[i / n_in * rank + k]} *
                 double{down.values[k * n_in + i % n_in]};
        }
        values[i] = static_cast<float>(double{values[i]} + factor * sum);
      }
      of.erase(at);
    }
    bytes.push_back(BytesOfFloats(values));
    tensors.push_back({t.name, "F32", t.shape, bytes.back()});
  }
  EXPECT_TRUE(of.empty());
  ASSERT_TRUE(WriteSafetensors(dir + "/model.safetensors", tensors).ok());
}

class Adapters : public ::testing::Test {
 protected:
  void SetUp() override {
    ids_ = ReadReference(kHfLlama).ids;
    ids_.resize(100);
    ASSERT_TRUE(WritePeft(Peft(), Pairs(), kConfig).ok());
    WriteBytes(Gguf(), GgufAdapter(Pairs(), "llama", 4, true).Build());
  }
  std::string Peft() const { return dir_.path() + "/peft"; }
  std::string Gguf() const { return dir_.path() + "/adapter.gguf"; }

  TempDir dir_;
  std::vector<std::int32_t> ids_;
};

// llama.cpp computed these: tools/make_adapter.py made the adapters. It rounds
// what it multiplies with F16 matrices to F16, which hearth does not.
TEST(AdaptersGolden, StoriesAsThePeerTellsThem) {
  const auto text = ReadTextFile(kLora + "reference.json");
  ASSERT_TRUE(text.ok());
  const auto json = ParseJson(*text, "reference");
  ASSERT_TRUE(json.ok());
  const auto prompt = (*json)["prompt"].get<std::vector<std::int32_t>>();
  ASSERT_EQ((*json)["cases"].size(), 3u);
  for (const Json& one : (*json)["cases"]) {
    std::vector<std::pair<std::string, float>> paths;
    for (const Json& a : one["adapters"]) {
      paths.emplace_back(kLora + a[0].get<std::string>(), a[1].get<float>());
    }
    const LoadedModel model = LoadWith(kStories260K, paths);
    std::vector<std::int32_t> ids = prompt;
    const auto greedy = one["greedy"].get<std::vector<std::int32_t>>();
    ids.insert(ids.end(), greedy.begin(), greedy.end());
    const std::vector<float> logits = Logits(model, ids, 512, 1);
    const auto vocab = static_cast<std::size_t>(model.config.vocab_size);
    const auto row = [&](std::size_t i) {
      return std::span(logits).subspan((prompt.size() - 1 + i) * vocab, vocab);
    };
    for (std::size_t i = 0; i < greedy.size(); ++i) {
      EXPECT_EQ(std::max_element(row(i).begin(), row(i).end()) - row(i).begin(),
                greedy[i])
          << "step " << i;
    }
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      const auto want = one["logprobs"][k].get<std::vector<float>>();
      const auto got = row(20 * k);
      double sum = 0;
      for (const float x : got) sum += std::exp(double{x});
      for (std::size_t v = 0; v < vocab; ++v) {
        EXPECT_NEAR(double{got[v]} - std::log(sum), want[v], 3e-3);
      }
    }
  }
}

TEST_F(Adapters, GiveTheLogitsOfMergedWeights) {
  const std::vector<float> base =
      Logits(Load(kHfLlama, Rounding::kExact), ids_, 512, 1);
  for (const float scale : {1.0f, -0.5f}) {
    const std::string merged = dir_.path() + "/m" + std::to_string(scale);
    WriteMerged(kHfLlama, merged, Pairs(), kFactor * double{scale});
    const std::vector<float> want =
        Logits(Load(merged, Rounding::kExact), ids_, 512, 1);
    const std::vector<float> got =
        Logits(LoadWith(kHfLlama, {{Peft(), scale}}), ids_, 512, 1);
    EXPECT_LT(Difference(got, want), 1e-3);
    EXPECT_GT(Difference(got, base), 0.5);
  }
}

// Delta nets and gated attention: every linear layer that they have.
TEST_F(Adapters, OfHybridsGiveTheLogitsOfMergedWeights) {
  const std::string base = kTestData + "/models/hf/qwen3_5_long";
  std::vector<TinyPair> pairs;
  const auto add = [&](const std::string& name, int n_out, int n_in) {
    pairs.push_back(MakePair("model.layers." + name, "", n_out, n_in, 3));
  };
  for (const char* layer : {"0.", "2."}) {
    const std::string net = layer + std::string("linear_attn.");
    add(net + "in_proj_qkv", 128, 64);
    add(net + "in_proj_z", 64, 64);
    add(net + "in_proj_b", 4, 64);
    add(net + "in_proj_a", 4, 64);
    add(net + "out_proj", 64, 64);
  }
  add("3.self_attn.q_proj", 256, 64);
  add("3.self_attn.k_proj", 64, 64);
  add("3.self_attn.v_proj", 64, 64);
  add("3.self_attn.o_proj", 64, 128);
  add("3.mlp.gate_proj", 160, 64);
  add("3.mlp.down_proj", 64, 160);
  const std::string peft = dir_.path() + "/hybrid";
  const std::string merged = dir_.path() + "/merged";
  ASSERT_TRUE(WritePeft(peft, pairs, kConfig).ok());
  WriteMerged(base, merged, pairs, kFactor);
  const LoadedModel model = LoadWith(base, {{peft, 1.0f}});
  const std::vector<float> got = Logits(model, ids_, 512, 1);
  EXPECT_LT(
      Difference(got, Logits(Load(merged, Rounding::kExact), ids_, 512, 1)),
      2e-3);
  EXPECT_GT(Difference(got, Logits(Load(base, Rounding::kExact), ids_, 512, 1)),
            0.5);
  EXPECT_EQ(Logits(model, ids_, 7, 2), got);
  // GGUF has their value heads in another order.
  const std::string gguf = dir_.path() + "/hybrid.gguf";
  ASSERT_TRUE(ExportGguf(Load(base, Rounding::kExact), gguf).ok());
  LoadedModel tiled = Load(gguf, Rounding::kExact);
  std::vector<AdapterToApply> adapters;
  adapters.push_back({*ReadAdapter(peft), 1});
  ExpectRefused(ApplyAdapters(std::move(adapters), tiled), Code::kUnsupported,
                "in another order");
}

// The rows of queries and keys are ordered in two ways.
TEST_F(Adapters, BothFormsGoWithBothFormsOfAModel) {
  const std::string gguf = dir_.path() + "/model.gguf";
  const LoadedModel base = Load(kHfLlama, Rounding::kExact);
  ASSERT_TRUE(ExportGguf(base, gguf).ok());
  const std::vector<float> want =
      Logits(LoadWith(kHfLlama, {{Peft(), 1.0f}}), ids_, 512, 1);
  EXPECT_EQ(Logits(LoadWith(kHfLlama, {{Gguf(), 1.0f}}), ids_, 512, 1), want);
  const std::vector<float> in_gguf =
      Logits(LoadWith(gguf, {{Gguf(), 1.0f}}), ids_, 512, 1);
  EXPECT_LT(Difference(in_gguf, want), 1e-3);
  EXPECT_EQ(Logits(LoadWith(gguf, {{Peft(), 1.0f}}), ids_, 512, 1), in_gguf);
}

TEST_F(Adapters, RowsAreTheSameBitsInAnyStep) {
  const std::string second = dir_.path() + "/second";
  ASSERT_TRUE(WritePeft(second, Pairs(8), kConfig).ok());
  const LoadedModel model =
      LoadWith(kHfLlama, {{Peft(), 1.0f}, {second, 0.25f}});
  const std::vector<float> whole = Logits(model, ids_, 512, 1);
  for (const int step : {1, 7, 8, 9, 33}) {
    EXPECT_EQ(Logits(model, ids_, step, 2), whole) << step;
  }
}

TEST_F(Adapters, TheirOrderChangesNothing) {
  const std::string second = dir_.path() + "/second";
  ASSERT_TRUE(WritePeft(second, Pairs(8), kConfig).ok());
  const LoadedModel a = LoadWith(kHfLlama, {{Peft(), 1.0f}, {second, 0.25f}});
  const LoadedModel b = LoadWith(kHfLlama, {{second, 0.25f}, {Peft(), 1.0f}});
  EXPECT_EQ(Logits(a, ids_, 512, 1), Logits(b, ids_, 512, 1));
  const Digest content{};
  EXPECT_EQ(AdaptedContent(content, a.adapters),
            AdaptedContent(content, b.adapters));
}

TEST_F(Adapters, AreOfTheIdentity) {
  const Digest content{};
  const auto with = [&](const std::string& path, float scale) {
    return AdaptedContent(content,
                          LoadWith(kHfLlama, {{path, scale}}).adapters);
  };
  EXPECT_EQ(AdaptedContent(content, {}), content);
  EXPECT_EQ(with(Peft(), 1), with(Peft(), 1));
  EXPECT_NE(with(Peft(), 1), content);
  EXPECT_NE(with(Peft(), 1), with(Peft(), 0.5f));
  auto pairs = Pairs();
  pairs[5].up.values[11] += 0.001f;
  const std::string other = dir_.path() + "/other";
  ASSERT_TRUE(WritePeft(other, pairs, kConfig).ok());
  EXPECT_NE(with(Peft(), 1), with(other, 1));
  ASSERT_TRUE(WritePeft(other, Pairs(), R"("r":3,"lora_alpha":5)").ok());
  EXPECT_NE(with(Peft(), 1), with(other, 1));
}

// What the store keeps of a prompt with one adapter is not found with another.
TEST_F(Adapters, StoredPromptsAreThoseOfTheirAdapter) {
  const auto ask = [&](const std::vector<AdapterChoice>& adapters,
                       const std::string& store) {
    EngineOptions options = WithDir(dir_.path() + store);
    options.adapters = adapters;
    return MustAsk(options, Ids(150));
  };
  const AdapterChoice one{kLora + "lora1.gguf", 1};
  const AdapterChoice two{kLora + "lora2.gguf", 1};
  const Answer plain = ask({}, "/s");
  const Answer cold = ask({one}, "/s");
  EXPECT_EQ(plain.sync.reused_tokens, 0);
  EXPECT_EQ(cold.sync.reused_tokens, 0);
  EXPECT_NE(cold.text, plain.text);
  const Answer hot = ask({one}, "/s");
  EXPECT_EQ(hot.sync.reused_tokens, 149);
  EXPECT_EQ(hot.text, cold.text);
  EXPECT_EQ(ask({{one.path, 0.5f}}, "/s").sync.reused_tokens, 0);
  EXPECT_EQ(ask({two, one}, "/s").sync.reused_tokens, 0);
  EXPECT_EQ(ask({one, two}, "/s").sync.reused_tokens, 149);
  EXPECT_EQ(ask({}, "/s").sync.reused_tokens, 149);
}

// Restored, forked, beside others and guessed ahead.
TEST_F(Adapters, SessionsArriveAtTheSameBits) {
  EngineOptions options = WithDir(dir_.path() + "/s");
  options.adapters = {{kLora + "lora1.gguf", 1.5f}};
  const std::vector<std::int32_t> ids = Ids(150);
  const auto answer = [](Session& session) {
    auto report = session.Generate({.n_tokens_max = 24,
                                    .ignore_eos = true,
                                    .sampling = {.temperature = 0}},
                                   nullptr);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? report->token_ids : std::vector<std::int32_t>{};
  };
  const auto last = [](Session& session) {
    const auto logits = session.logits();
    return std::vector<float>(logits.begin(), logits.end());
  };
  std::vector<float> want;
  std::vector<std::int32_t> text;
  for (const bool restored : {false, true}) {
    const auto engine = Engine::Open(options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    EXPECT_EQ((*engine)->info().adapters.size(), 1u);
    const auto session = *(*engine)->NewSession();
    const auto sync = session->Sync(ids, nullptr);
    ASSERT_TRUE(sync.ok());
    EXPECT_EQ(sync->reused_tokens > 0, restored);
    if (want.empty()) want = last(*session);
    EXPECT_EQ(last(*session), want);
    const auto fork = *session->Fork();
    const std::vector<std::int32_t> here = answer(*session);
    if (text.empty()) text = here;
    EXPECT_EQ(here, text);
    EXPECT_EQ(answer(*fork), text);
    ASSERT_TRUE((*engine)->DrainSaves().ok());
  }
  options.prompt_cache_dir.clear();
  options.draft = "prompt-lookup";
  const auto engine = *Engine::Open(options);
  const auto a = *engine->NewSession(), b = *engine->NewSession();
  ASSERT_TRUE(a->Sync(ids, nullptr).ok());
  EXPECT_EQ(answer(*a), text);
  // One step for two sessions.
  ASSERT_TRUE(b->Sync(std::span(ids).first(70), nullptr).ok());
  const auto c = *engine->NewSession();
  ASSERT_TRUE(c->Sync(std::span(ids).first(149), nullptr).ok());
  ASSERT_TRUE(engine
                  ->Step(std::vector<SessionStep>{
                      {b.get(), std::span(ids).subspan(70, 30)},
                      {c.get(), std::span(ids).subspan(149, 1)}})
                  .ok());
  EXPECT_EQ(last(*c), want);
}

}  // namespace
}  // namespace hearth
