#include "engine/prompt_cache/text_lookup.h"

#include <gtest/gtest.h>

#include <string>

namespace hearth {
namespace {

// Every string over a and b of one or two letters, and two special tokens whose
// spelling is "ab" and "b".
class PairTokenizer final : public Tokenizer {
 public:
  enum : std::int32_t { kA, kB, kAa, kAb, kBa, kBb, kSpecialAb, kSpecialB };

  std::string_view kind() const override { return "pairs"; }
  Result<std::vector<std::int32_t>> Encode(std::string_view,
                                           EncodeOptions) const override {
    return {Code::kUnsupported, "not needed"};
  }
  std::int32_t vocab_size() const override { return 8; }
  std::optional<std::int32_t> bos_id() const override { return std::nullopt; }
  std::optional<std::int32_t> eos_id() const override { return std::nullopt; }
  std::span<const std::int32_t> end_ids() const override { return {}; }
  void AddEnds(std::span<const std::int32_t>) override {}
  bool IsSpecial(std::int32_t id) const override { return id >= kSpecialAb; }
  std::string Piece(std::int32_t id) const override {
    static const char* const kPieces[] = {"a",  "b",  "aa", "ab",
                                          "ba", "bb", "ab", "b"};
    return kPieces[id];
  }
  std::optional<std::int32_t> FindPiece(std::string_view) const override {
    return std::nullopt;
  }
  void AppendBytes(std::int32_t id, bool, std::string& out) const override {
    out += Piece(id);
  }
  Digest Fingerprint() const override { return {}; }
};

using P = PairTokenizer;
using Ids = std::vector<std::int32_t>;

std::optional<TextMatch> Find(const Ids& ids, const std::vector<Ids>& stored,
                              int n_covered = 0, int block_tokens = 2,
                              KvFormat format = KvFormat::kF16) {
  const KvSpec spec(UniformKv{.n_layers = 1,
                              .n_heads = 1,
                              .head_dim = 32,
                              .key_format = format,
                              .value_format = format,
                              .block_tokens = block_tokens});
  return FindByText(P(), ids, stored, n_covered, spec);
}

TEST(TextLookup, StoredIdsAreTakenUpToACommonBoundary) {
  // abab|ba as pairs; stored letter by letter, and on.
  const auto match = Find({P::kAb, P::kAb, P::kBa},
                          {{P::kA, P::kB, P::kA, P::kB, P::kB, P::kB}});
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->ids, (Ids{P::kA, P::kB, P::kA, P::kB, P::kBa}));
  EXPECT_EQ(match->n_from_store, 4);
  EXPECT_EQ(match->n_usable, 4);
}

TEST(TextLookup, TheBeginningOfABlockCountsWhereItCanBeCut) {
  const Ids asked = {P::kAb, P::kAb, P::kAb, P::kAb};
  const Ids five = {P::kA, P::kB, P::kA, P::kB, P::kAb};
  const Ids more = {P::kA, P::kB, P::kA, P::kB, P::kAb, P::kBb, P::kA, P::kA};
  const auto usable = [&](const Ids& stored, KvFormat format) {
    const auto match = Find(asked, {stored}, 0, /*block_tokens=*/2, format);
    EXPECT_EQ(match->n_from_store, 5);
    return match->n_usable;
  };
  for (const Ids& stored : {five, more}) {
    EXPECT_EQ(usable(stored, KvFormat::kF16), 5);
  }
  // The newest tokens of a quantised cache are not quantised; a full block is,
  // and cannot be cut.
  EXPECT_EQ(usable(five, KvFormat::kInt8), 5);
  EXPECT_EQ(usable(more, KvFormat::kInt8), 4);
}

TEST(TextLookup, TheOneThatSparesMostWins) {
  const Ids asked = {P::kAb, P::kAb, P::kAb, P::kAb, P::kAb};
  const Ids shorter = {P::kA, P::kB, P::kA, P::kB};
  const Ids longer = {P::kA, P::kB, P::kA, P::kB, P::kA, P::kB, P::kA, P::kB};
  const auto match = Find(asked, {shorter, longer, {P::kBb, P::kBb}});
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->n_usable, 8);
  EXPECT_EQ(match->ids.size(), 9u);
}

TEST(TextLookup, LessThanABlockMoreIsNoReason) {
  const Ids asked = {P::kAb, P::kAb, P::kAb, P::kAb};
  const Ids stored = {P::kA, P::kB, P::kA, P::kB, P::kA, P::kB};
  EXPECT_TRUE(Find(asked, {stored}, /*n_covered=*/1).has_value());
  EXPECT_FALSE(Find(asked, {stored}, /*n_covered=*/2).has_value());
}

TEST(TextLookup, OtherTextAndNoTextMatchNothing) {
  EXPECT_FALSE(
      Find({P::kAb, P::kAb}, {{P::kB, P::kA, P::kB, P::kA}, {}}).has_value());
  EXPECT_FALSE(Find({}, {{P::kA, P::kB}}).has_value());
  EXPECT_FALSE(Find({P::kAb, P::kAb}, {}).has_value());
}

// The same bytes with and without a special token are not the same prompt.
TEST(TextLookup, SpecialTokensAreNotTheirSpelling) {
  const Ids asked = {P::kAa, P::kSpecialAb, P::kAb, P::kAb};
  const Ids typed = {P::kA, P::kA, P::kA, P::kB, P::kA, P::kB, P::kA, P::kB};
  const Ids special = {P::kA, P::kA, P::kSpecialAb, P::kA, P::kB, P::kA, P::kB};
  EXPECT_EQ(Find(asked, {typed}, 0, 1)->n_from_store, 2);
  EXPECT_EQ(Find(asked, {special})->n_from_store, 7);
  const Ids asked_typed = {P::kAa, P::kAb, P::kAb, P::kAb};
  EXPECT_EQ(Find(asked_typed, {special}, 0, 1)->n_from_store, 2);
  EXPECT_EQ(Find(asked_typed, {typed})->n_from_store, 8);
  // A special token in the middle of a plain one.
  const Ids inner = {P::kA, P::kSpecialB, P::kAb, P::kAb};
  EXPECT_FALSE(
      Find(inner, {{P::kAb, P::kAb, P::kAb, P::kAb}}, 0, 1).has_value());
}

}  // namespace
}  // namespace hearth
