// Blocks for multi-token prediction: their arithmetic against one in double
// precision, and that guessing with them changes no text.
#include "formats/mtp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convert/gguf/gguf_export.h"
#include "hearth/engine.h"
#include "testing/adapters.h"
#include "testing/expect_refused.h"
#include "testing/family_fixture.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

// Of the fixture, whose layers the block's is like.
const std::string kBase = kTestData + "/models/hf/qwen3_5_long";
constexpr int kWidth = 64, kHeads = 4, kKvHeads = 2, kHeadDim = 32, kMlp = 160;
constexpr int kVocab = 384, kRotary = 8;

using Numbers = std::vector<double>;

std::vector<TinyTensor> BlockTensors() {
  const std::string layer = "mtp.layers.0.";
  const auto matrix = [](const std::string& name, std::uint64_t n_out,
                         std::uint64_t n_in) {
    return MakeTensor(name + ".weight", {n_out, n_in}, 3);
  };
  std::vector<TinyTensor> tensors = {
      matrix("mtp.fc", kWidth, 2 * kWidth),
      matrix(layer + "self_attn.q_proj", 2 * kHeads * kHeadDim, kWidth),
      matrix(layer + "self_attn.k_proj", kKvHeads * kHeadDim, kWidth),
      matrix(layer + "self_attn.v_proj", kKvHeads * kHeadDim, kWidth),
      matrix(layer + "self_attn.o_proj", kWidth, kHeads * kHeadDim),
      matrix(layer + "mlp.gate_proj", kMlp, kWidth),
      matrix(layer + "mlp.up_proj", kMlp, kWidth),
      matrix(layer + "mlp.down_proj", kWidth, kMlp)};
  for (const auto& [name, n] : std::vector<std::pair<std::string, int>>{
           {"mtp.pre_fc_norm_embedding", kWidth},
           {"mtp.pre_fc_norm_hidden", kWidth},
           {"mtp.norm", kWidth},
           {layer + "input_layernorm", kWidth},
           {layer + "post_attention_layernorm", kWidth},
           {layer + "self_attn.q_norm", kHeadDim},
           {layer + "self_attn.k_norm", kHeadDim}}) {
    tensors.push_back(
        MakeTensor(name + ".weight", {static_cast<std::uint64_t>(n)}, 3));
    for (float& w : tensors.back().values) w -= 1;  // 1 + w counts
  }
  return tensors;
}

// The fixture with these tensors, too.
void WriteWith(const std::string& dir, const std::vector<TinyTensor>& block) {
  std::filesystem::copy(kBase, dir, std::filesystem::copy_options::recursive);
  const auto file = SafetensorsFile::Open(kBase + "/model.safetensors");
  ASSERT_TRUE(file.ok());
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& t : file->tensors()) {
    tensors.push_back({t.name, t.type, t.shape, t.bytes});
  }
  std::vector<std::vector<std::byte>> bytes;
  bytes.reserve(block.size());
  for (const TinyTensor& t : block) {
    bytes.push_back(BytesOfFloats(t.values));
    tensors.push_back({t.name, "F32", t.shape, bytes.back()});
  }
  std::filesystem::remove(dir + "/model.safetensors");
  ASSERT_TRUE(WriteSafetensors(dir + "/model.safetensors", tensors).ok());
}

// The block in double precision, all pairs with all before them.
class InDouble {
 public:
  InDouble(const std::vector<TinyTensor>& block, const LoadedModel& base) {
    for (const TinyTensor& t : block) {
      weights_[t.name] = Numbers(t.values.begin(), t.values.end());
    }
    const WeightMatrix& w = base.weights.token_embedding;
    EXPECT_EQ(w.dtype, DType::kBF16);
    for (std::size_t i = 0; i < kVocab * kWidth; ++i) {
      embedding_.push_back(
          double{ToFloat(BF16{LoadLe<std::uint16_t>(w.data + 2 * i)})});
    }
  }

  // Gives the logits; `hidden` becomes the next one.
  Numbers Step(Numbers& hidden, std::int32_t token) {
    const auto row = embedding_.begin() + std::int64_t{token} * kWidth;
    Numbers pair = Norm({row, row + kWidth}, "mtp.pre_fc_norm_embedding");
    const Numbers h = Norm(hidden, "mtp.pre_fc_norm_hidden");
    pair.insert(pair.end(), h.begin(), h.end());
    Numbers x = Times("mtp.fc", pair);
    Add(Attend(Norm(x, kLayer + "input_layernorm")), x);
    const Numbers in = Norm(x, kLayer + "post_attention_layernorm");
    const Numbers gate = Times(kLayer + "mlp.gate_proj", in);
    Numbers up = Times(kLayer + "mlp.up_proj", in);
    for (std::size_t i = 0; i < up.size(); ++i) {
      up[i] *= gate[i] / (1 + std::exp(-gate[i]));
    }
    Add(Times(kLayer + "mlp.down_proj", up), x);
    hidden = Norm(x, "mtp.norm");
    return Product(embedding_, hidden);
  }

 private:
  const std::string kLayer = "mtp.layers.0.";

  static void Add(const Numbers& from, Numbers& to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }
  static Numbers Product(const Numbers& w, const Numbers& x) {
    Numbers y(w.size() / x.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      y[i / x.size()] += w[i] * x[i % x.size()];
    }
    return y;
  }
  Numbers Times(const std::string& name, const Numbers& x) const {
    return Product(weights_.at(name + ".weight"), x);
  }
  Numbers Norm(Numbers x, const std::string& name) const {
    const Numbers& w = weights_.at(name + ".weight");
    double sum = 0;
    for (const double v : x) sum += v * v;
    const double scale = 1 / std::sqrt(sum / double(x.size()) + 1e-6);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= scale * (1 + w[i]);
    return x;
  }
  Numbers Head(const Numbers& all, std::size_t at, const std::string& norm,
               double position) const {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(at);
    Numbers head = Norm({from, from + kHeadDim}, norm);
    for (std::size_t i = 0; i < kRotary / 2; ++i) {
      const double angle = position * std::pow(1e7, -2.0 * double(i) / kRotary);
      const double a = head[i], b = head[i + kRotary / 2];
      head[i] = a * std::cos(angle) - b * std::sin(angle);
      head[i + kRotary / 2] = b * std::cos(angle) + a * std::sin(angle);
    }
    return head;
  }
  Numbers Attend(const Numbers& in) {
    const Numbers both = Times(kLayer + "self_attn.q_proj", in);
    const Numbers k = Times(kLayer + "self_attn.k_proj", in);
    values_.push_back(Times(kLayer + "self_attn.v_proj", in));
    const double position = double(keys_.size());
    keys_.emplace_back();
    for (std::size_t h = 0; h < kKvHeads; ++h) {
      keys_.back().push_back(
          Head(k, h * kHeadDim, kLayer + "self_attn.k_norm", position));
    }
    Numbers out;
    for (std::size_t h = 0; h < kHeads; ++h) {
      const std::size_t of = h / (kHeads / kKvHeads);
      const Numbers q =
          Head(both, 2 * h * kHeadDim, kLayer + "self_attn.q_norm", position);
      Numbers scores;
      double sum = 0;
      for (const auto& heads : keys_) {
        double dot = 0;
        for (std::size_t i = 0; i < q.size(); ++i) dot += q[i] * heads[of][i];
        scores.push_back(std::exp(dot / std::sqrt(double(kHeadDim))));
        sum += scores.back();
      }
      for (std::size_t i = 0; i < kHeadDim; ++i) {
        double value = 0;
        for (std::size_t t = 0; t < scores.size(); ++t) {
          value += scores[t] / sum * values_[t][of * kHeadDim + i];
        }
        const double gate = both[(2 * h + 1) * kHeadDim + i];
        out.push_back(value / (1 + std::exp(-gate)));
      }
    }
    return Times(kLayer + "self_attn.o_proj", out);
  }

  std::map<std::string, Numbers> weights_;
  Numbers embedding_;
  std::vector<std::vector<Numbers>> keys_;  // [position][head]
  std::vector<Numbers> values_;             // [position]
};

// Guesses from given hidden states and from the block's own.
struct Chain {
  std::vector<std::vector<float>> logits;
  std::vector<std::int32_t> guesses;
};

Chain RunChain(const LoadedModel& base, const std::string& path,
               InDouble* reference) {
  Chain chain;
  auto block = LoadMtp(path);
  EXPECT_TRUE(block.ok()) << block.error().message;
  if (!block.ok()) return chain;
  ThreadPool pool(2);
  MtpRunner runner(std::move(*block), base, pool);
  const KvSpec spec =
      SpecOf(runner.config(), KvFormat::kF32, KvFormat::kF32, 16);
  const auto kv = MakeConcatSequence(spec, 16);
  std::vector<float> hidden;
  Numbers exact;
  std::int32_t token = 17;
  for (std::uint64_t i = 0; i < 8; ++i) {
    if (i < 3) {
      hidden = MakeTensor("hidden", {kWidth}, i).values;
      for (float& h : hidden) h *= 5;
      exact.assign(hidden.begin(), hidden.end());
      token = static_cast<std::int32_t>(17 + 40 * i);
    }
    const auto guess = runner.Guess(*kv, hidden, token);
    EXPECT_TRUE(guess.ok()) << guess.error().message;
    chain.logits.emplace_back(runner.logits().begin(), runner.logits().end());
    if (reference != nullptr) {
      const Numbers want = reference->Step(exact, token);
      double spread = 0;
      for (std::size_t v = 0; v < want.size(); ++v) {
        EXPECT_NEAR(double{chain.logits.back()[v]}, want[v], 1e-3);
        spread = std::max(spread, std::abs(want[v]));
      }
      EXPECT_GT(spread, 1);
    }
    hidden.assign(runner.hidden().begin(), runner.hidden().end());
    token = *guess;
    chain.guesses.push_back(token);
  }
  return chain;
}

class Mtp : public ::testing::Test {
 protected:
  std::string Path(const char* name) const { return dir_.path() + "/" + name; }
  static std::unique_ptr<Engine> Open(const std::string& path,
                                      const std::string& draft) {
    auto engine =
        Engine::Open({.model_path = path, .n_threads = 1, .draft = draft});
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return engine.ok() ? std::move(*engine) : nullptr;
  }
  static GenerateReport Answer(Session& session,
                               const SamplingOptions& sampling) {
    auto report = session.Generate(
        {.n_tokens_max = 48, .ignore_eos = true, .sampling = sampling},
        nullptr);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? std::move(*report) : GenerateReport{};
  }
  static std::vector<std::int32_t> Prompt(int n) {
    std::vector<std::int32_t> ids = ReadReference(kBase).ids;
    ids.resize(static_cast<std::size_t>(n));
    return ids;
  }
  TempDir dir_;
};

TEST_F(Mtp, TheBlockIsItsFormula) {
  const auto block = BlockTensors();
  WriteWith(Path("m"), block);
  const LoadedModel base = Load(Path("m"), Rounding::kExact);
  InDouble reference(block, base);
  RunChain(base, Path("m"), &reference);
}

TEST_F(Mtp, GgufHasTheSameBlock) {
  const auto block = BlockTensors();
  WriteWith(Path("m"), block);
  const LoadedModel base = Load(Path("m"), Rounding::kExact);
  auto metadata = GgufModelMetadata(base);
  auto tensors = GgufModelTensors(base);
  ASSERT_TRUE(metadata.ok() && tensors.ok());
  for (GgufMetadata& m : *metadata) {
    if (m.key == "qwen35.block_count") m.value = std::uint32_t{5};
  }
  metadata->push_back({"qwen35.nextn_predict_layers", std::uint32_t{1}});
  const std::map<std::string, std::string> names = {
      {"mtp.fc", "nextn.eh_proj"},
      {"mtp.pre_fc_norm_embedding", "nextn.enorm"},
      {"mtp.pre_fc_norm_hidden", "nextn.hnorm"},
      {"mtp.norm", "nextn.shared_head_norm"},
      {"mtp.layers.0.self_attn.q_proj", "attn_q"},
      {"mtp.layers.0.self_attn.k_proj", "attn_k"},
      {"mtp.layers.0.self_attn.v_proj", "attn_v"},
      {"mtp.layers.0.self_attn.o_proj", "attn_output"},
      {"mtp.layers.0.self_attn.q_norm", "attn_q_norm"},
      {"mtp.layers.0.self_attn.k_norm", "attn_k_norm"},
      {"mtp.layers.0.input_layernorm", "attn_norm"},
      {"mtp.layers.0.post_attention_layernorm", "post_attention_norm"},
      {"mtp.layers.0.mlp.gate_proj", "ffn_gate"},
      {"mtp.layers.0.mlp.up_proj", "ffn_up"},
      {"mtp.layers.0.mlp.down_proj", "ffn_down"}};
  for (const TinyTensor& t : block) {
    const std::string stem = t.name.substr(0, t.name.size() - 7);
    std::vector<float> values = t.values;
    if (t.shape.size() == 1) {
      for (float& w : values) w += 1.0f;
    }
    tensors->push_back({"blk.4." + names.at(stem) + ".weight", DType::kF32,
                        t.shape,
                        [bytes = BytesOfFloats(values)](const GgufSink& sink) {
                          return sink(bytes);
                        }});
  }
  ASSERT_TRUE(WriteGguf(Path("m.gguf"), *metadata, *tensors).ok());
  const LoadedModel in_gguf = Load(Path("m.gguf"), Rounding::kExact);
  EXPECT_EQ(in_gguf.config.n_layers, 4);
  const Chain want = RunChain(base, Path("m"), nullptr);
  const Chain got = RunChain(in_gguf, Path("m.gguf"), nullptr);
  EXPECT_EQ(got.logits, want.logits);
  EXPECT_EQ(got.guesses, want.guesses);
}

TEST_F(Mtp, TheTextIsThatWithoutGuesses) {
  WriteWith(Path("m"), BlockTensors());
  const auto plain = Open(Path("m"), ""), guessing = Open(Path("m"), "mtp");
  ASSERT_NE(guessing, nullptr);
  const auto a = *plain->NewSession(), b = *guessing->NewSession();
  for (const int n : {40, 90, 60}) {
    for (const double temperature : {0.0, 0.8}) {
      ASSERT_TRUE(a->Sync(Prompt(n), nullptr).ok());
      ASSERT_TRUE(b->Sync(Prompt(n), nullptr).ok());
      const auto fork = *b->Fork();
      const SamplingOptions sampling{.temperature = temperature, .seed = 5};
      const auto want = Answer(*a, sampling).token_ids;
      const GenerateReport got = Answer(*b, sampling);
      EXPECT_EQ(got.token_ids, want);
      EXPECT_GT(got.speculation.drafted, 0);
      EXPECT_GT(got.speculation.kv_physical_bytes, 0u);
      EXPECT_EQ(Answer(*fork, sampling).token_ids, want);
    }
  }
}

// A block that guesses the newest token once more, and a text that repeats it.
TEST_F(Mtp, RightGuessesAreTaken) {
  auto block = BlockTensors();
  for (TinyTensor& t : block) {
    std::fill(t.values.begin(), t.values.end(), 0.0f);
    if (t.name != "mtp.fc.weight") continue;
    for (std::size_t i = 0; i < kWidth; ++i) t.values[i * 2 * kWidth + i] = 1;
  }
  WriteWith(Path("m"), block);
  const auto plain = Open(Path("m"), ""), guessing = Open(Path("m"), "mtp");
  ASSERT_NE(guessing, nullptr);
  const auto a = *plain->NewSession(), b = *guessing->NewSession();
  ASSERT_TRUE(a->Sync(Prompt(40), nullptr).ok());
  ASSERT_TRUE(b->Sync(Prompt(40), nullptr).ok());
  const SamplingOptions sampling{.temperature = 0,
                                 .logit_bias = {{77, 1000.0}}};
  const GenerateReport got = Answer(*b, sampling);
  EXPECT_EQ(got.token_ids, Answer(*a, sampling).token_ids);
  EXPECT_EQ(got.token_ids, std::vector<std::int32_t>(48, 77));
  EXPECT_GT(got.speculation.accepted, 30);
  EXPECT_EQ(got.speculation.accepted, got.speculation.drafted);
}

TEST_F(Mtp, ModelsWithoutOneAreRefusedWithTheRemedy) {
  for (const std::string& path : {kBase, kHfLlama, kStories260K}) {
    const auto engine =
        Engine::Open({.model_path = path, .n_threads = 1, .draft = "mtp"});
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.error().code, Code::kUnsupported);
    EXPECT_NE(engine.error().message.find("no block"), std::string::npos)
        << engine.error().message;
    EXPECT_NE(engine.error().message.find("prompt lookup"), std::string::npos);
  }
  auto several = BlockTensors();
  several.push_back(MakeTensor("mtp.layers.1.mlp.up_proj.weight", {4, 4}, 1));
  WriteWith(Path("m"), several);
  ExpectRefused(LoadMtp(Path("m")), Code::kUnsupported, "mtp.layers.1.");
}

}  // namespace
}  // namespace hearth
