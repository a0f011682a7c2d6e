#include "text/json/tokenizer_json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "base/file.h"
#include "base/json.h"
#include "hearth_test_paths.h"

namespace hearth {
namespace {

using Ids = std::vector<std::int32_t>;

std::string Data(const std::string& name) {
  return ReadTextFile(HEARTH_TEST_DATA "/tokenizers/" + name).value();
}

std::unique_ptr<Tokenizer> Load(const std::string& name) {
  return LoadTokenizerJson(Data(name + ".json"), "", name).value();
}

Ids Encode(const Tokenizer& tokenizer, std::string_view text,
           EncodeOptions options = {.add_special = false}) {
  return tokenizer.Encode(text, options).value();
}

// A vocabulary of letters with a few merges; `parts` replaces or adds members.
std::string Small(const std::string& parts, const std::string& model = "") {
  std::string vocab;
  int id = 0;
  for (const char* piece : {"a", "b", "c", "d", " ", ".", "1", "2", "ab", "cd",
                            "abcd", "\xE2\x96\x81", "A"}) {
    vocab += (id > 0 ? ",\"" : "\"") + std::string(piece) +
             "\":" + std::to_string(id);
    ++id;
  }
  return "{\"model\":{\"type\":\"BPE\",\"vocab\":{" + vocab +
         "},\"merges\":[\"a b\",[\"c\",\"d\"],\"ab cd\"]" + model + "}" +
         (parts.empty() ? "" : "," + parts) + "}";
}

std::unique_ptr<Tokenizer> MakeSmall(const std::string& parts,
                                     const std::string& model = "") {
  auto made = LoadTokenizerJson(Small(parts, model), "", "small");
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? std::move(*made) : nullptr;
}

std::vector<std::string> PiecesOf(const Tokenizer& tokenizer,
                                  std::string_view text) {
  std::vector<std::string> pieces;
  for (const auto id : Encode(tokenizer, text)) {
    pieces.push_back(tokenizer.Piece(id));
  }
  return pieces;
}
using Pieces = std::vector<std::string>;

// The ids of cases.json come from an implementation that is not ours.
TEST(TokenizerJson, IdsEqualAnotherImplementations) {
  const Json all = ParseJson(Data("cases.json"), "cases").value();
  int n = 0;
  for (const auto& [name, cases] : all.items()) {
    const auto tokenizer = Load(name);
    for (const Json& one : cases) {
      const auto text = one["text"].get<std::string>();
      EXPECT_EQ(Encode(*tokenizer, text), one["ids"].get<Ids>())
          << name << ": " << text;
      ++n;
    }
  }
  EXPECT_EQ(n, 60);
}

TEST(TokenizerJson, ByteLevelTextComesBack) {
  const auto tokenizer = Load("qwen2");
  std::mt19937 rng(11);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (auto n = rng() % 30; n > 0; --n) {
      AppendUtf8(text, static_cast<char32_t>(rng() % 3 == 0 ? rng() % 0x110000
                                                            : rng() % 128));
    }
    const Ids ids = Encode(*tokenizer, text,
                           {.add_special = false, .parse_special = false});
    ASSERT_EQ(tokenizer->Decode(ids), text);
    StreamDecoder stream(*tokenizer);
    std::string streamed;
    for (const auto id : ids) streamed += stream.Push(id);
    ASSERT_EQ(streamed + stream.Flush(), text);
  }
}

TEST(TokenizerJson, InvalidTextIsEncodedAsReplacementCharacters) {
  const auto tokenizer = Load("llama");
  EXPECT_EQ(Encode(*tokenizer, "a\xFF\xC3z"),
            Encode(*tokenizer, "a\xEF\xBF\xBD\xEF\xBF\xBDz"));
}

TEST(TokenizerJson, HostileTextTakesLinearTime) {
  for (const char* name : {"gpt2", "llama", "qwen2", "sentencepiece"}) {
    const auto tokenizer = Load(name);
    for (const std::string unit :
         {"a", " ", "l", "\n", "'", "\xF0\x9F\xA6\x99", "\xCC\x81", "\x80", "1",
          "<", "<|im_start|"}) {
      std::string text;
      const std::size_t size = unit == "a" || unit == " " ? 1'000'000 : 250'000;
      while (text.size() < size) text += unit;
      const auto start = std::chrono::steady_clock::now();
      ASSERT_TRUE(tokenizer->Encode(text + "x").ok());
      EXPECT_LT(std::chrono::steady_clock::now() - start,
                std::chrono::seconds(60))
          << name << " " << unit;
    }
  }
}

TEST(TokenizerJson, LongWordsMergeLikeShortOnes) {
  const auto tokenizer = Load("sentencepiece");
  // A long run of one pair: halves again and again, leftmost first.
  const std::string word(40, 'l');
  const std::string longer(400, 'l');
  const Ids a = Encode(*tokenizer, word), b = Encode(*tokenizer, longer);
  EXPECT_EQ(a.size(), 1 + 20u);
  EXPECT_EQ(b.size(), 1 + 200u);
}

TEST(TokenizerJson, TemplateAddsItsIds) {
  const auto tokenizer = Load("sentencepiece");
  EXPECT_EQ(tokenizer->bos_id(), 1);
  const Ids ids = Encode(*tokenizer, "the", {});
  ASSERT_FALSE(ids.empty());
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(Encode(*tokenizer, "", {}), Ids{1});
}

TEST(TokenizerJson, SpecialTokensInTextAreTextUnlessAskedFor) {
  const auto tokenizer = Load("llama");
  const Ids parsed = Encode(*tokenizer, "<|im_start|>");
  EXPECT_EQ(parsed, Ids{2});
  EXPECT_TRUE(tokenizer->IsSpecial(2));
  const Ids plain = Encode(*tokenizer, "<|im_start|>",
                           {.add_special = false, .parse_special = false});
  EXPECT_GT(plain.size(), 3u);
  EXPECT_EQ(tokenizer->Decode(plain), "<|im_start|>");
  EXPECT_EQ(tokenizer->Decode(parsed, /*skip_special=*/true), "");
}

TEST(TokenizerJson, ConfigGivesBosEosAndTheEnd) {
  const auto made = LoadTokenizerJson(
      Data("llama.json"),
      R"({"bos_token":"<|bos|>","eos_token":{"content":"<|eos|>"}})", "llama");
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ((*made)->bos_id(), 0);
  EXPECT_EQ((*made)->eos_id(), 1);
  EXPECT_TRUE((*made)->IsEnd(1));
  EXPECT_TRUE((*made)->IsEnd(3));  // <|im_end|>
  EXPECT_FALSE((*made)->IsEnd(2));
}

TEST(TokenizerJson, LlamaClassWritesItsOwnTemplate) {
  const auto made = LoadTokenizerJson(
      Data("llama.json"),
      R"({"bos_token":"<|bos|>","tokenizer_class":"LlamaTokenizerFast",
          "add_bos_token":true})",
      "llama");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(Encode(**made, "", {}), Ids{0});
}

TEST(TokenizerJson, AddedTokenRules) {
  const auto made = MakeSmall(R"("added_tokens":[
    {"id":20,"content":"<l>","lstrip":true,"special":true},
    {"id":21,"content":"<r>","rstrip":true,"special":true},
    {"id":22,"content":"word","single_word":true},
    {"id":23,"content":"wordy"},
    {"id":0,"content":"a","special":false,"single_word":true}])");
  EXPECT_EQ(PiecesOf(*made, "b  <l>b <r>  b"),
            (Pieces{"b", "<l>", "b", " ", "<r>", "b"}));
  EXPECT_EQ(PiecesOf(*made, "word.wordy.bword"),
            (Pieces{"word", ".", "wordy", ".", "b", "d"}));
  EXPECT_EQ(PiecesOf(*made, "a ab"), (Pieces{"a", " ", "ab"}));
}

TEST(TokenizerJson, NormalizedAddedTokensAreFoundAfterNormalization) {
  const auto made = MakeSmall(
      R"("normalizer":{"type":"Lowercase"},"added_tokens":[
          {"id":20,"content":"CaB","normalized":true},
          {"id":21,"content":"DaB","normalized":false}])");
  EXPECT_EQ(PiecesOf(*made, "cabCAB"), (Pieces{"CaB", "CaB"}));
  EXPECT_EQ(PiecesOf(*made, "DaBdab"), (Pieces{"DaB", "d", "ab"}));
}

TEST(TokenizerJson, Normalizers) {
  const auto pieces = [](const std::string& normalizer, std::string_view text) {
    const auto made = MakeSmall("\"normalizer\":" + normalizer);
    return made == nullptr ? Pieces{} : PiecesOf(*made, text);
  };
  EXPECT_EQ(pieces(R"({"type":"Strip"})", " \n ab  "), Pieces{"ab"});
  EXPECT_EQ(pieces(R"({"type":"Strip","strip_left":false})", " ab "),
            (Pieces{" ", "ab"}));
  EXPECT_EQ(pieces(R"({"type":"Prepend","prepend":"a"})", "b"), Pieces{"ab"});
  EXPECT_EQ(pieces(R"({"type":"Replace","pattern":{"Regex":"x+"},
                       "content":"b"})",
                   "axxx"),
            Pieces{"ab"});
  EXPECT_EQ(pieces(R"({"type":"NFKC"})", "\xEF\xBD\x81\xEF\xBD\x82"),
            Pieces{"ab"});  // full width
  EXPECT_EQ(pieces(R"({"type":"Sequence","normalizers":[{"type":"NFD"},
                       {"type":"StripAccents"},{"type":"Lowercase"}]})",
                   "\xC3\x81"
                   "B"),
            Pieces{"ab"});
}

TEST(TokenizerJson, PreTokenizers) {
  const auto pieces = [](const std::string& split, std::string_view text) {
    const auto made = MakeSmall("\"pre_tokenizer\":" + split);
    return made == nullptr ? Pieces{} : PiecesOf(*made, text);
  };
  const auto split = [&](const std::string& behavior, std::string_view text) {
    return pieces(R"({"type":"Split","pattern":{"String":"."},"behavior":")" +
                      behavior + "\"}",
                  text);
  };
  EXPECT_EQ(split("Isolated", "ab.cd"), (Pieces{"ab", ".", "cd"}));
  EXPECT_EQ(split("Removed", "ab.cd"), (Pieces{"ab", "cd"}));
  EXPECT_EQ(pieces(R"({"type":"Split","pattern":{"Regex":"[ab]"},
                       "behavior":"Isolated"})",
                   "ab"),
            (Pieces{"a", "b"}));
  EXPECT_EQ(pieces(R"({"type":"Split","pattern":{"Regex":"ab|cd"},
                       "behavior":"Removed","invert":true})",
                   "ab.cd"),
            (Pieces{"ab", "cd"}));
  EXPECT_EQ(pieces(R"({"type":"WhitespaceSplit"})", " ab cd"),
            (Pieces{"ab", "cd"}));
  EXPECT_EQ(pieces(R"({"type":"Whitespace"})", "ab.. cd"),
            (Pieces{"ab", ".", ".", "cd"}));
  EXPECT_EQ(pieces(R"({"type":"Digits","individual_digits":true})", "ab12"),
            (Pieces{"ab", "1", "2"}));
  EXPECT_EQ(pieces(R"({"type":"Punctuation"})", "ab.cd"),
            (Pieces{"ab", ".", "cd"}));
  EXPECT_EQ(pieces(R"({"type":"Metaspace"})", "ab cd"),
            (Pieces{"\xE2\x96\x81", "ab", "\xE2\x96\x81", "cd"}));
  EXPECT_EQ(pieces(R"({"type":"Metaspace","prepend_scheme":"never"})", "ab cd"),
            (Pieces{"ab", "\xE2\x96\x81", "cd"}));
  EXPECT_EQ(pieces(R"({"type":"CharDelimiterSplit","delimiter":"1"})", "ab1cd"),
            (Pieces{"ab", "cd"}));
}

TEST(TokenizerJson, IgnoreMergesTakesAWholeWord) {
  const auto vocab =
      R"({"model":{"type":"BPE","ignore_merges":true,"vocab":
          {"a":0,"b":1,"ab":2},"merges":[]}})";
  const auto made = LoadTokenizerJson(vocab, "", "t");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(Encode(**made, "ab"), Ids{2});
  EXPECT_EQ(Encode(**made, "aab"), (Ids{0, 0, 1}));
}

TEST(TokenizerJson, UnknownCharactersFuseOnlyWhenAsked) {
  const auto one = MakeSmall("", R"(,"unk_token":"A","fuse_unk":true)");
  EXPECT_EQ(PiecesOf(*one, "a??b"), (Pieces{"a", "A", "b"}));
  const auto two = MakeSmall("", R"(,"unk_token":"A","fuse_unk":false)");
  EXPECT_EQ(PiecesOf(*two, "a??b"), (Pieces{"a", "A", "A", "b"}));
  EXPECT_EQ(PiecesOf(*MakeSmall(""), "a??b"), Pieces{"ab"});
}

TEST(TokenizerJson, FirstSpaceIsDroppedOnceAndNotInTheMiddle) {
  const auto tokenizer = Load("sentencepiece");
  const Ids ids = Encode(*tokenizer, "the and");
  EXPECT_EQ(tokenizer->Decode(ids), "the and");
  StreamDecoder onward(*tokenizer, true, /*at_start=*/false);
  EXPECT_EQ(onward.Push(ids[0]), " the");
}

struct Refusal {
  Code code;
  std::string json, names;
};

TEST(TokenizerJson, WhatIsNotSupportedIsRefusedByName) {
  const Refusal refusals[] = {
      {Code::kUnsupported, R"({"model":{"type":"Unigram","vocab":[]}})",
       "Unigram"},
      {Code::kUnsupported, R"({"model":{"unk_id":2,"vocab":[]}})", "Unigram"},
      {Code::kUnsupported, R"({"model":{"type":"WordPiece"}})", "WordPiece"},
      {Code::kUnsupported, Small("", R"(,"dropout":0.1)"), "dropout"},
      {Code::kUnsupported, Small(R"("normalizer":{"type":"Precompiled"})"),
       "Precompiled"},
      {Code::kUnsupported, Small(R"("pre_tokenizer":{"type":"Sequence",
        "pretokenizers":[{"type":"UnicodeScripts"}]})"),
       "UnicodeScripts"},
      {Code::kUnsupported, Small(R"("decoder":{"type":"WordPiece"})"),
       "decoder.WordPiece"},
      {Code::kUnsupported, Small(R"("post_processor":{"type":"Odd"})"), "Odd"},
      {Code::kUnsupported, Small(R"("pre_tokenizer":{"type":"Split",
        "pattern":{"Regex":"[a&&b]"},"behavior":"Isolated"})"),
       "&&"},
      {Code::kCorrupt, "", "JSON"},
      {Code::kCorrupt, "[]", "object"},
      {Code::kCorrupt, "{}", "\"model\""},
      {Code::kCorrupt, R"({"model":{"type":"BPE"}})", "model.vocab"},
      {Code::kCorrupt, R"({"model":{"vocab":{"a":-1},"merges":[]}})",
       "model.vocab"},
      {Code::kCorrupt, R"({"model":{"vocab":{"a":9999999999},"merges":[]}})",
       "model.vocab"},
      {Code::kCorrupt, R"({"model":{"vocab":{"a":0,"b":0},"merges":[]}})",
       "id 0 is given twice"},
      {Code::kCorrupt, R"({"model":{"vocab":{"a":0},"merges":["a b"]}})",
       "merge 0"},
      {Code::kCorrupt, R"({"model":{"vocab":{"a":0},"merges":["aa"]}})",
       "merge 0"},
      {Code::kCorrupt, R"({"model":{"vocab":{"a":0},"merges":[7]}})",
       "merge 0"},
      {Code::kCorrupt, Small(R"("added_tokens":[{"id":2,"content":"zz"}])"),
       "added_tokens"},
      {Code::kCorrupt, Small(R"("added_tokens":[{"id":50,"content":"ab"}])"),
       "added_tokens"},
      {Code::kCorrupt,
       Small(R"("added_tokens":[{"id":60000000,"content":"zz"}])"),
       "added_tokens"},
      {Code::kCorrupt, Small(R"("post_processor":{"type":"TemplateProcessing",
        "single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}]})"),
       "special_tokens"},
  };
  for (const Refusal& one : refusals) {
    const auto made = LoadTokenizerJson(one.json, "", "dir/tokenizer.json");
    ASSERT_FALSE(made.ok()) << one.json;
    EXPECT_EQ(made.error().code, one.code) << made.error().message;
    EXPECT_EQ(made.error().message.find("dir/tokenizer.json"), 0u);
    EXPECT_NE(made.error().message.find(one.names), std::string::npos)
        << made.error().message;
  }
}

TEST(TokenizerJson, DeepNestingIsAnError) {
  std::string json;
  for (int i = 0; i < 100000; ++i) json += "{\"model\":";
  EXPECT_FALSE(LoadTokenizerJson(json, "", "t").ok());
  std::string steps = R"({"type":"NFC"})";
  for (int i = 0; i < 40; ++i) {
    steps = R"({"type":"Sequence","normalizers":[)" + steps + "]}";
  }
  EXPECT_FALSE(
      LoadTokenizerJson(Small("\"normalizer\":" + steps), "", "t").ok());
}

TEST(TokenizerJson, FingerprintNamesWhatDecidesIds) {
  const auto a = MakeSmall(""), b = MakeSmall("");
  EXPECT_EQ(a->Fingerprint(), b->Fingerprint());
  EXPECT_FALSE(a->Fingerprint() ==
               MakeSmall(R"("normalizer":{"type":"NFC"})")->Fingerprint());
  EXPECT_FALSE(a->Fingerprint() == MakeByteTokenizer()->Fingerprint());
}

TEST(ByteTokenizer, IdsAreBytes) {
  const auto bytes = MakeByteTokenizer();
  EXPECT_EQ(Encode(*bytes, "a\xFF"), (Ids{97, 255}));
  EXPECT_EQ(bytes->Decode(Ids{0xC3, 0xA9, 300, -1}), "\xC3\xA9");
  StreamDecoder stream(*bytes);
  EXPECT_EQ(stream.Push(0xC3), "");
  EXPECT_EQ(stream.Push(0xA9), "\xC3\xA9");
}

// As add_tokens() of the reference library leaves them on Llama and Mistral.
TEST(TokenizerJson, BlankBeforeANormalizedAddedTokenComesBack) {
  const auto made = LoadTokenizerJson(
      R"({"normalizer":{"type":"Sequence","normalizers":[
            {"type":"Prepend","prepend":"\u2581"},
            {"type":"Replace","pattern":{"String":" "},"content":"\u2581"}]},
          "decoder":{"type":"Sequence","decoders":[
            {"type":"Replace","pattern":{"String":"\u2581"},"content":" "},
            {"type":"Fuse"},
            {"type":"Strip","content":" ","start":1,"stop":0}]},
          "added_tokens":[{"id":5,"content":"<tool>","single_word":false,
            "lstrip":false,"rstrip":false,"normalized":true,"special":false}],
          "model":{"type":"BPE","vocab":{"a":0,"b":1,"\u2581":2,
            "\u2581a":3,"\u2581b":4},
            "merges":["\u2581 a","\u2581 b"]}})",
      "", "t");
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Ids ids = Encode(**made, "a <tool> b", {.add_special = false});
  EXPECT_EQ(ids, (Ids{3, 5, 4}));
  EXPECT_EQ((*made)->Decode(ids), "a <tool> b");
  EXPECT_EQ((*made)->Decode(Ids{5, 4}), "<tool> b");
  EXPECT_EQ((*made)->Piece(5), "<tool>");
}

}  // namespace
}  // namespace hearth
