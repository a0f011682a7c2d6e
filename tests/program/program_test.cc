// The program as a user meets it: streams, exit codes, JSON, files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "program_testing.h"
#include "testing/model_paths.h"

namespace hearth {
namespace {

const std::string kPromptText =
    " --prompt 'Once upon a time there was a cat. The cat saw a big dog and "
    "ran away. The dog was sad and wanted to play with the cat.'";
const std::string kPrompt = kPromptText + " --temp 0 ";

TEST(Program, ColdAndHotRunsPrintTheSameTextAlone) {
  TempDir dir;
  const std::string sample = "sample " + kStories260K + kPrompt +
                             "-n 40 --prompt-cache-dir " + dir.path() + "/s";
  const Ran cold = RunProgram(dir, sample);
  const Ran hot = RunProgram(dir, sample);
  EXPECT_EQ(cold.exit_code, 0) << cold.err;
  EXPECT_EQ(hot.exit_code, 0);
  EXPECT_EQ(cold.out, hot.out);
  EXPECT_FALSE(cold.out.empty());
  EXPECT_NE(cold.err.find(" 0 reused"), std::string::npos) << cold.err;
  EXPECT_NE(hot.err.find("reused (disk"), std::string::npos) << hot.err;
  for (const char* other :
       {"--no-cache", "--no-prompt-cache", "--kv-growth concat",
        "--kv-preallocate", "--no-kv-preallocate"}) {
    const Ran ran =
        RunProgram(dir, "sample " + kStories260K + kPrompt + "-n 40 " + other);
    EXPECT_EQ(ran.out, cold.out) << other << ran.err;
  }
}

TEST(Program, JsonHasEveryFieldAndNothingElseIsOnStdout) {
  TempDir dir;
  const Ran ran = RunProgram(dir, "sample " + kStories260K + kPrompt +
                                      "-n 5 --json --kv-quantize fp16");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = ParseJson(ran.out, "stdout");
  ASSERT_TRUE(json.ok()) << ran.out;
  for (const char* key :
       {"text", "token_ids", "prompt_tokens", "reused_tokens", "reuse_tier",
        "miss_reason", "start_ms", "ttft_ms", "prefill_ms", "decode_tokens",
        "decode_tokens_per_s", "kv_tokens", "kv_logical_bytes",
        "kv_physical_bytes"}) {
    EXPECT_TRUE(json->contains(key)) << key;
  }
  EXPECT_EQ((*json)["token_ids"].size(), 5u);
  const int tokens = (*json)["kv_tokens"].get<int>();
  EXPECT_EQ(tokens, (*json)["prompt_tokens"].get<int>() + 4);
  // 5 layers x 4 KV heads x 8 dims x keys and values x 2 bytes.
  EXPECT_EQ((*json)["kv_logical_bytes"].get<int>(), tokens * 5 * 4 * 8 * 2 * 2);
  EXPECT_GE((*json)["ttft_ms"].get<double>(),
            (*json)["start_ms"].get<double>());
}

TEST(Program, WrongUsageIsRefusedWithCode2AndTheRemedy) {
  TempDir dir;
  const std::string learned = dir.path() + "/learned.tinygpt";
  ASSERT_EQ(RunProgram(dir, "init tiny --out " + learned).exit_code, 0);
  const struct {
    std::string arguments, says;
  } cases[] = {
      {"", "--help"},
      {"sample --nonsense", "nonsense"},
      {"smaple -p x", "did you mean sample"},
      {"sample -p x --contxt 5", "did you mean --context"},
      {"sample -p x -ngl 99", "CPU"},
      {"sample -p x -t 0", "from 1 to 1024"},
      {"sample -p x --cache-disk-budget -1", "number of bytes"},
      {"sample -p x --seed 99999999999999999999999", "from 0 to"},
      {"sample -p x -n -5", "at least -1"},
      {"sample -p x --draft-tokens 4", "without --draft"},
      {"sample -p x --no-prompt-cache --cache-always", "--cache-always"},
      {"sample -p x --no-prompt-cache --no-verify", "--no-verify"},
      {"sample -p x --cache-prompt f --cache-by-text", "--cache-by-text"},
      {"sample -p x --cache-prompt ''", "empty"},
      {"cache why " + dir.path(), "--prompt"},
      {"sample " + kStories260K, "--prompt"},
      {"sample " + kStories260K + kPrompt + "--kv-quantize int3", "fp32, fp16"},
      {"sample " + kStories260K + kPrompt + "--kv-growth sideways", "in-place"},
      {"sample " + kStories260K + kPrompt + "--no-cache --prompt-cache-dir x",
       "leave one out"},
      {"sample " + kStories260K + kPrompt +
           "--kv-growth concat --kv-preallocate",
       "grows in place"},
      {"sample " + kStories260K + kPrompt + "--top-p 2", "top-p"},
      {"sample " + learned + " --context 2000 -p x", "learned positions"},
      {"sample " + kStories260K + " -p ''  --temp 0 --context 0", "from 1 to"},
      {"init colossal --out " + dir.path() + "/x", "behemoth"},
      {"init tiny --kv-heads 3 --out " + dir.path() + "/x", "heads"},
  };
  for (const auto& c : cases) {
    const Ran ran = RunProgram(dir, c.arguments);
    EXPECT_EQ(ran.exit_code, 2) << c.arguments << "\n" << ran.err;
    EXPECT_NE(ran.err.find(c.says), std::string::npos) << c.arguments << "\n"
                                                       << ran.err;
    EXPECT_TRUE(ran.out.empty()) << ran.out;
  }
}

TEST(Program, MissingOrForeignModelsAreNamed) {
  TempDir dir;
  std::ofstream(dir.path() + "/notes.txt") << "not a model at all";
  const Ran missing =
      RunProgram(dir, "sample " + dir.path() + "/none.gguf -p x");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("none.gguf"), std::string::npos) << missing.err;
  const Ran foreign = RunProgram(dir, "inspect " + dir.path() + "/notes.txt");
  EXPECT_NE(foreign.exit_code, 0);
  EXPECT_NE(foreign.err.find("notes.txt"), std::string::npos) << foreign.err;
}

TEST(Program, EveryPresetThatFitsATestRunsFromInit) {
  TempDir dir;
  for (const std::string preset : {"tiny", "small", "huge"}) {
    for (const std::string kv_heads : {"", " --kv-heads 2"}) {
      const std::string model = dir.path() + "/" + preset + ".tinygpt";
      const Ran init = RunProgram(dir, "init " + preset + kv_heads +
                                           " --seed 3 --force --out " + model);
      ASSERT_EQ(init.exit_code, 0) << init.err;
      const Ran ran =
          RunProgram(dir, "sample " + model + " -p hello -n 4 --temp 0 --json");
      ASSERT_EQ(ran.exit_code, 0) << ran.err;
      const Json json = *ParseJson(ran.out, "stdout");
      // Layers x KV heads x 32 x 2 x 2 bytes: fp16 is the default.
      const int layers = preset == "tiny" ? 4 : preset == "small" ? 6 : 12;
      const int heads = !kv_heads.empty()   ? 2
                        : preset == "tiny"  ? 4
                        : preset == "small" ? 6
                                            : 8;
      EXPECT_EQ(json["kv_logical_bytes"].get<int>(),
                json["kv_tokens"].get<int>() * layers * heads * 32 * 2 * 2);
    }
  }
}

TEST(Program, TokenizeAndDetokenizeAreInverse) {
  TempDir dir;
  const std::string text = "Lily\'s ball — 100% «röd» 🙂\n";
  std::ofstream(dir.path() + "/text") << text;
  for (const std::string& model : {std::string(), kHfLlama, kHfQwen2}) {
    const Ran ids =
        RunProgram(dir, "tokenize " + model + " --no-special --file " +
                            dir.path() + "/text --json");
    ASSERT_EQ(ids.exit_code, 0) << ids.err;
    std::ofstream(dir.path() + "/ids") << ids.out;
    const Ran back = RunProgram(
        dir, "detokenize " + model + " --file " + dir.path() + "/ids");
    EXPECT_EQ(back.out, text) << model;
  }
}

TEST(Program, LogitsDoNotDependOnChunks) {
  TempDir dir;
  std::ofstream(dir.path() + "/ids.json")
      << "[1, 5, 9, 200, 4, 7, 300, 2, 8, 1]";
  std::string first;
  for (const std::string chunks : {"", " --chunks 1", " --chunks 3,4,1"}) {
    const Ran ran =
        RunProgram(dir, "logits " + kHfLlama + " --ids " + dir.path() +
                            "/ids.json --out " + dir.path() + "/l" + chunks);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const std::string bytes = *ReadTextFile(dir.path() + "/l");
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << chunks;
  }
}

TEST(Program, ReadOnlyCacheDirectoryWarnsOnceAndGoesOn) {
  // /proc takes no directories, not even from root.
  TempDir dir;
  const Ran ran =
      RunProgram(dir, "sample " + kStories260K + kPrompt +
                          "-n 4 --prompt-cache-dir /proc/hearth-cannot-be");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_FALSE(ran.out.empty());
  EXPECT_NE(ran.err.find("prompt cache"), std::string::npos) << ran.err;
}

TEST(Program, CacheCommandsDescribeAndKeepADirectory) {
  TempDir dir;
  const std::string store = dir.path() + "/s";
  const std::string sample =
      "sample " + kStories260K + kPrompt + "-n 4 --prompt-cache-dir " + store;
  ASSERT_EQ(RunProgram(dir, sample).exit_code, 0);
  const auto json = [&](const std::string& arguments) {
    const Ran ran = RunProgram(dir, "cache " + arguments + " --json");
    EXPECT_EQ(ran.exit_code, 0) << arguments << "\n" << ran.err;
    return *ParseJson(ran.out, arguments);
  };
  const Json list = json("ls " + store);
  ASSERT_EQ(list["prompts"].size(), 1u);
  const std::string name = list["prompts"][0]["name"].get<std::string>();
  const int tokens = list["prompts"][0]["tokens"].get<int>();
  EXPECT_EQ(json("show " + store + " " + name)["tokens"], tokens);
  EXPECT_EQ(json("verify " + store)["defects"].size(), 0u);
  EXPECT_GT(json("stats " + store)["total_bytes"].get<int>(), 0);

  // An edited prompt: where it parts, in tokens and text.
  const std::string why = "why " + store + " " + kStories260K;
  const Json whole = json(why + kPromptText);
  EXPECT_EQ(whole["tokens_stored"], tokens);
  const Json edited =
      json(why + " --prompt 'Once upon a time there was a cow.'");
  EXPECT_LT(edited["tokens_stored"].get<int>(), tokens);
  EXPECT_GE(edited["tokens_common"].get<int>(), 5);
  EXPECT_NE(edited["stored"].get<std::string>().find("cat"), std::string::npos);
  const Json other = json(why + kPromptText + " --kv-quantize fp32");
  EXPECT_EQ(other["tokens_stored"], 0);
  EXPECT_FALSE(other["key_differences"].empty());

  // Out to a bundle, into another directory, and still a hit there.
  const std::string bundle = dir.path() + "/b.kvcache";
  json("export " + store + " " + name + " " + bundle);
  json("import " + dir.path() + "/t " + bundle);
  const Ran hot = RunProgram(dir, "sample " + kStories260K + kPrompt +
                                      "-n 4 --json --prompt-cache-dir " +
                                      dir.path() + "/t");
  EXPECT_EQ((*ParseJson(hot.out, "hot"))["reused_tokens"], tokens - 1)
      << hot.err;

  EXPECT_EQ(json("pin " + store + " " + name)["pinned"], name);
  EXPECT_EQ(json("ls " + store)["prompts"][0]["pinned"], true);
  EXPECT_EQ(RunProgram(dir, "cache wipe " + store).exit_code, 2);
  json("wipe --yes " + store);
  EXPECT_EQ(json("ls " + store)["prompts"].size(), 0u);
  const Ran none = RunProgram(dir, "cache ls " + dir.path() + "/nowhere");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("nowhere"), std::string::npos) << none.err;
}

TEST(Program, PromptTextIsNowhereInTheStoreUnlessAskedFor) {
  TempDir dir;
  for (const bool previews : {false, true}) {
    const std::string store = dir.path() + (previews ? "/with" : "/without");
    ASSERT_EQ(RunProgram(dir, "sample " + kStories260K + kPrompt +
                                  "-n 2 --prompt-cache-dir " + store +
                                  (previews ? " --cache-previews" : ""))
                  .exit_code,
              0);
    bool found = false;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(store)) {
      if (!entry.is_regular_file()) continue;
      found |= ReadTextFile(entry.path().string())->find("upon a time") !=
               std::string::npos;
      EXPECT_EQ(entry.status().permissions() & std::filesystem::perms(077),
                std::filesystem::perms::none)
          << entry.path();
    }
    EXPECT_EQ(found, previews);
  }
}

TEST(Program, InterruptEndsTheRunButNotTheSave) {
  TempDir dir;
  const std::string out = dir.path() + "/out", err = dir.path() + "/err";
  const std::string sample = "sample " + kStories260K + kPrompt +
                             "--prompt-cache-dir " + dir.path() + "/s ";
  // Endless, and interrupted once it has answered: no clock decides the test.
  const std::string command =
      ProgramCommand(dir) + " " + sample +
      "-n 100000000 --ignore-eos --streaming-llm-sink 4 "
      "--streaming-llm-window 128 >" +
      out + " 2>" + err +
      " </dev/null & "
      "pid=$!; while kill -0 $pid && ! [ -s " +
      out +
      " ]; do sleep 0.01; done; "
      "kill -INT $pid; wait $pid";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130) << *ReadTextFile(err);
  EXPECT_NE(ReadTextFile(err)->find("interrupted"), std::string::npos);
  const Ran again = RunProgram(
      dir,
      sample + "-n 1 --json --streaming-llm-sink 4 --streaming-llm-window 128");
  const auto report = *ParseJson(again.out, "again");
  EXPECT_EQ(report["reused_tokens"], report["prompt_tokens"].get<int>() - 1)
      << again.err;
}

}  // namespace
}  // namespace hearth
