// The names and the order of `hearth cache --json`, which scripts read, and
// what the tables say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cache/cache_json.h"
#include "cli/cache/cache_text.h"

namespace hearth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

PromptInfo SomePrompt() {
  PromptInfo p;
  p.stem = "tiny-0123456789ab";
  p.model_name = "tiny";
  p.model_id = "aa";
  p.format_id = "bb";
  p.block_tokens = 16;
  p.n_tokens = 41;
  p.n_blocks_full = 2;
  p.n_blocks_present = 1;
  p.n_tokens_usable = 16;
  p.n_tail_tokens = 9;
  p.bytes = 5000;
  p.bytes_shared = 400;
  p.created_ns = 1'500'000'000;
  p.last_use_ns = 2'000'000'000;
  p.pinned = true;
  return p;
}

const std::string kPromptJson =
    R"("name":"tiny-0123456789ab","model":"tiny","tokens":41,)"
    R"("tokens_usable":16,"blocks":2,"blocks_present":1,"tail_tokens":9,)"
    R"("bytes":5000,"bytes_shared":400,"states":0,"bytes_states":0,)"
    R"("created_unix_s":1.5,)"
    R"("last_use_unix_s":2.0,"pinned":true)";

TEST(CacheReport, AListOfPrompts) {
  const PromptList list{{SomePrompt()}, 3};
  EXPECT_EQ(ToJson(list).dump(),
            R"({"prompts":[{)" + kPromptJson + R"(}],"locked":3})");
  EXPECT_THAT(ToText(list), HasSubstr("tiny-0123456789ab"));
  EXPECT_THAT(ToText(list), HasSubstr("3 prompts of another key"));
  EXPECT_EQ(ToText(PromptList{}), "no stored prompts\n");
}

TEST(CacheReport, OnePromptAndItsBlocks) {
  PromptDetails details;
  details.info = SomePrompt();
  details.blocks = {{std::string(64, 'c'), 0, 16, true, false, 100, 2},
                    {std::string(64, 'd'), 16, 9, true, true, 50, 1},
                    {std::string(64, 'e'), 32, 9, false, true, 0, 1}};
  const std::string json = ToJson(details).dump();
  EXPECT_THAT(json, HasSubstr("{" + kPromptJson +
                              R"(,"model_id":"aa","format_id":"bb",)"
                              R"("block_tokens":16,"chain":[{"id":"cccc)"));
  EXPECT_THAT(json, HasSubstr(R"(","first_token":16,"tokens":9,"present":true,)"
                              R"("piece":true,"bytes":50,"shared_by":1})"));
  const std::string text = ToText(details);
  EXPECT_THAT(text, HasSubstr("16-24"));
  EXPECT_THAT(text, HasSubstr("piece"));
  EXPECT_THAT(text, HasSubstr("MISSING"));
}

TEST(CacheReport, WhereTheBytesAre) {
  StoreStats stats;
  stats.total_bytes = 10;
  stats.free_bytes = 20;
  stats.blocks = {1, 7};
  stats.memos = {2, 3};
  stats.n_blocks_loose = 4;
  stats.n_pinned = 5;
  stats.models = {{"tiny", "aa", 1, 41, 9}};
  EXPECT_EQ(ToJson(stats).dump(),
            R"({"total_bytes":10,"free_bytes":20,)"
            R"("blocks":{"files":1,"bytes":7},)"
            R"("states":{"files":0,"bytes":0},)"
            R"("manifests":{"files":0,"bytes":0},)"
            R"("sidecars":{"files":0,"bytes":0},)"
            R"("memos":{"files":2,"bytes":3},)"
            R"("quarantined":{"files":0,"bytes":0},)"
            R"("temporaries":{"files":0,"bytes":0},)"
            R"("other":{"files":0,"bytes":0},"blocks_loose":4,"pinned":5,)"
            R"("models":[{"model":"tiny","model_id":"aa","prompts":1,)"
            R"("tokens":41,"bytes":9}]})");
  EXPECT_THAT(ToText(stats), HasSubstr("tiny"));
}

TEST(CacheReport, DamageIsNamedAndItsPathEscaped) {
  VerifyReport report;
  report.n_files = 2;
  report.bytes = 30;
  report.seconds = 0.5;
  report.defects = {{"a\x1b[2J", "bad checksum", true}};
  report.incomplete = {"tiny-1"};
  EXPECT_EQ(ToJson(report).dump(),
            R"({"files":2,"bytes":30,"seconds":0.5,"locked":0,)"
            R"("defects":[{"path":"a\u001b[2J","reason":"bad checksum",)"
            R"("set_aside":true}],"incomplete":["tiny-1"]})");
  EXPECT_THAT(ToText(report), HasSubstr("bad checksum (set aside)\n"));
  EXPECT_THAT(ToText(report), Not(HasSubstr("\x1b")));
}

TEST(CacheReport, WhatCouldNotBeDeletedIsNamed) {
  const GcReport report{2, 30, 40, {"x: not permitted"}};
  EXPECT_EQ(ToJson(report).dump(),
            R"({"files_deleted":2,"bytes_deleted":30,"bytes_left":40,)"
            R"("left":["x: not permitted"]})");
  EXPECT_EQ(ToText(report),
            "2 files deleted, 30 B; 40 B left\nnot deleted: x: not "
            "permitted\n");
}

TEST(CacheReport, WhyTellsWhatIsKnownAndNoMore) {
  CacheMiss miss;
  miss.n_tokens = 60;
  EXPECT_EQ(ToJson(miss).dump(),
            R"({"tokens":60,"tokens_stored":0,"miss_reason":"","nearest":"",)"
            R"("tokens_common":0,"key_differences":[]})");
  EXPECT_THAT(ToText(miss), HasSubstr("nothing stored comes near"));
  miss.nearest_stem = "tiny-1";
  miss.n_tokens_common = 20;
  miss.n_tokens_by_text = 30;
  miss.cost = LoadCost{1.5, 20, true};
  miss.parting = PartingPlace{77, "a\nb", "c"};
  EXPECT_THAT(ToJson(miss).dump(),
              HasSubstr(R"("tokens_by_text":30,"load_ms":1.5,)"
                        R"("compute_ms":20.0,"load_pays":true,"byte":77,)"
                        R"("asked":"a\nb","stored":"c"})"));
  EXPECT_THAT(ToText(miss), HasSubstr("token 20, byte 77"));
  EXPECT_THAT(ToText(miss), HasSubstr("asked     \"a\\nb\"\n"));
}

}  // namespace
}  // namespace hearth::cli
