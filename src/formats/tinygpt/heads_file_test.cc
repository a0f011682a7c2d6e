#include "formats/tinygpt/heads_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "testing/heads_file.h"

namespace hearth {
namespace {

ModelConfig Base() {
  ModelConfig c;
  c.n_layers = 2;
  c.d_model = 3;
  c.n_heads = 1;
  c.vocab_size = 4;
  c.context_length = 16;
  return c;
}

float Value(const std::string& name, std::uint64_t i) {
  return static_cast<float>(name.size() % 7) * 0.1f -
         static_cast<float>(i * 5 % 11) * 0.07f;
}

std::vector<std::byte> Heads(bool medusa) {
  return MakeHeads(Base(), medusa, 2, 5, Value);
}

// `from` replaced by `to` of the same length, somewhere in the header.
std::vector<std::byte> Edited(std::vector<std::byte> bytes,
                              const std::string& from, const std::string& to) {
  const auto at = AsText(bytes).find(from);
  EXPECT_NE(at, std::string_view::npos);
  EXPECT_EQ(from.size(), to.size());
  std::memcpy(bytes.data() + at, to.data(), to.size());
  return bytes;
}

TEST(HeadsFile, MatricesAndVectorsLieInTheOrderOfTheKind) {
  const auto medusa_bytes = Heads(true);
  const auto medusa = ParseDraftHeads(medusa_bytes, "m", Base());
  ASSERT_TRUE(medusa.ok()) << medusa.error().message;
  ASSERT_EQ(medusa->medusa.size(), 2u);
  EXPECT_EQ(medusa->medusa[1].out.w.n_out, 4);
  EXPECT_EQ(LoadLe<float>(medusa->medusa[1].out.w.data + 4 * 7),
            Value("heads.1.out.weight", 7));
  EXPECT_EQ(medusa->medusa[0].res.bias[2], Value("heads.0.res.bias", 2));
  const auto eagle_bytes = Heads(false);
  const auto eagle = ParseDraftHeads(eagle_bytes, "e", Base());
  ASSERT_TRUE(eagle.ok()) << eagle.error().message;
  EXPECT_EQ(eagle->eagle.fc1.w.n_in, 6);
  EXPECT_EQ(eagle->eagle.fc2.w.n_in, 5);
  EXPECT_EQ(eagle->eagle.norm.bias[1], Value("norm.bias", 1));
}

TEST(HeadsFile, HeadsOfAnotherModelAreRefusedByField) {
  const struct {
    const char *from, *to, *says;
  } cases[] = {{"\"baseLayers\":2", "\"baseLayers\":3", "baseLayers"},
               {"\"vocabSize\":4", "\"vocabSize\":5", "vocabSize"},
               {"\"baseCtx\":16", "\"baseCtx\":17", "baseCtx"}};
  for (const auto& c : cases) {
    const auto bytes = Edited(Heads(true), c.from, c.to);
    const auto heads = ParseDraftHeads(bytes, "m", Base());
    ASSERT_FALSE(heads.ok());
    EXPECT_EQ(heads.error().code, Code::kIncompatible);
    EXPECT_NE(heads.error().message.find(c.says), std::string::npos);
  }
}

TEST(HeadsFile, DamageIsNamed) {
  const struct {
    const char *from, *to, *says;
  } cases[] = {{"TGMH", "TGMX", "not a .heads file"},
               {"medusa", "hydra!", "hydra!"},
               {"\"numHeads\":2", "\"numHeads\":0", "numHeads"},
               {"\"numHeads\":2", "\"numHeads\":3", "no entry"},
               {"\"numHeads\":2", "\"numHeads\":1", "beyond"},
               {"heads.1.res.bias", "heads.1.res.bia_", "heads.1.res.bia_"},
               {"\"shape\":[3,3]", "\"shape\":[3,2]", "heads.0.res.weight"},
               {"\"entries\":[", "\"entires\":[", "entries"}};
  for (const auto& c : cases) {
    const auto bytes = Edited(Heads(true), c.from, c.to);
    const auto heads = ParseDraftHeads(bytes, "m", Base());
    ASSERT_FALSE(heads.ok()) << c.to;
    EXPECT_NE(heads.error().message.find(c.says), std::string::npos)
        << heads.error().message;
  }
  for (const bool medusa : {false, true}) {
    auto bytes = Heads(medusa);
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(ParseDraftHeads(bytes, "m", Base()).ok());
    bytes.pop_back();
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      EXPECT_FALSE(
          ParseDraftHeads(std::span(bytes).first(n), "m", Base()).ok());
    }
  }
}

// The formulas, written out.
double Silu(double x) { return x / (1 + std::exp(-x)); }

std::vector<double> Times(const std::string& name, std::size_t n_out,
                          const std::vector<double>& x) {
  std::vector<double> y(n_out, 0.0);
  for (std::size_t o = 0; o < n_out; ++o) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[o] += static_cast<double>(Value(name, o * x.size() + i)) * x[i];
    }
  }
  return y;
}

std::int32_t Best(const std::vector<double>& x) {
  return static_cast<std::int32_t>(std::max_element(x.begin(), x.end()) -
                                   x.begin());
}

constexpr float kEmbedding[] = {0.5f, -1, 2, 1,    0.25f, -0.5f,
                                -2,   0,  1, 0.1f, 0.2f,  0.3f};
const std::vector<double> kHidden = {0.7, -1.2, 0.4};

std::vector<std::int32_t> Guess(const std::vector<std::byte>& file,
                                std::int32_t token, int n) {
  LoadedModel base;
  base.config = Base();
  base.weights.token_embedding = {
      .n_out = 4,
      .n_in = 3,
      .data = reinterpret_cast<const std::byte*>(kEmbedding)};
  const auto heads = ParseDraftHeads(file, "heads", base.config);
  EXPECT_TRUE(heads.ok());
  std::vector<std::int32_t> got;
  if (!heads.ok()) return got;
  ThreadPool pool(1);
  const std::vector<float> hidden(kHidden.begin(), kHidden.end());
  EXPECT_TRUE(
      DraftHeadsRunner(*heads, base, pool).Guess(hidden, token, n, got).ok());
  return got;
}

TEST(DraftHeads, MedusaGuessesTheFormulasArgmax) {
  std::vector<std::int32_t> want;
  for (const std::string k : {"0", "1"}) {
    auto state = Times("heads." + k + ".res.weight", 3, kHidden);
    for (std::size_t i = 0; i < 3; ++i) {
      state[i] = Silu(state[i] + static_cast<double>(
                                     Value("heads." + k + ".res.bias", i))) +
                 kHidden[i];
    }
    want.push_back(Best(Times("heads." + k + ".out.weight", 4, state)));
  }
  EXPECT_EQ(Guess(Heads(true), 1, 9), want);
}

TEST(DraftHeads, EagleGuessesTheFormulasArgmax) {
  std::vector<std::int32_t> want;
  std::vector<double> state = kHidden;
  std::int32_t token = 1;
  for (int step = 0; step < 3; ++step) {
    std::vector<double> input = state;
    for (std::size_t i = 0; i < 3; ++i) {
      input.push_back(static_cast<double>(
          kEmbedding[static_cast<std::size_t>(token) * 3 + i]));
    }
    auto inner = Times("fc1.weight", 5, input);
    for (double& x : inner) x = Silu(x);
    auto next = Times("fc2.weight", 3, inner);
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      next[i] = Silu(next[i]) + state[i];
      mean += next[i] / 3;
    }
    for (const double x : next) variance += (x - mean) * (x - mean) / 3;
    for (std::size_t i = 0; i < 3; ++i) {
      state[i] = (next[i] - mean) / std::sqrt(variance + 1e-5) *
                     static_cast<double>(Value("norm.weight", i)) +
                 static_cast<double>(Value("norm.bias", i));
    }
    token = Best(Times("out.weight", 4, state));
    want.push_back(token);
  }
  EXPECT_EQ(Guess(Heads(false), 1, 3), want);
}

}  // namespace
}  // namespace hearth
