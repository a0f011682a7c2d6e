// Every KV format x window x head sharing x KV sharing x way of arriving,
// against a plain double-precision pass that computes every position from
// scratch; the ways of arriving among each other bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "cache/kv_sequence.h"
#include "engine/kv_setup.h"
#include "model/cpu/cpu_ops.h"
#include "model/forward.h"
#include "testing/own_sequence.h"
#include "testing/reference_model.h"

namespace hearth {
namespace {

constexpr int kBlock = 16;
constexpr int kWindow = 40;
constexpr int kSinks = 3;
constexpr int kTokens = 3 * kWindow + 9;  // the last block is partial

struct Formats {
  KvFormat keys, values;
  // Of logits with a deviation of 7. The reference plays the format through, so
  // this is what float arithmetic adds; a number that lies between two codes
  // can go to the other side, and then layers behind it see other inputs.
  double bound;
  // Against keys and values in full precision: what the format itself costs a
  // random model, in which nothing is redundant.
  double cost;
};
constexpr Formats kFormats[] = {
    {KvFormat::kF32, KvFormat::kF32, 2e-5, 2e-5},
    {KvFormat::kF16, KvFormat::kF16, 2e-3, 8e-3},
    {KvFormat::kBF16, KvFormat::kBF16, 8e-3, 0.07},
    {KvFormat::kInt8, KvFormat::kInt8, 0.06, 0.08},
    {KvFormat::kInt4, KvFormat::kInt4, 0.8, 1.5},
    {KvFormat::kInt8, KvFormat::kInt4, 0.8, 1.5},
    {KvFormat::kInt4, KvFormat::kF16, 0.8, 1.5},
    {KvFormat::kF16, KvFormat::kBF16, 4e-3, 0.05},
};

enum class Windows { kFull, kNative, kMixed, kStreaming };
constexpr const char* kWindowNames[] = {"full", "native", "mixed", "sinks"};

struct Case {
  Windows windows;
  int n_kv_heads;  // of 4 heads
  bool yoco;
};

std::string NameOfCase(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  const std::string heads = c.n_kv_heads == 4   ? "mha"
                            : c.n_kv_heads == 1 ? "mqa"
                                                : "gqa";
  return std::string(kWindowNames[static_cast<int>(c.windows)]) + "_" + heads +
         (c.yoco ? "_yoco" : "_own");
}

// One model, one format.
class Walk {
 public:
  Walk(const LoadedModel& model, KvSpec spec, unsigned seed)
      : model_(model),
        spec_(spec),
        retention_(RetentionOf(model.config)),
        pool_(1 + static_cast<int>(seed % 2)),
        forward_(model, MakeCpuOps(model, pool_)),
        rng_(seed) {}

  std::unique_ptr<KvSequence> New() const {
    return OwnSequence(spec_, retention_);
  }
  int Random(int low, int high) {
    return low +
           static_cast<int>(rng_() % static_cast<unsigned>(high - low + 1));
  }
  std::vector<float> Append(KvSequence& seq,
                            const std::vector<std::int32_t>& ids, int from,
                            int to, int step_max) {
    const auto vocab = static_cast<std::size_t>(model_.config.vocab_size);
    std::vector<float> logits(static_cast<std::size_t>(to - from) * vocab);
    for (int at = from; at < to;) {
      const int n =
          step_max == 0 ? to - at : std::min(to - at, Random(1, step_max));
      const auto done = forward_.Step(
          {.kv = &seq,
           .tokens = std::span(ids).subspan(static_cast<std::size_t>(at),
                                            static_cast<std::size_t>(n)),
           .want = LogitRows::kAll,
           .logits =
               logits.data() + static_cast<std::size_t>(at - from) * vocab});
      EXPECT_TRUE(done.ok()) << done.error().message;
      at += n;
    }
    return logits;
  }
  std::vector<float> Last(KvSequence& seq, const std::vector<std::int32_t>& ids,
                          int to) {
    std::vector<float> logits(
        static_cast<std::size_t>(model_.config.vocab_size));
    for (int at = 0; at < to;) {
      const int n = std::min(to - at, Random(1, 50));
      const auto done = forward_.Step(
          {.kv = &seq,
           .tokens = std::span(ids).subspan(static_cast<std::size_t>(at),
                                            static_cast<std::size_t>(n)),
           .want = at + n == to ? LogitRows::kLast : LogitRows::kNone,
           .logits = logits.data()});
      EXPECT_TRUE(done.ok()) << done.error().message;
      at += n;
    }
    return logits;
  }
  // Cuts to `n` and feeds again what had to go with it.
  void CutTo(KvSequence& seq, const std::vector<std::int32_t>& ids, int n) {
    const int kept = seq.RewindableTo(n);
    seq.Rewind(kept);
    if (kept < n) Append(seq, ids, kept, n, 30);
  }
  const KvSpec& spec() const { return spec_; }

 private:
  const LoadedModel& model_;
  KvSpec spec_;
  KvRetention retention_;
  ThreadPool pool_;
  Forward forward_;
  std::mt19937 rng_;
};

void ExpectSame(const std::vector<float>& part, const std::vector<float>& want,
                int from, const std::string& what) {
  const std::size_t vocab = want.size() / kTokens;
  ASSERT_EQ(std::memcmp(part.data(),
                        want.data() + static_cast<std::size_t>(from) * vocab,
                        part.size() * sizeof(float)),
            0)
      << what;
}

// The root of the mean square difference of each stretch of positions, so that
// an error at one boundary is not hidden by the rest.
void ExpectNear(const std::vector<float>& got, const std::vector<double>& want,
                double bound, const std::string& what) {
  constexpr int kStretch = 4;
  const std::size_t n = kStretch * want.size() / kTokens;
  for (std::size_t first = 0; first + n <= want.size(); first += n) {
    double squares = 0;
    for (std::size_t i = first; i < first + n; ++i) {
      squares += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
    }
    ASSERT_LE(std::sqrt(squares / static_cast<double>(n)), bound)
        << what << " around position " << first / n * kStretch;
  }
}

class KvMatrix : public ::testing::TestWithParam<Case> {
 protected:
  KvMatrix() : reference_(Shape()) {
    ModelConfig& config = reference_.model.config;
    if (GetParam().yoco) reference_.ShareKv(1);
    const Windows windows = GetParam().windows;
    if (windows == Windows::kNative) {
      config.layer_kinds.assign(4, LayerKind{.window = kWindow});
    } else if (windows == Windows::kMixed) {
      config.layer_kinds.assign(4, LayerKind{});
      config.layer_kinds[0].window = kWindow;
      config.layer_kinds[3].window = kBlock + 1;
    } else if (windows == Windows::kStreaming) {
      config.sink_tokens = kSinks;
      config.stream_window = kWindow;
    }
    std::mt19937 rng(7);
    for (int i = 0; i < kTokens; ++i) {
      ids_.push_back(static_cast<std::int32_t>(rng() % 31));
      wrong_.push_back(static_cast<std::int32_t>(rng() % 31));
    }
  }

  // Only the last logits of the first n tokens, another continuation cut off, a
  // fork.
  void CheckBoundary(Walk& walk, int n, const std::vector<float>& want) const {
    SCOPED_TRACE(n);
    auto seq = walk.New();
    ExpectSame(walk.Last(*seq, ids_, n), want, n - 1, "last only");
    auto fork = std::move(*seq->Fork());
    const int more = std::min(kTokens, n + walk.Random(1, 40));
    walk.Append(*fork, wrong_, n, more, 20);
    ExpectSame(walk.Append(*seq, ids_, n, kTokens, 30), want, n, "forked");
    walk.CutTo(*fork, ids_, n);
    ExpectSame(walk.Append(*fork, ids_, n, kTokens, 30), want, n, "rewound");
  }

  // Stored while it grew, as a session does, and mapped into another one.
  void CheckStored(Walk& walk, int n, const std::vector<float>& want) const {
    auto source = walk.New();
    source->SetReleasable(0);
    walk.Append(*source, ids_, 0, n, 30);
    auto loaded = walk.New();
    for (int block = 0; block < source->n_blocks(); ++block) {
      const int m = std::min(kBlock, n - block * kBlock);
      ASSERT_TRUE(source->HasImage(block, m));
      const BlockImage image = *source->Image(block, m);
      ASSERT_TRUE(loaded->AppendStored(image.payload, m, image.owner).ok());
    }
    ExpectSame(walk.Append(*loaded, ids_, n, kTokens, 30), want, n, "loaded");
  }

  ReferenceModel reference_;
  std::vector<std::int32_t> ids_, wrong_;

 private:
  static ReferenceShape Shape() {
    ReferenceShape shape;
    shape.n_kv_heads = GetParam().n_kv_heads;
    return shape;
  }
};

TEST_P(KvMatrix, EveryFormatAndWayOfArriving) {
  const ModelConfig& config = reference_.model.config;
  const KvSpec exact(UniformKv{.n_layers = config.n_kv_layers(),
                               .n_heads = config.n_kv_heads,
                               .head_dim = config.head_dim,
                               .block_tokens = kBlock});
  const auto exact_logits = reference_.Logits(ids_, exact);

  unsigned seed = 0;
  for (const Formats& formats : kFormats) {
    KvSpec spec = exact;
    spec.SetFormats(formats.keys, formats.values);
    const std::string name = std::string(NameOf(formats.keys)) + "/" +
                             std::string(NameOf(formats.values));
    SCOPED_TRACE(name);
    Walk walk(reference_.model, spec, ++seed);

    auto cold = walk.New();
    const auto want = walk.Append(*cold, ids_, 0, kTokens, 0);
    ExpectNear(want, reference_.Logits(ids_, spec), formats.bound, "reference");
    ExpectNear(want, exact_logits, formats.cost, "full precision");

    auto chunked = walk.New();
    ExpectSame(walk.Append(*chunked, ids_, 0, kTokens, 25), want, 0, "chunked");
    auto single = walk.New();
    ExpectSame(walk.Append(*single, ids_, 0, kTokens, 1), want, 0, "singly");
    for (const int n : {kBlock - 1, kBlock, kBlock + 1, kWindow - 1, kWindow,
                        kWindow + 1, kTokens - 1}) {
      CheckBoundary(walk, n, want);
    }
    CheckStored(walk, walk.Random(kBlock, kTokens - 1), want);
  }
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const Windows windows : {Windows::kFull, Windows::kNative,
                                Windows::kMixed, Windows::kStreaming}) {
    for (const int n_kv_heads : {4, 2, 1}) {
      for (const bool yoco : {false, true}) {
        cases.push_back({windows, n_kv_heads, yoco});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, KvMatrix, ::testing::ValuesIn(AllCases()),
                         NameOfCase);

}  // namespace
}  // namespace hearth
