#include <gtest/gtest.h>

#include "text/gguf/gguf_pre.h"
#include "text/gguf/gguf_vocab.h"
#include "text/split/regex.h"
#include "text/unicode/byte_alphabet.h"

namespace hearth {
namespace {

using Ids = std::vector<std::int32_t>;

// Strings that live as long as the test, for the views of a GgufVocab.
struct Strings {
  std::vector<std::string> tokens, merges;
  GgufVocab vocab;

  GgufVocab& Views() {
    vocab.what = "model.gguf";
    vocab.tokens.assign(tokens.begin(), tokens.end());
    vocab.merges.assign(merges.begin(), merges.end());
    return vocab;
  }
};

constexpr int kNormal = 1, kUnknown = 2, kControl = 3, kUser = 4, kByte = 6;

// 0 <unk>, 1 <s>, 2 </s>, 3..258 bytes, then pieces.
Strings SentencePiece() {
  Strings s;
  s.vocab.model = "llama";
  const auto add = [&s](const std::string& token, float score, int type) {
    s.tokens.push_back(token);
    s.vocab.scores.push_back(score);
    s.vocab.token_types.push_back(type);
  };
  add("<unk>", 0, kUnknown);
  add("<s>", 0, kControl);
  add("</s>", 0, kControl);
  for (int b = 0; b < 256; ++b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", b);
    add(name, 0, kByte);
  }
  const std::string mark = "\xE2\x96\x81";
  add(mark, -10, kNormal);         // 259
  add("a", -11, kNormal);          // 260
  add("b", -12, kNormal);          // 261
  add("ab", -2, kNormal);          // 262
  add("ba", -1, kNormal);          // 263
  add(mark + "a", -3, kNormal);    // 264
  add("<|im_end|>", 0, kControl);  // 265
  add("<tool>", 0, kUser);         // 266
  return s;
}

Strings ByteLevel(const std::string& pre) {
  Strings s;
  s.vocab.model = "gpt2";
  s.vocab.pre = pre;
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    std::string spelled;
    AppendSpelled(spelled, {&c, 1});
    s.tokens.push_back(spelled);
    s.vocab.token_types.push_back(kNormal);
  }
  for (const char* token : {"ab",
                            "\xC4\xA0"
                            "ab",
                            "<|eot|>", "  "}) {
    s.tokens.push_back(token);
  }
  s.vocab.token_types.insert(s.vocab.token_types.end(),
                             {kNormal, kNormal, kControl, kUser});
  s.merges = {"a b", "\xC4\xA0 ab"};
  return s;
}

Ids Encode(Strings& strings, std::string_view text, EncodeOptions options) {
  const auto made = MakeGgufTokenizer(strings.Views());
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? (*made)->Encode(text, options).value() : Ids{};
}

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};

TEST(GgufTokenizer, BestScoreMergesFirstThenLeftmost) {
  Strings s = SentencePiece();
  s.vocab.add_space_prefix = false;
  EXPECT_EQ(Encode(s, "ab", kPlain), Ids{262});
  EXPECT_EQ(Encode(s, "aba", kPlain), (Ids{260, 263}));  // ba is better
  EXPECT_EQ(Encode(s, "baba", kPlain), (Ids{263, 263}));
}

TEST(GgufTokenizer, SpacePrefixAndBosAreTheDefaults) {
  Strings s = SentencePiece();
  EXPECT_EQ(Encode(s, "a", {}), (Ids{1, 264}));
  s.vocab.add_bos = false;
  s.vocab.add_eos = true;
  EXPECT_EQ(Encode(s, "a", {}), (Ids{264, 2}));
}

TEST(GgufTokenizer, UnknownCharactersFallBackToBytes) {
  Strings s = SentencePiece();
  s.vocab.add_space_prefix = false;
  EXPECT_EQ(Encode(s, "\xC3\xA9", kPlain), (Ids{3 + 0xC3, 3 + 0xA9}));
}

TEST(GgufTokenizer, ControlPiecesNeedAskingUserPiecesDoNot) {
  Strings s = SentencePiece();
  s.vocab.add_space_prefix = false;
  EXPECT_EQ(Encode(s, "a<tool>b", kPlain), (Ids{260, 266, 261}));
  EXPECT_EQ(Encode(s, "</s>", {.add_special = false}), Ids{2});
  EXPECT_GT(Encode(s, "</s>", kPlain).size(), 3u);
}

TEST(GgufTokenizer, EndIdsHoldEosEotAndKnownMarkers) {
  Strings s = SentencePiece();
  const auto made = MakeGgufTokenizer(s.Views()).value();
  EXPECT_EQ(Ids(made->end_ids().begin(), made->end_ids().end()), (Ids{2, 265}));
  made->AddEnds(Ids{266, 2, -1, 99999});
  EXPECT_EQ(Ids(made->end_ids().begin(), made->end_ids().end()),
            (Ids{2, 265, 266}));
  EXPECT_TRUE(made->IsEnd(266));
  EXPECT_FALSE(made->IsEnd(1));
}

// As in files whose writer took the tokens of chats for plain pieces.
TEST(GgufTokenizer, EndTokensAreControlTokensWhateverTheFileSays) {
  for (const int type : {kNormal, kUser, kControl}) {
    Strings s = SentencePiece();
    s.vocab.add_space_prefix = false;
    s.vocab.token_types[265] = type;
    const auto made = MakeGgufTokenizer(s.Views()).value();
    EXPECT_TRUE(made->IsEnd(265)) << type;
    EXPECT_TRUE(made->IsSpecial(265)) << type;
    EXPECT_EQ(Encode(s, "a<|im_end|>", {.add_special = false}), (Ids{260, 265}))
        << type;
  }
  Strings s = ByteLevel("gpt-2");
  for (const char* end : {"[EOS]", "[EOT]", "<eos>", "<turn|>"}) {
    s.tokens[259] = end;
    EXPECT_TRUE(MakeGgufTokenizer(s.Views()).value()->IsEnd(259)) << end;
  }
  s.tokens[259] = "</s>";
  EXPECT_FALSE(MakeGgufTokenizer(s.Views()).value()->IsEnd(259));
}

TEST(GgufTokenizer, Phi3MarkersTakeTheWhiteSpaceBehindThem) {
  Strings s = SentencePiece();
  s.vocab.add_space_prefix = false;
  s.vocab.general_name = "Phi-3 Mini";
  EXPECT_EQ(Encode(s, "</s>\n a", {.add_special = false}), (Ids{2, 260}));
}

TEST(GgufTokenizer, ByteLevelMergesByRank) {
  Strings s = ByteLevel("gpt-2");
  EXPECT_EQ(Encode(s, "ab ab", kPlain), (Ids{256, 257}));
  EXPECT_EQ(Encode(s, "<|eot|>  ab", {.add_special = false}),
            (Ids{258, 259, 256}));
  const auto made = MakeGgufTokenizer(s.Views()).value();
  EXPECT_EQ(made->Decode(Ids{257, 258, 259}), " ab<|eot|>  ");
  EXPECT_EQ(made->Piece(257),
            "\xC4\xA0"
            "ab");
  EXPECT_EQ(made->FindPiece("\xC4\xA0"
                            "ab"),
            257);
  EXPECT_EQ(made->Decode(Ids{257, 258}, /*skip_special=*/true), " ab");
}

TEST(GgufTokenizer, EveryNamedPreTokenizerLoadsAndKeepsText) {
  for (const char* pre : {"",
                          "default",
                          "llama3",
                          "llama-bpe",
                          "falcon3",
                          "pixtral",
                          "dbrx",
                          "smaug-bpe",
                          "chatglm-bpe",
                          "glm4",
                          "qwen2",
                          "deepseek-r1-qwen",
                          "stablelm2",
                          "hunyuan",
                          "gpt-2",
                          "phi-2",
                          "mpt",
                          "olmo",
                          "jais",
                          "roberta-bpe",
                          "falcon",
                          "starcoder",
                          "refact",
                          "command-r",
                          "smollm",
                          "codeshell",
                          "exaone",
                          "minerva-7b",
                          "deepseek-llm",
                          "deepseek-coder",
                          "deepseek-v3",
                          "gpt-4o",
                          "llama4",
                          "kimi-k2",
                          "tekken",
                          "poro-chat",
                          "bloom",
                          "gpt3-finnish",
                          "viking"}) {
    Strings s = ByteLevel(pre);
    const auto made = MakeGgufTokenizer(s.Views());
    ASSERT_TRUE(made.ok()) << made.error().message;
    const std::string text =
        "It's 12345 \xE4\xB8\xAD\xE6\x96\x87, (caf\xC3\xA9)|.  \n\n\tEnd's  ";
    const auto ids = (*made)->Encode(text, kPlain);
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    EXPECT_EQ((*made)->Decode(*ids), text) << pre;
  }
}

// By hand from the pattern in the model's own tokenizer: letters split where
// case rises, Chinese characters from all others, digits by three.
TEST(GgufTokenizer, KimiK2SplitsWordsByCaseAndScript) {
  const auto pre = FindGgufPre("kimi-k2", "t");
  ASSERT_TRUE(pre.ok()) << pre.error().message;
  ASSERT_EQ(pre->patterns.size(), 1u);
  const Regex regex = Regex::Compile(pre->patterns[0], "t").value();
  const auto pieces = [&](std::string_view text) {
    RegexScratch scratch;
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      const auto match = regex.Find(text, i, scratch);
      if (!match.ok() || !match->found || match->start != i) return out + "?";
      out += (out.empty() ? "" : "_");
      out += text.substr(i, match->end - i);
      i = match->end;
    }
    return out;
  };
  EXPECT_EQ(pieces("getUserName iPhone HTTPServer"),
            "get_User_Name_ i_Phone_ HTTPServer");
  EXPECT_EQ(pieces("It's DON'T 12345"), "It's_ DON'T_ _123_45");
  EXPECT_EQ(pieces("ab\u4E2D\u6587cd \u4E2D\u3005\u3007."),
            "ab_\u4E2D\u6587_cd_ _\u4E2D\u3005\u3007_.");
  // Kana are letters of the other alternatives; a mark goes with its letter.
  EXPECT_EQ(pieces("\u4E2D\u30AB\u30CAe\u0301!\n\n  x"),
            "\u4E2D_\u30AB\u30CAe\u0301_!\n\n_ _ x");
}

TEST(GgufTokenizer, AMissingPreTokenizerIsSaid) {
  Strings unnamed = ByteLevel(""), named = ByteLevel("default");
  EXPECT_EQ(MakeGgufTokenizer(unnamed.Views()).value()->kind(),
            "byte-level BPE, pre-tokenizer not named");
  EXPECT_EQ(MakeGgufTokenizer(named.Views()).value()->kind(), "byte-level BPE");
}

TEST(GgufTokenizer, HostileTextTakesLinearTimeWithEveryPattern) {
  for (const char* pre :
       {"default", "falcon", "deepseek-llm", "deepseek-coder", "deepseek-v3",
        "bloom", "viking", "starcoder", "kimi-k2"}) {
    Strings s = ByteLevel(pre);
    const auto made = MakeGgufTokenizer(s.Views()).value();
    for (const char unit : {' ', '\n', 'a', '1', '.', '\''}) {
      EXPECT_TRUE(made->Encode(std::string(300'000, unit) + "x").ok())
          << pre << " " << unit;
    }
  }
}

TEST(GgufTokenizer, FaultsAreNamed) {
  struct Fault {
    Code code;
    std::string names;
    void (*make)(Strings&);
  };
  const Fault faults[] = {
      {Code::kUnsupported, "\"bert\"",
       [](Strings& s) { s.vocab.model = "bert"; }},
      {Code::kUnsupported, "\"new-one\"",
       [](Strings& s) { s.vocab.pre = "new-one"; }},
      {Code::kCorrupt, "tokens", [](Strings& s) { s.tokens.clear(); }},
      {Code::kCorrupt, "token_type",
       [](Strings& s) { s.vocab.token_types.pop_back(); }},
      {Code::kCorrupt, "scores", [](Strings& s) { s.vocab.scores = {1}; }},
      {Code::kCorrupt, "merges is missing",
       [](Strings& s) { s.merges.clear(); }},
      {Code::kCorrupt, "merges[1]", [](Strings& s) { s.merges[1] = "xy"; }},
      {Code::kCorrupt, "merges[0]", [](Strings& s) { s.merges[0] = "a c"; }},
      {Code::kCorrupt, "bos id", [](Strings& s) { s.vocab.bos = 99999; }},
      {Code::kCorrupt, "eos id", [](Strings& s) { s.vocab.eos = -7; }},
  };
  for (const Fault& fault : faults) {
    Strings s = ByteLevel("gpt-2");
    fault.make(s);
    const auto made = MakeGgufTokenizer(s.Views());
    ASSERT_FALSE(made.ok()) << fault.names;
    EXPECT_EQ(made.error().code, fault.code) << made.error().message;
    EXPECT_EQ(made.error().message.find("model.gguf"), 0u);
    EXPECT_NE(made.error().message.find(fault.names), std::string::npos)
        << made.error().message;
  }
}

TEST(GgufTokenizer, AnEmptyListOfMergesIsAVocabularyOfBytes) {
  Strings s = ByteLevel("gpt-2");
  s.merges.clear();
  s.vocab.merges_given = true;
  const auto made = MakeGgufTokenizer(s.Views());
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(*(*made)->Encode("ab"), (Ids{'a', 'b'}));
}

TEST(GgufTokenizer, WhatItsOwnKeysCannotSayComesFromOneMore) {
  Strings s = ByteLevel("gpt-2");
  s.vocab.pipeline =
      R"({"normalizer":{"type":"NFC"},
          "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true,
                           "use_regex":true},
          "added_tokens":[{"id":258,"rstrip":true}],
          "post_processor":{"type":"TemplateProcessing",
            "single":[{"SpecialToken":{"id":"x","type_id":0}},
                      {"Sequence":{"id":"A","type_id":0}}],
            "special_tokens":{"x":{"id":"x","ids":[258],"tokens":["x"]}}},
          "ends":[65]})";
  const auto made = MakeGgufTokenizer(s.Views());
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(*(*made)->Encode("ab"), (Ids{258, 257}));
  EXPECT_EQ((*made)->Encode("<|eot|>   ab")->size(), 3u) << "blanks are gone";
  // A letter and a combining accent are one letter of two bytes.
  EXPECT_EQ((*made)->Encode("e\xCC\x81")->size(), 1u + 1u + 2u);
  EXPECT_TRUE((*made)->IsEnd(65));
}

TEST(GgufTokenizer, FaultsOfTheExtraKeyAreNamed) {
  for (const char* json :
       {"[]", "{", R"({"added_tokens":[{"id":5}]})", R"({"added_tokens":{}})",
        R"({"added_tokens":[{"id":258,"rstrip":1}]})", R"({"ends":[-1]})",
        R"({"ends":[99999]})", R"({"normalizer":{"type":7}})"}) {
    Strings s = ByteLevel("gpt-2");
    s.vocab.pipeline = json;
    const auto made = MakeGgufTokenizer(s.Views());
    ASSERT_FALSE(made.ok()) << json;
    EXPECT_EQ(made.error().code, Code::kCorrupt) << json;
    EXPECT_EQ(made.error().message.find("model.gguf"), 0u);
  }
}

TEST(GgufTokenizer, ScoresMustBeNumbers) {
  Strings s = SentencePiece();
  s.vocab.scores[5] = __builtin_nanf("");
  EXPECT_FALSE(MakeGgufTokenizer(s.Views()).ok());
}

// 0 <unk>, 1 <eos>, 2 <bos>, 3..258 bytes, then pieces.
Strings CharacterLevel() {
  Strings s = SentencePiece();
  s.vocab.model = "gemma4";
  s.vocab.scores.clear();
  s.vocab.bos = 2;
  s.vocab.eos = 1;
  const auto add = [&s](const std::string& token) {
    s.tokens.push_back(token);
    s.vocab.token_types.push_back(kNormal);
  };
  add("\n");        // 267
  add("\n\n");      // 268
  add("\xC3\xA9");  // 269, one character of two bytes
  add("\xC3\xA9"
      "a");  // 270
  const std::string mark = "\xE2\x96\x81";
  s.merges = {"b a", mark + " a", "a b", "\n \n", "\xC3\xA9 a"};
  return s;
}

TEST(GgufTokenizer, CharactersAreMergedByRankAndNewlinesStandAlone) {
  Strings s = CharacterLevel();
  EXPECT_EQ(Encode(s, "a", {}), (Ids{2, 260})) << "no space is put in front";
  EXPECT_EQ(Encode(s, "aba", kPlain), (Ids{260, 263})) << "ba comes first";
  EXPECT_EQ(Encode(s, "b a", kPlain), (Ids{261, 264}));
  EXPECT_EQ(Encode(s,
                   "\xC3\xA9"
                   "a",
                   kPlain),
            Ids{270});
  EXPECT_EQ(Encode(s, "\n\na", kPlain), (Ids{268, 260}));
  EXPECT_EQ(Encode(s, "\xC3\xA8", kPlain), (Ids{3 + 0xC3, 3 + 0xA8}));
  const auto made = MakeGgufTokenizer(s.Views());
  ASSERT_TRUE(made.ok());
  std::string text;
  for (const std::int32_t id : {261, 264, 3 + 0xC3, 3 + 0xA8}) {
    (*made)->AppendBytes(id, text.empty(), text);
  }
  EXPECT_EQ(text, "b a\xC3\xA8");
}

}  // namespace
}  // namespace hearth
