// Sampling options and forms of answers on the command line.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "program_testing.h"
#include "testing/model_paths.h"

namespace hearth {
namespace {

const std::string kSample = "sample " + kStories260K +
                            " -p 'Tim said: Tim said: Tim said:' -q "
                            "--no-prompt-cache ";

std::string Written(const TempDir& dir, const std::string& name,
                    const std::string& text) {
  const std::string path = dir.path() + "/" + name;
  EXPECT_TRUE(WriteFileAtomically(path, AsBytes(text)).ok());
  return path;
}

TEST(ProgramSampling, AnswersFollowASchemaOrAGrammar) {
  TempDir dir;
  const std::string schema =
      Written(dir, "s.json",
              R"({"properties": {"n": {"type": "integer", "maximum": 99},
          "ok": {"type": "boolean"}}, "required": ["n", "ok"], "huh": 1})");
  const Ran json =
      RunProgram(dir, kSample + "-n 60 --temp 0 --json-schema " + schema);
  EXPECT_EQ(json.exit_code, 0) << json.err;
  const auto read = ParseJson(json.out, "the answer");
  ASSERT_TRUE(read.ok()) << json.out;
  EXPECT_TRUE((*read)["n"].is_number_integer() && (*read)["ok"].is_boolean());
  EXPECT_NE(json.err.find("huh"), std::string::npos)
      << "what has no effect is said: " << json.err;

  const std::string gbnf =
      Written(dir, "g.gbnf", "root ::= \"yes\" | \"no\"  # an answer\n");
  for (const char* draft : {"", " --draft prompt-lookup"}) {
    const Ran ran =
        RunProgram(dir, kSample + "--temp 0 --grammar " + gbnf + draft);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_TRUE(ran.out == "yes" || ran.out == "no") << ran.out;
  }
}

TEST(ProgramSampling, FormsThatAreNoneAreRefusedByFileAndPlace) {
  TempDir dir;
  const std::string bad = Written(dir, "bad.gbnf", "root ::= [a-\n");
  const std::string unheld = Written(dir, "not.json", R"({"not": {}})");
  const struct {
    std::string arguments, says;
    int exit_code;
  } cases[] = {
      {"--grammar " + bad, "bad.gbnf: the grammar, line 2", 2},
      {"--json-schema " + unheld, "not.json: ", 1},
      {"--json-schema " + bad, "bad.gbnf: ", 1},
      {"--json-schema '{\"type\": \"string\"}'", "the name of a file", 1},
      {"--grammar " + bad + " --json-schema " + unheld, "exclude", 2}};
  for (const auto& c : cases) {
    const Ran ran = RunProgram(dir, kSample + c.arguments);
    EXPECT_EQ(ran.exit_code, c.exit_code) << c.arguments << ran.err;
    EXPECT_NE(ran.err.find(c.says), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
}

TEST(ProgramSampling, OptionsChangeTheTextAndAreChecked) {
  TempDir dir;
  const std::string greedy = kSample + "--temp 0 -n 40 ";
  const Ran plain = RunProgram(dir, greedy);
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  for (const char* same :
       {"--repeat-penalty 1", "--repeat-penalty 1.5 --repeat-last-n 0",
        "--dry-multiplier 0", "--xtc-probability 1",
        "--dry-multiplier 2 --dry-penalty-last-n 0"}) {
    EXPECT_EQ(RunProgram(dir, greedy + same).out, plain.out) << same;
  }
  for (const char* other :
       {"--repeat-penalty 1.5 --repeat-last-n -1", "--presence-penalty 5",
        "--frequency-penalty 3", "--logit-bias 300+50,301-inf",
        "--dry-multiplier 9 --dry-allowed-length 1 "
        "--dry-sequence-breaker none"}) {
    const Ran ran = RunProgram(dir, greedy + other);
    EXPECT_EQ(ran.exit_code, 0) << other << ran.err;
    EXPECT_NE(ran.out, plain.out) << other;
  }
  for (const char* wrong :
       {"--repeat-penalty 0", "--logit-bias 5", "--xtc-threshold 2",
        "--dry-base 0", "--top-p 1.5", "--temp 1 --temp 2"}) {
    EXPECT_EQ(RunProgram(dir, greedy + wrong).exit_code, 2) << wrong;
  }
  const Ran foreign = RunProgram(dir, greedy + "--logit-bias 99999+1");
  EXPECT_EQ(foreign.exit_code, 2);
  EXPECT_NE(foreign.err.find("99999"), std::string::npos) << foreign.err;
}

Json SampleOf(const TempDir& dir, const std::string& model,
              const std::string& options) {
  const Ran ran = RunProgram(
      dir, "sample " + model +
               " -p 'a b a b' -n 20 --json -q --no-prompt-cache " + options);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  return *ParseJson(ran.out, "stdout");
}

TEST(ProgramSampling, TheModelsOwnSettingsCount) {
  TempDir dir;
  const std::string own = dir.path() + "/own";
  std::filesystem::copy(kHfLlama, own,
                        std::filesystem::copy_options::recursive);
  const Json plain = SampleOf(dir, kHfLlama, "--temp 0");
  const Json penalised =
      SampleOf(dir, kHfLlama, "--temp 0 --repeat-penalty 3 --repeat-last-n -1");
  ASSERT_NE(plain["token_ids"], penalised["token_ids"]);
  const auto first = plain["token_ids"][0].get<int>();
  Written(dir, "own/generation_config.json",
          R"({"do_sample": false, "repetition_penalty": 3.0})");
  EXPECT_EQ(SampleOf(dir, own, "")["token_ids"], penalised["token_ids"]);
  EXPECT_EQ(SampleOf(dir, own, "--repeat-penalty 1")["token_ids"],
            plain["token_ids"]);
  Written(dir, "own/generation_config.json",
          R"({"do_sample": false, "suppress_tokens": [)" +
              std::to_string(first) + "]}");
  const Json suppressed = SampleOf(dir, own, "");
  for (const Json& id : suppressed["token_ids"]) EXPECT_NE(id, first);
}

TEST(ProgramSampling, AFileWithoutAPreTokenizerIsSaid) {
  TempDir dir;
  std::string bytes =
      *ReadTextFile(kTestData + "/gguf/tinyl-Q2_K.gguf", 1 << 20);
  const std::string key = "tokenizer.ggml.pre";
  const auto at = bytes.find(key);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, key.size(), "tokenizer.ggml.prx");
  const std::string model = Written(dir, "nopre.gguf", bytes);
  for (const char* command : {"inspect ", "sample -n 1 -q -p a "}) {
    const Ran ran = RunProgram(dir, command + model);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_NE(ran.err.find(key), std::string::npos) << command << ran.err;
  }
}

}  // namespace
}  // namespace hearth
