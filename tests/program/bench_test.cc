// hearth bench: what it prints is what its options asked for. Speed itself is
// never asserted.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "base/json.h"
#include "hearth_test_paths.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

// The one JSON object that `hearth bench ARGUMENTS --json` prints.
Json Bench(const std::string& arguments) {
  const std::string command =
      std::string(HEARTH_PROGRAM " bench ") + arguments + " --json";
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  std::size_t n;
  while ((n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0) {
    out.append(buffer, n);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command;
  auto json = ParseJson(out, command);
  EXPECT_TRUE(json.ok()) << out;
  return json.ok() ? *json : Json();
}

TEST(Bench, RatesComeWithEveryRepetition) {
  const Json json = Bench(kStories260K +
                          " --prefill 24 --decode 3 --depth 10 --batch 8 -r 3 "
                          "--kv bf16 --threads 1 --threads-prefill 2");
  EXPECT_EQ(json["kv"], "bf16");
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["threads_prefill"], 2);
  EXPECT_EQ(json["depth"], 10);
  EXPECT_EQ(json["prefill_tokens_per_s"]["all"].size(), 3u);
  EXPECT_EQ(json["decode_tokens_per_s"]["all"].size(), 3u);
  EXPECT_GT(json["decode_tokens_per_s"]["median"], 0.0);
  EXPECT_GT(json["depth_prefill_ms"], 0.0);
  EXPECT_GT(json["peak_rss_bytes"], json["anonymous_rss_bytes"]);
}

TEST(Bench, ZeroLeavesAFigureOut) {
  const Json json = Bench(kStories260K + " --prefill 0 --decode 2 -r 1");
  EXPECT_TRUE(json["prefill_tokens_per_s"]["all"].empty());
  EXPECT_EQ(json["decode_tokens_per_s"]["all"].size(), 1u);
}

TEST(Bench, SequencesTogetherComeWithTheirFloor) {
  const Json json =
      Bench(kStories260K + " --batch-sequences 1,3 --depth 20 --decode 2 -r 2");
  EXPECT_GT(json["read_bytes_per_s"], 0.0);
  ASSERT_EQ(json["rows"].size(), 4u);
  for (const Json& row : json["rows"]) {
    EXPECT_EQ(row["depth"], 20);
    EXPECT_EQ(row["tokens_per_s"]["all"].size(), 2u);
    EXPECT_GT(row["times_alone"], 0.0);
    EXPECT_GT(row["floor_tokens_per_s"], 0.0);
  }
  EXPECT_EQ(json["rows"][0]["kv"], "fp16");
  EXPECT_EQ(json["rows"][3]["kv"], "int8");
  EXPECT_EQ(json["rows"][3]["sequences"], 3);
}

TEST(Bench, WarmStartComputesNothingTwice) {
  TempDir dir;
  const Json json = Bench("warm-start " + kStories260K +
                          " --lengths 20,70 -r 1 --decode 2 "
                          "--drop-page-cache --dir " +
                          dir.path());
  ASSERT_EQ(json["lengths"].size(), 2u);
  for (const Json& length : json["lengths"]) {
    const int n = length["prompt_tokens"];
    EXPECT_EQ(length["cold"]["reused_tokens"], 0);
    EXPECT_EQ(length["warm"]["reused_tokens"], 0);
    EXPECT_EQ(length["hot"]["reused_tokens"], n - 1);
    EXPECT_GT(length["hot"]["first_token_ms"]["median"], 0.0);
  }
}

TEST(Bench, MemoryCountsTheSameTokensInEveryWayOfGrowing) {
  const Json json =
      Bench("memory " + kStories260K + " --lengths 16,130 --kv fp32");
  ASSERT_EQ(json["rows"].size(), 6u);
  const Json& first = json["rows"][1];
  for (const Json& row : json["rows"]) {
    const std::uint64_t logical = row["kv_logical_bytes"];
    EXPECT_LE(logical, row["kv_physical_bytes"]);
    if (row["tokens"] == 130) {
      EXPECT_EQ(logical, first["kv_logical_bytes"]);
    }
  }
  // Allocated beforehand: no growth.
  EXPECT_EQ(json["rows"][4]["kv_physical_bytes"],
            json["rows"][5]["kv_physical_bytes"]);
}

TEST(Bench, StoreReadsWhatItWrote) {
  TempDir dir;
  const Json json = Bench("store --bytes 4M -r 1 --dir " + dir.path());
  EXPECT_EQ(json["blocks"], 2);
  for (const char* rate : {"save", "verified_load", "mapped_load"}) {
    EXPECT_GT(json[rate]["GB_per_s"]["median"], 0.0) << rate;
  }
}

}  // namespace
}  // namespace hearth
