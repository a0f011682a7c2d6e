// Ids against reference data that lies outside the repository; every test here
// is skipped where that data is missing. What a fresh clone checks is in
// tokenizer_json_test.cc.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "testing/gguf_vocab_file.h"
#include "text/gguf_vocab.h"
#include "text/tokenizer_json.h"

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

}  // namespace
}  // namespace hearth
