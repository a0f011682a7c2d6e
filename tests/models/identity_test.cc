#include "model/identity.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/loader.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

LoadedModel Load(const std::vector<std::byte>& bytes) {
  auto model = LoadModelFromMemory(bytes, "m");
  EXPECT_TRUE(model.ok()) << model.error().message;
  return std::move(*model);
}

TEST(ContentDigest, DoesNotDependOnTheNumberOfThreads) {
  // Beyond one chunk, so that threads share a tensor.
  std::vector<std::byte> bytes(std::size_t{20} << 20);
  for (std::size_t i = 0; i < bytes.size(); i += 4096) {
    bytes[i] = static_cast<std::byte>(i / 4096);
  }
  LoadedModel model;
  model.tensors = {{"w", "F32", {5u << 20}, bytes}};
  ThreadPool one(1), three(3);
  const Digest expected = ContentDigest(model, one);
  EXPECT_EQ(ContentDigest(model, three), expected);
  bytes[bytes.size() - 1] ^= std::byte{1};
  EXPECT_NE(ContentDigest(model, three), expected);
}

// One thread at a time tells, of ever more bytes; never all in one step, and
// nothing changes by it.
TEST(ContentDigest, ReadingIsToldOfUpToTheLastByte) {
  const std::vector<std::byte> bytes(std::size_t{40} << 20);
  LoadedModel model;
  model.tensors = {{"w", "F32", {10u << 20}, bytes}};
  for (const int n_threads : {1, 3}) {
    ThreadPool pool(n_threads);
    std::vector<std::uint64_t> told;
    const Digest digest = ContentDigest(
        model, pool, [&](std::uint64_t done, std::uint64_t total) {
          EXPECT_EQ(total, bytes.size());
          told.push_back(done);
        });
    EXPECT_EQ(digest, ContentDigest(model, pool));
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    if (n_threads > 1) continue;  // others may do all of the work
    EXPECT_EQ(told.size(), 5u);
    EXPECT_EQ(told.back(), bytes.size());
  }
}

TEST(ContentDigest, EveryPartOfATensorCounts) {
  ThreadPool pool(2);
  const std::vector<std::byte> a(64), b(64, std::byte{1});
  const auto digest = [&](std::vector<TensorRecord> tensors) {
    LoadedModel model;
    model.tensors = std::move(tensors);
    return ContentDigest(model, pool);
  };
  const Digest base = digest({{"w", "F32", {4, 4}, a}});
  EXPECT_EQ(digest({{"w", "F32", {4, 4}, a}}), base);
  EXPECT_NE(digest({{"v", "F32", {4, 4}, a}}), base);
  EXPECT_NE(digest({{"w", "I32", {4, 4}, a}}), base);
  EXPECT_NE(digest({{"w", "F32", {2, 8}, a}}), base);
  EXPECT_NE(digest({{"w", "F32", {4, 4}, b}}), base);
  EXPECT_NE(digest({{"w", "F32", {4, 4}, a, b}}), base) << "scales";
  EXPECT_NE(digest({{"w", "F32", {4, 4}, a}, {"x", "F32", {4, 4}, a}}), base);
}

TEST(ContentDigest, OrderOfTensorsDoesNotCount) {
  ThreadPool pool(2);
  const std::vector<std::byte> a(8), b(8, std::byte{1});
  LoadedModel one, other;
  one.tensors = {{"a", "F32", {2}, a}, {"b", "F32", {2}, b}};
  other.tensors = {{"b", "F32", {2}, b}, {"a", "F32", {2}, a}};
  EXPECT_EQ(ContentDigest(one, pool), ContentDigest(other, pool));
}

TEST(ContentDigest, OptimizerStateDoesNotCount) {
  ThreadPool pool(2);
  const auto training = MakeTinygpt({}, TinygptForm::kTrainingF32);
  const auto plain = MakeTinygpt({}, TinygptForm::kF32);
  EXPECT_EQ(ContentDigest(Load(training), pool),
            ContentDigest(Load(plain), pool));
}

TEST(ContentDigest, OneFlippedWeightChangesIt) {
  ThreadPool pool(2);
  auto bytes = MakeTinygpt({}, TinygptForm::kInt4);
  const Digest before = ContentDigest(Load(bytes), pool);
  EXPECT_EQ(ContentDigest(Load(bytes), pool), before);
  bytes[bytes.size() - 100] ^= std::byte{0x10};
  EXPECT_NE(ContentDigest(Load(bytes), pool), before);
}

TEST(ModelId, EveryFieldOfTheForwardPassChangesIt) {
  const auto bytes = MakeTinygpt({}, TinygptForm::kF16);
  ModelConfig base = Load(bytes).config;
  base.rope.rotary_dim = 4;
  base.rope.inv_freq = {1.0f, 0.5f};
  const Digest content{};
  const Digest id = ModelId(base, content);
  const auto changed = [&](auto change) {
    ModelConfig config = base;
    change(config);
    return ModelId(config, content);
  };
  EXPECT_NE(changed([](auto& c) { c.architecture = "x"; }), id);
  EXPECT_NE(changed([](auto& c) { ++c.n_layers; }), id);
  EXPECT_NE(changed([](auto& c) { ++c.d_model; }), id);
  EXPECT_NE(changed([](auto& c) { ++c.n_heads; }), id);
  EXPECT_NE(changed([](auto& c) { ++c.n_kv_heads; }), id);
  EXPECT_NE(changed([](auto& c) { ++c.head_dim; }), id);
  EXPECT_NE(changed([](auto& c) { ++c.d_mlp; }), id);
  EXPECT_NE(changed([](auto& c) { ++c.vocab_size; }), id);
  EXPECT_NE(changed([](auto& c) { c.norm = NormKind::kRmsNorm; }), id);
  EXPECT_NE(changed([](auto& c) { c.norm_eps = 1e-6f; }), id);
  EXPECT_NE(changed([](auto& c) { c.mlp = MlpKind::kGeluTanh; }), id);
  EXPECT_NE(changed([](auto& c) { c.learned_positions = false; }), id);
  EXPECT_NE(changed([](auto& c) { c.tied_head = false; }), id);
  EXPECT_NE(changed([](auto& c) { c.rope.rotary_dim = 2; }), id);
  EXPECT_NE(changed([](auto& c) { c.rope.interleaved = true; }), id);
  EXPECT_NE(changed([](auto& c) { c.rope.inv_freq[1] = 0.25f; }), id);
  EXPECT_NE(changed([](auto& c) { c.rope.inv_freq.pop_back(); }), id);
  EXPECT_NE(changed([](auto& c) { c.rope.cos_sin_factor = 2; }), id);
  EXPECT_NE(changed([](auto& c) { c.local_rope = c.rope; }), id);
  EXPECT_NE(changed([](auto& c) { c.attention_scale = 1; }), id);
  EXPECT_NE(changed([](auto& c) { c.attention_softcap = 1; }), id);
  EXPECT_NE(changed([](auto& c) { c.attention_sinks = true; }), id);
  EXPECT_NE(changed([](auto& c) { c.qk_norm = QkNorm::kPerHead; }), id);
  EXPECT_NE(changed([](auto& c) { c.embedding_scale = 2; }), id);
  EXPECT_NE(changed([](auto& c) { c.residual_scale = 2; }), id);
  EXPECT_NE(changed([](auto& c) { c.logit_scale = 2; }), id);
  EXPECT_NE(changed([](auto& c) { c.logit_softcap = 2; }), id);
  EXPECT_NE(changed([](auto& c) { c.norm_placement = NormPlacement::kAfter; }),
            id);
  EXPECT_NE(changed([](auto& c) { ++c.n_experts; }), id);
  EXPECT_NE(changed([](auto& c) { ++c.n_experts_used; }), id);
  EXPECT_NE(changed([](auto& c) { ++c.d_expert; }), id);
  EXPECT_NE(changed([](auto& c) { c.router = RouterKind::kSoftmaxOfChosen; }),
            id);
  const auto with_layer = [&](LayerKind kind) {
    return changed([&](auto& c) {
      c.layer_kinds.resize(static_cast<std::size_t>(c.n_layers));
      c.layer_kinds[1] = kind;
    });
  };
  EXPECT_NE(with_layer({.window = 8}), id);
  EXPECT_NE(with_layer({.rope = RopeUse::kNone}), id);
  EXPECT_NE(with_layer({.n_kv_heads = 1}), id);
  EXPECT_NE(with_layer({.head_dim = 32}), id);
  EXPECT_NE(with_layer({.kv_source = 0}), id);
  EXPECT_EQ(with_layer({}), id) << "all the default is the same as empty";
  Digest other_content;
  other_content.bytes[31] = 1;
  EXPECT_NE(ModelId(base, other_content), id);

  EXPECT_NE(ModelId(base, content, {.version = kNumericsVersion + 1}), id);
  EXPECT_NE(ModelId(base, content, {.profile = "fast"}), id);
  EXPECT_EQ(ModelId(base, content, {.version = kNumericsVersion}), id);

  EXPECT_EQ(changed([](auto& c) { c.name = "x"; }), id);
  EXPECT_EQ(changed([](auto& c) { ++c.context_length; }), id);
}

// Computed before layers had shapes and devices had names: a store that was
// written then is found by it.
TEST(ModelId, OfAnOlderModelStaysWhatItWas) {
  ModelConfig c;
  c.architecture = "llama";
  c.n_layers = 2;
  c.d_model = 64;
  c.n_heads = 4;
  c.n_kv_heads = 2;
  c.head_dim = 16;
  c.d_mlp = 96;
  c.vocab_size = 256;
  c.rope.rotary_dim = 4;
  c.rope.inv_freq = {1.0f, 0.5f};
  c.layer_kinds = {LayerKind{.window = 8}, LayerKind{}};
  c.kv_anchor = 0;
  EXPECT_EQ(ToHex(ModelId(c, {})),
            "fbb2ea9aaa1e60bcb9472aec839c24eb75b1d257c611ea29b08c0cdc3f0f6b36");
}

}  // namespace
}  // namespace hearth
