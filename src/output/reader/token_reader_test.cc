#include "output/reader/token_reader.h"

#include <gtest/gtest.h>

#include "output/families.h"
#include "output/mask/answer_constraint.h"
#include "output/reader_testing.h"

namespace hearth::output {
namespace {

constexpr std::int32_t kThink = 256, kCall = 257, kEnd = 258;

// Bytes, and three tokens: a special one, one whose text shows, and an end.
class SmallVocabulary final : public Tokenizer {
 public:
  std::string_view kind() const override { return "test"; }
  Result<std::vector<std::int32_t>> Encode(std::string_view text,
                                           EncodeOptions) const override {
    for (const std::int32_t id : {kThink, kCall, kEnd}) {
      if (text == Piece(id)) return std::vector<std::int32_t>{id};
    }
    return std::vector<std::int32_t>(text.begin(), text.end());
  }
  std::int32_t vocab_size() const override { return 259; }
  std::optional<std::int32_t> bos_id() const override { return std::nullopt; }
  std::optional<std::int32_t> eos_id() const override { return kEnd; }
  std::span<const std::int32_t> end_ids() const override { return ends_; }
  void AddEnds(std::span<const std::int32_t>) override {}
  bool IsSpecial(std::int32_t id) const override {
    return id == kThink || id == kEnd;
  }
  std::string Piece(std::int32_t id) const override {
    if (id == kThink) return "<think>";
    if (id == kCall) return "<tool_call>";
    if (id == kEnd) return "<end>";
    return {static_cast<char>(id)};
  }
  std::optional<std::int32_t> FindPiece(std::string_view) const override {
    return std::nullopt;
  }
  void AppendBytes(std::int32_t id, bool, std::string& out) const override {
    out += Piece(id);
  }
  Digest Fingerprint() const override { return {}; }

 private:
  std::vector<std::int32_t> ends_{kEnd};
};

std::shared_ptr<const Program> Hermes() {
  return std::make_shared<const Program>(
      WithTokens(*FamilyNamed("hermes"),
                 [](std::string_view spelling) -> std::optional<std::int32_t> {
                   if (spelling == "<think>") return kThink;
                   if (spelling == "<tool_call>") return kCall;
                   return std::nullopt;
                 }));
}

constexpr const char* kTools = R"([{"name": "f", "parameters": {}}])";

// `text_behind`: a token's text comes so many tokens later, as where the
// beginning of a stop text is held back.
std::string ReadTokens(const std::vector<std::int32_t>& ids,
                       std::size_t text_behind) {
  const auto vocabulary = std::make_shared<const SmallVocabulary>();
  const auto reader =
      MakeTokenReader(Hermes(), Tools(kTools), vocabulary, false);
  std::vector<AnswerEvent> all;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < ids.size() + text_behind; ++i) {
    const bool is_token = i < ids.size();
    texts.push_back(is_token && !vocabulary->IsSpecial(ids[i])
                        ? vocabulary->Piece(ids[i])
                        : "");
    const std::string text = i >= text_behind ? texts[i - text_behind] : "";
    for (AnswerEvent& event :
         reader->Feed({.id = is_token ? ids[i] : -1, .text = text})) {
      all.push_back(std::move(event));
    }
  }
  for (AnswerEvent& event : reader->Finish()) all.push_back(std::move(event));
  return Shown(all);
}

std::vector<std::int32_t> Ids(
    std::initializer_list<std::pair<std::int32_t, std::string>> parts) {
  std::vector<std::int32_t> ids;
  for (const auto& [token, text] : parts) {
    if (token >= 0) ids.push_back(token);
    ids.insert(ids.end(), text.begin(), text.end());
  }
  return ids;
}

TEST(TokenReader, AMarkerCountsOnlyAsItsToken) {
  const auto ids = Ids({{kThink, "hm</think>say <tool_call>{} "},
                        {kCall, "{\"name\": \"f\", \"arguments\": {}}"}});
  for (const std::size_t behind : {0u, 1u, 5u}) {
    EXPECT_EQ(ReadTokens(ids, behind), "R:hm|T:say <tool_call>{}|C0:f({})|");
  }
}

TEST(TokenReader, MasksKnowAMarkerByItsTokenToo) {
  const auto vocabulary = std::make_shared<const SmallVocabulary>();
  std::vector<std::string> notes;
  const auto make = ConstrainAnswer({.program = Hermes(),
                                     .tokenizer = vocabulary,
                                     .trie = TrieFor(*Hermes(), *vocabulary)},
                                    ToolSet::Parse(kTools).value(), {}, notes);
  ASSERT_TRUE(make.ok());
  const auto constraint = (*make)();
  const auto allows = [&](std::int32_t id) {
    std::vector<std::uint64_t> bits(5);
    constraint->Mask(bits);
    return (bits[static_cast<std::size_t>(id) / 64] >> (id % 64) & 1) != 0;
  };
  // Written as text it is text; 0xFF and a number are no token's code.
  for (const std::int32_t id : Ids({{-1, "<tool_call>x"}})) {
    ASSERT_TRUE(allows(id));
    constraint->Accept(id);
  }
  EXPECT_TRUE(allows(kEnd));
  EXPECT_FALSE(allows(0xFF));
  ASSERT_TRUE(allows(kCall));
  constraint->Accept(kCall);
  EXPECT_FALSE(allows('x'));
  EXPECT_FALSE(allows(kEnd));
  EXPECT_TRUE(allows('{'));
}

}  // namespace
}  // namespace hearth::output
