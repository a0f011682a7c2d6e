// Random lives of many sequences of one pool, compared with lists of tags.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "cache/pool/block_pool.h"
#include "testing/pooled_sequences.h"

namespace hearth {
namespace {

using namespace pooled;  // NOLINT

class Lives {
 public:
  Lives(const KvSpec& spec, const KvRetention& keeps, unsigned seed)
      : pool_(spec, keeps, BytesOfBlocks(spec, 40)), rng_(seed) {}

  void Run(int n_steps) {
    for (int step = 0; step < n_steps; ++step) {
      SCOPED_TRACE(step);
      Step();
      pool_.ExpectSound();
      ExpectAllHold();
      if (testing::Test::HasFatalFailure()) return;
    }
    lives_.clear();
    saves_.clear();
    EXPECT_EQ(pool_.held(), 0u);
    EXPECT_EQ(pool_.blocks->Usage().mapped_bytes, 0u);
  }

 private:
  struct Life {
    std::unique_ptr<KvSequence> seq;
    std::vector<int> tags;
    int script;
  };

  int Random(int n) {
    return static_cast<int>(rng_() % static_cast<unsigned>(n));
  }
  // Scripts begin alike, and part at different places.
  static int TagOf(int script, int position) {
    return position < 20 * script + 30 ? position : 1000 * script + position;
  }
  Life& Any() { return lives_[static_cast<std::size_t>(Random(size()))]; }
  int size() const { return static_cast<int>(lives_.size()); }

  void Step() {
    const int what = Random(11);
    if (lives_.empty() || (what == 0 && size() < 6)) return Begin();
    Life& life = Any();
    switch (what) {
      case 1:
      case 2:
      case 3:
        return Extend(life);
      case 4:
        return life.seq->Publish(Ids(life.tags));
      case 5:
        return Rewind(life);
      case 6:
        return Fork(life);
      case 7:
        return Exchange(life);
      case 8:
        return Save(life);
      case 9:
        (void)life.seq->Reserve(life.seq->n_tokens() + Random(60) - 20);
        return;
      case 10:
        if (Random(3) == 0) {
          life = std::move(lives_.back());
          lives_.pop_back();
        }
        return;
    }
  }

  void Begin() {
    Life life{pool_.NewSequence(), {}, Random(4)};
    std::vector<int> want;
    for (int i = 0; i < 150; ++i) want.push_back(TagOf(life.script, i));
    const int n = life.seq->AppendShared(Ids(want));
    want.resize(static_cast<std::size_t>(n * kBlock));
    life.tags = std::move(want);
    lives_.push_back(std::move(life));
  }

  void Extend(Life& life) {
    const int n = 1 + Random(40), at = life.seq->n_tokens();
    std::vector<int> tags;
    for (int i = 0; i < n; ++i) tags.push_back(TagOf(life.script, at + i));
    if (Random(5) == 0) {
      if (!life.seq->Extend(n).ok()) return;
      WriteTags(*life.seq, tags);
      return life.seq->Abandon();
    }
    if (Append(*life.seq, tags).ok()) {
      life.tags.insert(life.tags.end(), tags.begin(), tags.end());
    }
  }

  void Rewind(Life& life) {
    const int n = life.seq->RewindableTo(Random(life.seq->n_tokens() + 1));
    life.seq->Rewind(n);
    life.tags.resize(static_cast<std::size_t>(n));
    if (Random(2) == 0) life.script = Random(4);
  }

  void Fork(Life& life) {
    if (size() >= 6) return;
    auto fork = life.seq->Fork();
    if (!fork.ok()) return;
    Life other{std::move(*fork), life.tags, life.script};
    lives_.push_back(std::move(other));
  }

  void Exchange(Life& life) {
    const auto ids = Ids(life.tags);
    if (ids.empty()) return;
    const int block = Random(static_cast<int>(ids.size()));
    if (!life.seq->HasImage(block, kBlock)) return;
    const auto stored = Stored(*life.seq, block);
    life.seq->Exchange(block, ids[static_cast<std::size_t>(block)], *stored,
                       stored);
    EXPECT_TRUE(life.seq->IsMapped(block));
  }

  // Something is on its way to the store for a while.
  void Save(const Life& life) {
    const int n_full = life.seq->n_tokens() / kBlock;
    if (saves_.size() > 3) saves_.erase(saves_.begin());
    if (n_full == 0) return;
    const int block = Random(n_full);
    if (!life.seq->HasImage(block, kBlock)) return;
    saves_.push_back(*life.seq->Image(block, kBlock));
  }

  bool Sees(int layer, int n_tokens, int position) const {
    const auto& windows = pool_.retention.windows;
    const int window =
        windows.empty() ? 0 : windows[static_cast<std::size_t>(layer)];
    return window == 0 || position < pool_.retention.sink_tokens ||
           n_tokens - position < window;
  }

  void ExpectAllHold() {
    for (const Life& life : lives_) {
      const int n = life.seq->n_tokens();
      ASSERT_EQ(n, static_cast<int>(life.tags.size()));
      if (pool_.spec.quantised()) {
        ExpectSameBytes(life);
        continue;
      }
      for (int layer = 0; layer < pool_.spec.n_layers(); ++layer) {
        for (int t = 0; t < n; ++t) {
          if (!Sees(layer, n, t)) continue;
          ExpectHoldsToken(*life.seq, layer, t,
                           life.tags[static_cast<std::size_t>(t)]);
        }
      }
    }
  }

  // A block's bytes are functions of its id, whoever sealed it and when.
  void ExpectSameBytes(const Life& life) {
    const auto ids = Ids(life.tags);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!life.seq->HasImage(static_cast<int>(i), kBlock)) continue;
      const BlockImage image = *life.seq->Image(static_cast<int>(i), kBlock);
      const std::uint64_t sum = Checksum64(image.payload);
      EXPECT_EQ(sums_.try_emplace(ids[i], sum).first->second, sum);
    }
  }

  Pool pool_;
  std::mt19937 rng_;
  std::vector<Life> lives_;
  std::vector<BlockImage> saves_;
  std::map<Digest, std::uint64_t> sums_;
};

TEST(BlockPool, RandomLivesEqualPlainListsAndStaySound) {
  KvSpec int8 = Spec();
  int8.SetFormat(KvFormat::kInt8);
  const KvRetention all, windows{.windows = {32, 0, 20}, .sink_tokens = 3},
      forgets{.windows = {32, 40, 20}};
  unsigned seed = 0;
  for (const KvSpec& spec : {Spec(), int8}) {
    for (const KvRetention& keeps : {all, windows, forgets}) {
      SCOPED_TRACE(seed);
      Lives(spec, keeps, ++seed).Run(300);
    }
  }
}

}  // namespace
}  // namespace hearth
