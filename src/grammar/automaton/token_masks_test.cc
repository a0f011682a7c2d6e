#include "grammar/automaton/token_masks.h"

#include <gtest/gtest.h>

#include <random>

#include "grammar/matching_testing.h"
#include "grammar/schema/json_schema.h"
#include "grammar/text/gbnf.h"
#include "grammar/token_constraint.h"

namespace hearth::grammar {
namespace {

// A vocabulary of given texts; the last id is the end marker.
class ListTokenizer final : public Tokenizer {
 public:
  explicit ListTokenizer(std::vector<std::string> texts)
      : texts_(std::move(texts)),
        end_(static_cast<std::int32_t>(texts_.size())) {}

  std::string_view kind() const override { return "list"; }
  Result<std::vector<std::int32_t>> Encode(std::string_view,
                                           EncodeOptions) const override {
    return {Code::kUnsupported, "not needed"};
  }
  std::int32_t vocab_size() const override { return end_ + 1; }
  std::optional<std::int32_t> bos_id() const override { return std::nullopt; }
  std::optional<std::int32_t> eos_id() const override { return end_; }
  std::span<const std::int32_t> end_ids() const override { return {&end_, 1}; }
  void AddEnds(std::span<const std::int32_t>) override {}
  bool IsSpecial(std::int32_t id) const override { return id == end_; }
  std::string Piece(std::int32_t id) const override { return TokenBytes(id); }
  std::optional<std::int32_t> FindPiece(std::string_view) const override {
    return std::nullopt;
  }
  void AppendBytes(std::int32_t id, bool, std::string& out) const override {
    out += id == end_ ? "<end>" : texts_[static_cast<std::size_t>(id)];
  }
  Digest Fingerprint() const override { return {}; }

 private:
  std::vector<std::string> texts_;
  std::int32_t end_;
};

// Every byte, and pieces as vocabularies have them: across quotes, commas and
// halves of characters.
ListTokenizer Vocabulary() {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) {
    texts.emplace_back(1, static_cast<char>(byte));
  }
  for (const char* text :
       {"\"a",      "a\"",      "\": ",      "\":",        "\", \"",
        "\",\"",    "\"}",      "}}",        "]}",         "[1",
        ", ",       "true",     "fal",       "se",         "null",
        "ab",       "abc",      "name",      "\"name\"",   "name\": \"",
        "\xC3\xA9", "\xE2\x82", "\x82\xAC",  "\\n",        "\\u00",
        "12",       "345",      "  ",        "\n  ",       "{\"",
        "{}",       "\"\"",     "x\"}, {\"", "e\",\n  \"", "1]",
        "}]",       "    \"",   "0.",        ".5"}) {
    texts.emplace_back(text);
  }
  texts.emplace_back("");  // an id without text is never allowed
  std::mt19937 random(7);
  std::uniform_int_distribution<int> letter(0, 9);
  for (int i = 0; i < 400; ++i) {
    std::string text;
    for (int k = 0; k < 2 + i % 6; ++k) text += "ab\",: {}1[]"[letter(random)];
    texts.push_back(text);
  }
  return ListTokenizer(texts);
}

std::vector<std::shared_ptr<Grammar>> Grammars() {
  std::vector<std::shared_ptr<Grammar>> out;
  for (const char* schema :
       {R"({"type": "object"})",
        R"({"properties": {"name": {"type": "string", "maxLength": 40},
            "ab": {"type": "array", "items": {"type": ["integer", "null"]}},
            "a": {"type": "string", "pattern": "^[ab]{2,5}$"}},
            "required": ["name"], "additionalProperties": {"type": "boolean"}})",
        R"({"type": "array", "items": {"enum": ["a", "ab", {"a": 1}, 12]},
            "minItems": 1, "maxItems": 5})",
        R"({"type": "string", "maxLength": 100})"}) {
    out.push_back(GrammarFromJsonSchema(Json::parse(schema)).value().grammar);
  }
  out.push_back(
      GrammarFromGbnf("root ::= item*\nitem ::= \"{\" item* \"}\" | [ab1]+ "
                      "(\",\" | \": \") | \"\xE2\x82\xAC\"")
          .value());
  return out;
}

// What a mask must be: each token tried on its own.
std::vector<bool> ByTrying(const Matcher& matcher, const Tokenizer& tokenizer) {
  std::vector<bool> allowed;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    Matcher copy = matcher;
    const std::string text = tokenizer.TokenBytes(id);
    allowed.push_back(!tokenizer.IsSpecial(id) && !text.empty() &&
                      copy.Accept(text));
  }
  return allowed;
}

TEST(TokenMasks, AreWhatTryingEveryTokenGives) {
  const ListTokenizer tokenizer = Vocabulary();
  const auto trie = std::make_shared<const TokenTrie>(tokenizer);
  const auto n_vocab = static_cast<std::size_t>(tokenizer.vocab_size());
  std::mt19937 random(3);
  for (const auto& grammar : Grammars()) {
    for (int walk = 0; walk < 12; ++walk) {
      Matcher matcher(grammar);
      for (int step = 0; step < 30; ++step) {
        std::vector<std::uint64_t> bits((n_vocab + 63) / 64);
        matcher.AddMask(trie, bits);
        std::vector<bool> mask(n_vocab);
        std::vector<std::int32_t> ids;
        for (std::size_t id = 0; id < n_vocab; ++id) {
          mask[id] = (bits[id / 64] >> (id % 64) & 1) != 0;
          if (mask[id]) ids.push_back(static_cast<std::int32_t>(id));
        }
        ASSERT_EQ(mask, ByTrying(matcher, tokenizer));
        ASSERT_TRUE(!ids.empty() || matcher.MustEnd());
        if (ids.empty()) break;
        const std::int32_t id = ids[random() % ids.size()];
        ASSERT_TRUE(matcher.Accept(tokenizer.TokenBytes(id)));
      }
    }
  }
}

TEST(TokenMasks, EveryTextThatTheyLeadToIsJson) {
  const auto shared = std::make_shared<const ListTokenizer>(Vocabulary());
  const Tokenizer& tokenizer = *shared;
  const auto trie = std::make_shared<const TokenTrie>(tokenizer);
  const auto grammar = GrammarOfJsonObject().value();
  const std::int32_t end = tokenizer.vocab_size() - 1;
  std::mt19937 random(5);
  int n_ended = 0;
  for (int round = 0; round < 200; ++round) {
    const auto constraint = MakeGrammarConstraint(grammar, trie, shared, {end});
    std::vector<std::uint64_t> bits(
        (static_cast<std::size_t>(tokenizer.vocab_size()) + 63) / 64);
    std::string text;
    for (int step = 0; step < 60; ++step) {
      constraint->Mask(bits);
      std::vector<std::int32_t> ids;
      for (std::int32_t id = 0; id <= end; ++id) {
        if ((bits[static_cast<std::size_t>(id) / 64] >> (id % 64) & 1) != 0) {
          ids.push_back(id);
        }
      }
      ASSERT_FALSE(ids.empty()) << text;
      const bool may_end = ids.back() == end;
      const std::int32_t id = may_end ? end : ids[random() % ids.size()];
      constraint->Accept(id);
      if (id == end) {
        ++n_ended;
        EXPECT_FALSE(Json::parse(text, nullptr, false).is_discarded()) << text;
        break;
      }
      text += tokenizer.TokenBytes(id);
    }
  }
  EXPECT_GT(n_ended, 50);
}

TEST(TokenConstraint, ReturnsToAMarkAsIfNothingHadCome) {
  const auto shared = std::make_shared<const ListTokenizer>(Vocabulary());
  const Tokenizer& tokenizer = *shared;
  const auto trie = std::make_shared<const TokenTrie>(tokenizer);
  const std::int32_t end = tokenizer.vocab_size() - 1;
  const auto constraint = MakeGrammarConstraint(
      GrammarFromJsonSchema(Json::parse(R"({"enum": ["ab", "abc"]})"))
          .value()
          .grammar,
      trie, shared, {end});
  const std::size_t n_words =
      (static_cast<std::size_t>(tokenizer.vocab_size()) + 63) / 64;
  std::vector<std::uint64_t> first(n_words), later(n_words);
  constraint->Accept('"');
  const int mark = constraint->Mark();
  constraint->Mask(first);
  for (const char c : {'a', 'b', '"'}) constraint->Accept(c);
  constraint->Mask(later);
  EXPECT_NE(later[static_cast<std::size_t>(end) / 64] >> (end % 64) & 1, 0u);
  constraint->Accept(end);
  constraint->Mask(later);
  EXPECT_EQ(later, std::vector<std::uint64_t>(n_words));
  constraint->Return(mark);
  constraint->Mask(later);
  EXPECT_EQ(first, later);
}

}  // namespace
}  // namespace hearth::grammar
