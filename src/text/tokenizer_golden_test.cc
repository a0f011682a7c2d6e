// Ids against reference data that lies outside the repository; every test here
// is skipped where that data is missing. What a fresh clone checks is in
// tokenizer_json_test.cc.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "hearth_test_paths.h"
#include "testing/gguf_vocab_file.h"
#include "text/gguf/gguf_vocab.h"
#include "text/json/tokenizer_json.h"
#include "text/pipeline_tokenizer.h"

namespace hearth {
namespace {

const std::string kShared = HEARTH_SHARED;

std::string ReadMaybeGzip(const std::string& path) {
  if (std::filesystem::exists(path)) return ReadTextFile(path).value();
  std::string text;
  FILE* pipe = ::popen(("gzip -dc '" + path + ".gz'").c_str(), "r");
  if (pipe == nullptr) return text;
  char buffer[65536];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    text.append(buffer, n);
  }
  ::pclose(pipe);
  return text;
}

std::vector<std::int32_t> Ids(const Json& list) {
  return list.get<std::vector<std::int32_t>>();
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, IdsAndTextEqualTheReference) {
  const std::string name = GetParam();
  const std::string file = kShared + "/fixtures/tokenizers/" + name + ".json";
  if (!std::filesystem::exists(file)) GTEST_SKIP();
  const std::string text =
      ReadMaybeGzip(kShared + "/models/tokenizers/" + name + "/tokenizer.json");
  auto made = LoadTokenizerJson(text, "", name);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Tokenizer& tokenizer = **made;
  const Json golden = ParseJson(ReadTextFile(file).value(), file).value();
  for (const Json& one : golden["cases"]) {
    const auto input = one["text"].get<std::string>();
    const auto ids =
        tokenizer.Encode(input, {.add_special = false, .parse_special = true});
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    EXPECT_EQ(*ids, Ids(one["ids"])) << input;
    EXPECT_EQ(tokenizer.Decode(Ids(one["ids"])), one["decoded"]) << input;
  }
  for (const Json& one : golden["special_cases"]) {
    const auto input = one["text"].get<std::string>();
    const bool add = one.value("add_special_tokens", false);
    const auto ids =
        tokenizer.Encode(input, {.add_special = add, .parse_special = true});
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    EXPECT_EQ(*ids, Ids(one["ids"])) << input;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Golden,
                         testing::Values("deepseek-v3", "falcon", "gpt-neox",
                                         "gpt-oss", "olmo2-dolma2", "phi-2",
                                         "phi-3-mini", "qwen3"));

TEST(GoldenGguf, StoriesPromptHasTheReferenceIds) {
  const auto file = MappedFile::Open(kShared + "/models/stories260K.gguf");
  if (!file.ok()) GTEST_SKIP();
  const auto made = MakeGgufTokenizer(
      ReadGgufVocabForTest(file->bytes(), "stories260K.gguf"));
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto ids = (*made)->Encode("Once upon a time");
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<std::int32_t>{1, 403, 407, 261, 378}));
  EXPECT_EQ((*made)->Decode(*ids, /*skip_special=*/true), "Once upon a time");
}

// Texts and ids as llama.cpp keeps them: blocks in .inp, a line each in .out.
struct Vector {
  std::string text;
  std::vector<std::int32_t> ids;
};
std::vector<Vector> ReadVectors(const std::string& name) {
  const std::string base = kShared +
                           "/models/tokenizer-vectors/llama.cpp/ggml-vocab-" +
                           name + ".gguf";
  const std::string input = ReadTextFile(base + ".inp").value();
  std::istringstream lines(ReadTextFile(base + ".out").value());
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<Vector> vectors;
  std::string line;
  for (std::size_t at = 0; std::getline(lines, line);) {
    const std::size_t end = input.find(separator, at);
    Vector one{input.substr(at, end - at), {}};
    at = end == std::string::npos ? input.size() : end + separator.size();
    std::istringstream numbers(line);
    for (std::int32_t id; numbers >> id;) one.ids.push_back(id);
    vectors.push_back(std::move(one));
  }
  return vectors;
}

void ExpectVectors(const Tokenizer& tokenizer, const std::string& name) {
  int n = 0;
  for (const Vector& one : ReadVectors(name)) {
    const auto ids = tokenizer.Encode(
        one.text, {.add_special = false, .parse_special = false});
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    EXPECT_EQ(*ids, one.ids) << one.text;
    ++n;
  }
  EXPECT_GT(n, 40);
}

class GgufVectors : public testing::TestWithParam<const char*> {};

TEST_P(GgufVectors, IdsEqualLlamaCpp) {
  const std::string name = GetParam();
  const auto file = MappedFile::Open(
      kShared + "/models/gguf-vocab/ggml-vocab-" + name + ".gguf");
  if (!file.ok()) GTEST_SKIP();
  const auto made =
      MakeGgufTokenizer(ReadGgufVocabForTest(file->bytes(), name));
  ASSERT_TRUE(made.ok()) << made.error().message;
  ExpectVectors(**made, name);
}

INSTANTIATE_TEST_SUITE_P(Files, GgufVectors,
                         testing::Values("falcon", "gpt-2", "mpt", "phi-3"));

TEST(GoldenGguf, GptNeoxVocabularyAgreesWithItsTokenizerJson) {
  const auto file =
      MappedFile::Open(kShared + "/models/gguf-vocab/ggml-vocab-gpt-neox.gguf");
  if (!file.ok()) GTEST_SKIP();
  GgufVocab vocab = ReadGgufVocabForTest(file->bytes(), "gpt-neox");
  vocab.pre = "gpt-2";
  const auto gguf = MakeGgufTokenizer(vocab);
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  ExpectVectors(**gguf, "mpt");  // one vocabulary under two names
}

TEST(GoldenGguf, WordPieceVocabularyIsRefusedByName) {
  const auto file =
      MappedFile::Open(kShared + "/models/gguf-vocab/ggml-vocab-bert-bge.gguf");
  if (!file.ok()) GTEST_SKIP();
  const auto made =
      MakeGgufTokenizer(ReadGgufVocabForTest(file->bytes(), "bge.gguf"));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kUnsupported);
  EXPECT_NE(made.error().message.find("\"bert\""), std::string::npos);
}

TEST(GoldenJson, Qwen3FileGivesLlamaCppsQwen2Ids) {
  const std::string path = kShared + "/models/tokenizers/qwen3/tokenizer.json";
  if (!std::filesystem::exists(path + ".gz")) GTEST_SKIP();
  const auto made = LoadTokenizerJson(ReadMaybeGzip(path), "", "qwen3");
  ASSERT_TRUE(made.ok()) << made.error().message;
  ExpectVectors(**made, "qwen2");
  ExpectVectors(**made, "deepseek-r1-qwen");
}

// Llama 3's ranks: a piece and its rank a line. Pieces merge whenever their
// joined bytes are a piece, lowest rank first, which is merging by score.
TEST(GoldenJson, Llama3RanksGiveLlamaCppsIds) {
  const std::string path =
      kShared + "/models/tokenizers/llama3/tokenizer.model";
  if (!std::filesystem::exists(path)) GTEST_SKIP();
  const auto value_of = [](char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : 63;
  };
  std::istringstream lines(ReadTextFile(path).value());
  VocabBuilder builder(130000, 1 << 20);
  std::vector<std::uint32_t> priority;
  std::string base64;
  for (std::uint32_t rank; lines >> base64 >> rank;) {
    std::string piece;
    unsigned bits = 0, n_bits = 0;
    for (const char c : base64) {
      if (c == '=') break;
      bits = bits << 6 | static_cast<unsigned>(value_of(c));
      n_bits += 6;
      if (n_bits < 8) continue;
      n_bits -= 8;
      piece.push_back(static_cast<char>(bits >> n_bits & 0xFF));
    }
    builder.Add(piece, kPiecePresent | kPieceFindable | kPieceRawBytes);
    priority.push_back(rank);
  }
  TokenizerSpec spec;
  spec.bpe.vocab = builder.Finish("ranks").value();
  spec.bpe.vocab.priority = FlatArray<std::uint32_t>(std::move(priority));
  spec.bpe.bytes = spec.bpe.by_score = spec.bpe.ignore_merges = true;
  spec.splits.push_back({StepKind::kSplitRegex,
                         static_cast<std::uint8_t>(SplitBehavior::kIsolated),
                         0,
                         std::string(PatternText(SplitPattern::kCl100k)),
                         {}});
  const auto made = PipelineTokenizer::Make(std::move(spec), "ranks");
  ASSERT_TRUE(made.ok()) << made.error().message;
  ExpectVectors(**made, "llama-bpe");
}

TEST(GoldenJson, CorporaComeBackThroughByteLevelVocabularies) {
  const std::string folder = kShared + "/corpora/text-sample";
  if (!std::filesystem::exists(folder)) GTEST_SKIP();
  for (const char* name : {"falcon", "olmo2-dolma2", "phi-2"}) {
    const auto made =
        LoadTokenizerJson(ReadMaybeGzip(kShared + "/models/tokenizers/" + name +
                                        "/tokenizer.json"),
                          "", name);
    ASSERT_TRUE(made.ok()) << made.error().message;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string text = ReadTextFile(entry.path().string()).value();
      const auto ids = (*made)->Encode(text);
      ASSERT_TRUE(ids.ok()) << ids.error().message;
      EXPECT_TRUE((*made)->Decode(*ids) == text) << name << entry.path();
    }
  }
}

TEST(GoldenJson, HostileFilesAreRefusedByNameAndField) {
  const std::string folder = kShared + "/models/hostile";
  if (!std::filesystem::exists(folder)) GTEST_SKIP();
  for (const char* sub : {"/tokenizer", "/json"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder + sub)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().string();
      const auto made = LoadTokenizerJson(ReadTextFile(path).value(), "", path);
      ASSERT_FALSE(made.ok()) << path;
      EXPECT_EQ(made.error().code, Code::kCorrupt) << path;
      EXPECT_EQ(made.error().message.find(path), 0u) << made.error().message;
    }
  }
}

TEST(GoldenJson, UnigramIsRefusedByName) {
  const std::string path =
      kShared + "/models/tokenizers/unigram-t5/tokenizer.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP();
  const auto made =
      LoadTokenizerJson(ReadTextFile(path).value(), "", "t5/tokenizer.json");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace hearth
