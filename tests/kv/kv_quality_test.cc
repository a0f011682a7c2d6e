// What the KV formats cost on real text, with a bound for each: the divergence
// of the next-token distribution from the one with fp32 KV. bench/kv_quality
// prints the whole table.
#include <gtest/gtest.h>

#include <string>

#include "hearth/engine.h"
#include "hearth_test_paths.h"
#include "testing/next_token.h"

namespace hearth {
namespace {

struct Bound {
  KvStorage keys, values;
  double kl_max;    // mean, nats per token
  double top1_min;  // share of positions with the same first choice
};

class KvQuality : public ::testing::TestWithParam<Bound> {};

TEST_P(KvQuality, StaysCloseToFullPrecision) {
  const std::string data = HEARTH_TEST_DATA;
  EngineOptions options{.model_path = data + "/models/stories260K.gguf"};
  auto reference = Engine::Open(options);
  options.kv_keys = GetParam().keys;
  options.kv_values = GetParam().values;
  auto engine = Engine::Open(options);
  ASSERT_TRUE(reference.ok() && engine.ok());
  const std::string text =
      "Once upon a time, there was a little girl named Lily. She loved to play "
      "with her toys in the garden. One day her mom said, \"Lily, we have to "
      "go "
      "to the park now. Put on your shoes, please.\" Lily was happy. She ran "
      "to "
      "the door and saw a small dog. The dog was sad because it had lost its "
      "ball. \"Do not cry,\" said Lily. \"I will help you to find it.\" They "
      "looked under the tree and behind the big red box. Then Lily saw the "
      "ball in the water. She took a long stick and pulled it out. The dog "
      "jumped and barked. Mom smiled and gave Lily a hug. They all went home "
      "and had a nice cake. Lily and the dog became the best of friends.";
  const auto ids = (*engine)->codec().Encode(text, true);
  ASSERT_TRUE(ids.ok());
  const auto want = (*reference)->Logits(*ids, {});
  const auto got = (*engine)->Logits(*ids, {});
  ASSERT_TRUE(want.ok() && got.ok());
  const auto vocab = static_cast<std::size_t>((*engine)->info().vocab_size);
  double kl = 0;
  double same = 0;
  double n = 0;
  for (std::size_t t = 64; t < ids->size(); ++t, ++n) {
    const auto p = LogSoftmax({want->data() + t * vocab, vocab});
    const auto q = LogSoftmax({got->data() + t * vocab, vocab});
    kl += Divergence(p, q);
    same += SameFirstChoice(p, q);
  }
  ASSERT_GE(n, 150);
  EXPECT_LE(kl / n, GetParam().kl_max);
  EXPECT_GT(kl / n, 0) << "the format is not in use";
  EXPECT_GE(same / n, GetParam().top1_min);
}

INSTANTIATE_TEST_SUITE_P(
    All, KvQuality,
    ::testing::Values(Bound{KvStorage::kFp16, KvStorage::kFp16, 1e-5, 0.99},
                      Bound{KvStorage::kBf16, KvStorage::kBf16, 1e-4, 0.99},
                      Bound{KvStorage::kInt8, KvStorage::kInt8, 1e-3, 0.98},
                      Bound{KvStorage::kInt8, KvStorage::kInt4, 2e-2, 0.90},
                      Bound{KvStorage::kInt4, KvStorage::kInt4, 5e-2, 0.85}),
    [](const auto& param_info) {
      return std::string(NameOf(param_info.param.keys)) + "_" +
             std::string(NameOf(param_info.param.values));
    });

}  // namespace
}  // namespace hearth
