// One sequence, many ways of arriving at it: the logits are the same bits.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cache/kv_sequence.h"
#include "formats/loader.h"
#include "hearth/engine.h"
#include "model/cpu/cpu_ops.h"
#include "model/forward.h"
#include "store/kv_store.h"
#include "testing/model_paths.h"
#include "testing/own_sequence.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

struct Way {
  const LoadedModel& model;
  Forward& forward;
  KvSpec spec;
  std::mt19937 rng;

  std::unique_ptr<KvSequence> InPlace() const { return OwnSequence(spec); }
  std::unique_ptr<KvSequence> Concat() const {
    return MakeConcatSequence(spec, 600);
  }
  std::size_t vocab() const {
    return static_cast<std::size_t>(model.config.vocab_size);
  }
  int Random(int low, int high) {
    return low +
           static_cast<int>(rng() % static_cast<unsigned>(high - low + 1));
  }

  // Appends tokens [from, to) in random steps; gives their logits.
  std::vector<float> Append(KvSequence& seq,
                            const std::vector<std::int32_t>& ids, int from,
                            int to, int step_max) {
    std::vector<float> logits(static_cast<std::size_t>(to - from) * vocab());
    for (int at = from; at < to;) {
      const int n = std::min(to - at, Random(1, step_max));
      const auto done = forward.Step(
          {.kv = &seq,
           .tokens = std::span(ids).subspan(static_cast<std::size_t>(at),
                                            static_cast<std::size_t>(n)),
           .want = LogitRows::kAll,
           .logits =
               logits.data() + static_cast<std::size_t>(at - from) * vocab()});
      EXPECT_TRUE(done.ok()) << done.error().message;
      at += n;
    }
    return logits;
  }
};

void ExpectSameBits(const std::vector<float>& a, const float* b,
                    const std::string& what) {
  ASSERT_EQ(std::memcmp(a.data(), b, a.size() * sizeof(float)), 0) << what;
}

// Rewound and redone over a wrong continuation, and forked. `want`: the logits
// of the tokens from `cut` on.
void CheckCuts(Way& way, const std::vector<std::int32_t>& ids, int cut,
               const float* want) {
  const int n = static_cast<int>(ids.size());
  auto rewound = way.InPlace();
  way.Append(*rewound, ids, 0, cut, 50);
  std::vector<std::int32_t> wrong = ids;
  for (int t = cut; t < n; ++t) {
    wrong[static_cast<std::size_t>(t)] =
        way.Random(0, way.model.config.vocab_size - 1);
  }
  way.Append(*rewound, wrong, cut, n, 50);
  rewound->Rewind(cut);
  ExpectSameBits(way.Append(*rewound, ids, cut, n, 50), want, "rewound");

  // The fork goes another way, the original is not disturbed, and a fork of the
  // fork's past is right too.
  auto original = way.InPlace();
  way.Append(*original, ids, 0, cut, 50);
  auto fork = *original->Fork();
  way.Append(*fork, wrong, cut, n, 50);
  ExpectSameBits(way.Append(*original, ids, cut, n, 50), want, "forked");
  fork->Rewind(cut);
  ExpectSameBits(way.Append(*fork, ids, cut, n, 50), want, "fork redone");
}

// The first `cut` tokens of `plain`, saved and loaded.
void CheckStored(Way& way, const std::vector<std::int32_t>& ids, int cut,
                 KvSequence& plain, const float* want) {
  TempDir dir;
  auto store = std::move(*KvStore::Open(dir.path() + "/store"));
  const KvIdentity identity{.model_id = Sha256().Field("m").Finish(),
                            .format_id = FormatId(way.spec),
                            .name_space = "",
                            .model_name = "test"};
  const auto prefix = std::span(ids).first(static_cast<std::size_t>(cut));
  const BlockChain chain(identity, prefix, way.spec.block_tokens);
  std::vector<ByteSpan> payloads;
  std::vector<BlockImage> images;
  for (int b = 0; b * way.spec.block_tokens < cut; ++b) {
    const int m =
        std::min(way.spec.block_tokens, cut - b * way.spec.block_tokens);
    images.push_back(*plain.Image(b, m));
    payloads.push_back(images.back().payload);
  }
  const std::string bundle = dir.path() + "/bundle.kvcache";
  const auto file = std::move(*KvStore::OpenFile(bundle));
  for (KvStore* to : {store.get(), file.get()}) {
    ASSERT_TRUE(to->SaveBlocks(chain, way.spec, 0, payloads).ok());
    ASSERT_TRUE(to->SaveManifest(chain, way.spec, "").ok());
  }
  for (const bool use_bundle : {false, true}) {
    for (const bool to_concat : {false, true}) {
      StoreMatch match =
          (use_bundle ? file : store)
              ->Lookup(BlockChain(identity, ids, way.spec.block_tokens),
                       way.spec);
      ASSERT_EQ(match.n_tokens, cut) << match.miss_reason;
      auto loaded = to_concat ? way.Concat() : way.InPlace();
      for (StoredBlock& block : match.blocks) {
        ASSERT_TRUE(
            loaded->AppendStored(block.payload, block.n_tokens, block.owner)
                .ok());
      }
      ExpectSameBits(
          way.Append(*loaded, ids, cut, static_cast<int>(ids.size()), 50), want,
          "loaded");
    }
  }
}

// Every way against one chunk in one go.
void CheckAllWays(Way& way, const std::vector<std::int32_t>& ids) {
  const int n = static_cast<int>(ids.size());
  auto plain = way.InPlace();
  const std::vector<float> want = way.Append(*plain, ids, 0, n, 512);
  auto chunked = way.InPlace();
  ExpectSameBits(way.Append(*chunked, ids, 0, n, 40), want.data(), "chunked");
  auto single = way.InPlace();
  ExpectSameBits(way.Append(*single, ids, 0, n, 1), want.data(),
                 "token by token");
  auto concat = way.Concat();
  ExpectSameBits(way.Append(*concat, ids, 0, n, 30), want.data(), "concat");

  const int cut = way.Random(1, n - 1);
  const float* rest = want.data() + static_cast<std::size_t>(cut) * way.vocab();
  CheckCuts(way, ids, cut, rest);
  CheckStored(way, ids, cut, *plain, rest);
}

struct EquivalenceCase {
  const char* model;
  KvFormat format;
  int block_tokens;
};

class Equivalence : public ::testing::TestWithParam<EquivalenceCase> {};

TEST_P(Equivalence, EveryWayOfArrivingGivesTheSameBits) {
  const EquivalenceCase param = GetParam();
  const auto model = LoadModel(kTestData + "/models/" + param.model);
  ASSERT_TRUE(model.ok()) << model.error().message;
  for (unsigned seed = 0; seed < 3; ++seed) {
    ThreadPool pool(1 + static_cast<int>(seed));
    Forward forward(*model, MakeCpuOps(*model, pool));
    Way way{*model, forward,
            UniformKv{.n_layers = model->config.n_layers,
                      .n_heads = model->config.n_kv_heads,
                      .head_dim = model->config.head_dim,
                      .key_format = param.format,
                      .value_format = param.format,
                      .block_tokens = param.block_tokens},
            std::mt19937(seed)};
    std::vector<std::int32_t> ids;
    const int lengths[] = {3 * param.block_tokens, way.Random(20, 250),
                           2 * param.block_tokens + 1};
    for (int i = 0; i < lengths[seed]; ++i) {
      ids.push_back(way.Random(0, model->config.vocab_size - 1));
    }
    CheckAllWays(way, ids);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, Equivalence,
    ::testing::Values(EquivalenceCase{"stories260K.gguf", KvFormat::kF32, 64},
                      EquivalenceCase{"stories260K.gguf", KvFormat::kF16, 16},
                      EquivalenceCase{"stories260K.gguf", KvFormat::kBF16, 48},
                      EquivalenceCase{"hf/llama", KvFormat::kF16, 64},
                      EquivalenceCase{"hf/llama", KvFormat::kBF16, 32},
                      EquivalenceCase{"hf/qwen2", KvFormat::kF32, 32},
                      EquivalenceCase{"hf/qwen2", KvFormat::kBF16, 64}));

// Past one attention segment of 512 tokens, where the work is split over
// threads in another way than in prefill.
TEST(Equivalence, ThreadsAndStepsDoNotMatterInALongContext) {
  const auto model = LoadModel(kHfLlama);
  ASSERT_TRUE(model.ok());
  std::mt19937 rng(5);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 1100; ++i) {
    ids.push_back(static_cast<std::int32_t>(rng() % 384));
  }
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    for (const int step : {512, 100, 1}) {
      auto engine = Engine::Open({.model_path = kHfLlama,
                                  .n_threads = threads,
                                  .context_tokens = 2048});
      ASSERT_TRUE(engine.ok());
      const std::vector<int> steps = {step == 1 ? 512 : step,
                                      step == 1 ? 500 : step, step};
      auto logits = (*engine)->Logits(ids, steps);
      ASSERT_TRUE(logits.ok());
      results.push_back(std::move(*logits));
    }
  }
  for (const auto& result : results) {
    ASSERT_EQ(std::memcmp(result.data(), results[0].data(),
                          result.size() * sizeof(float)),
              0);
  }
}

// The public door, text level: uncached = cached = concat, and forked.
TEST(Equivalence, TextIsTheSameWithAndWithoutCache) {
  const GenerateOptions greedy{
      .n_tokens_max = 60, .ignore_eos = true, .sampling = {.temperature = 0}};
  std::string want;
  for (const bool concat : {false, true}) {
    auto engine = Engine::Open(
        {.model_path = kStories260K,
         .kv_growth = concat ? KvGrowth::kConcat : KvGrowth::kInPlace});
    ASSERT_TRUE(engine.ok());
    const auto ids = *(*engine)->codec().Encode("The dog saw a cat and", true);
    auto session = *(*engine)->NewSession();
    ASSERT_TRUE(session->Sync(ids, nullptr).ok());
    auto fork = *session->Fork();
    const auto cached = session->Generate(greedy, nullptr);
    ASSERT_TRUE(cached.ok());
    EXPECT_EQ(fork->Generate(greedy, nullptr)->text, cached->text);
    const auto uncached = session->GenerateUncached(ids, greedy, nullptr);
    ASSERT_TRUE(uncached.ok());
    EXPECT_EQ(uncached->text, cached->text);
    EXPECT_EQ(uncached->token_ids, cached->token_ids);
    if (want.empty()) want = cached->text;
    EXPECT_EQ(cached->text, want);
  }
}

}  // namespace
}  // namespace hearth
