#include "serve/schedule/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hearth::serve {
namespace {

constexpr double kPrefillMs = 1000.0 / 640;
constexpr double kDecodeMs = 17.5;

PlanItem Answer(int rows = 1) { return {.decodes = true, .tokens = rows}; }
PlanItem Prompt(int left, int passed_over = 0) {
  return {.tokens = left, .left = left, .passed_over = passed_over};
}

// Knows its rates.
Planner Warm(const PlanOptions& options = {}) {
  Planner planner(options);
  planner.Report(0, 256, 256 * kPrefillMs);
  planner.Report(3, 0, kDecodeMs);
  return planner;
}

// The example of docs/scheduler.md.
TEST(Planner, ChunksAreSizedInTimeAndPaidBack) {
  Planner planner = Warm();
  PlanItem items[] = {Answer(), Answer(), Answer(), Prompt(8192)};
  Pass pass = planner.Plan(items);
  EXPECT_EQ(pass.rows, (std::vector<int>{1, 1, 1, 128}))
      << "160, cut to blocks";
  planner.Report(3, 128, kDecodeMs + 128 * kPrefillMs);
  int n_alone = 0;
  for (;; ++n_alone) {
    pass = planner.Plan(items);
    if (pass.prefill_rows > 0) break;
    planner.Report(3, 0, kDecodeMs);
  }
  EXPECT_EQ(n_alone, 12) << "200 ms in steps of 17.5";
  EXPECT_EQ(pass.prefill_rows, 128);
}

TEST(Planner, WithNobodyToWaitForItTakesTwiceTheStall) {
  Planner planner = Warm();
  const PlanItem items[] = {Prompt(8192)};
  EXPECT_EQ(planner.Plan(items).prefill_rows, 320);
  Planner cold({});
  EXPECT_EQ(cold.Plan(items).prefill_rows, 512) << "no rate is known";
  const PlanItem beside[] = {Answer(), Prompt(8192)};
  EXPECT_EQ(cold.Plan(beside).prefill_rows, 16);
}

TEST(Planner, ASlowMachineStillComputesSixteen) {
  Planner planner({});
  planner.Report(0, 64, 64 * 100.0);
  const PlanItem items[] = {Answer(), Prompt(100)};
  EXPECT_EQ(planner.Plan(items).prefill_rows, 16);
}

TEST(Planner, TheShortestGoesFirstAndTheRestIsTheNexts) {
  Planner planner = Warm();
  const PlanItem items[] = {Prompt(5000), Prompt(80), Answer()};
  const Pass pass = planner.Plan(items);
  EXPECT_EQ(pass.rows[1], 80);
  EXPECT_EQ(pass.rows[0], 64) << "of 160, cut to a block's end";
}

TEST(Planner, NobodyIsPassedOverMoreThanEightTimes) {
  Planner planner = Warm();
  PlanItem items[] = {Prompt(60000), Prompt(50000), Prompt(40000),
                      Prompt(30000), Prompt(20000), Prompt(10000),
                      Prompt(9000),  Prompt(8000)};
  int most = 0;
  for (int i = 0; i < 200; ++i) {
    const Pass pass = planner.Plan(items);
    for (std::size_t p = 0; p < std::size(items); ++p) {
      items[p].passed_over = pass.passed_over[p] ? items[p].passed_over + 1 : 0;
      most = std::max(most, items[p].passed_over);
    }
  }
  EXPECT_EQ(most, 8);
}

TEST(Planner, RowsNeverExceedWhatAStepTakes) {
  Planner planner = Warm({.stall_ms = 1e6});
  std::vector<PlanItem> items(8, Answer(65));
  items.push_back(Prompt(5000));
  const Pass pass = planner.Plan(items);
  EXPECT_EQ(pass.decode_rows, 7 * 65);
  EXPECT_TRUE(pass.passed_over[7]);
  EXPECT_LE(pass.decode_rows + pass.prefill_rows, 512);
  items[7].passed_over = 1;
  EXPECT_EQ(planner.Plan(items).rows[7], 65) << "who waited goes first";
}

// A draft model's reading silences answers no longer than a prompt's chunk.
TEST(Planner, ADraftModelReadsInTheTimeOfAChunk) {
  Planner planner = Warm();
  EXPECT_EQ(planner.ReadTokens(true), 16) << "its rate is not known";
  planner.ReportRead(16, 16.0 / 2, true);  // 2 tokens/ms
  EXPECT_EQ(planner.ReadTokens(true), 0) << "8 ms are owed";
  planner.Report(3, 0, kDecodeMs);
  EXPECT_EQ(planner.ReadTokens(true), 496) << "250 ms";
  planner.ReportRead(496, 248, true);
  const PlanItem items[] = {Answer(), Prompt(8192)};
  EXPECT_EQ(planner.Plan(items).prefill_rows, 0) << "one debt for both";
  EXPECT_EQ(planner.ReadTokens(false), 512) << "nobody waits";
  Planner free = Warm();
  EXPECT_EQ(free.Plan(items, /*prefills=*/false).prefill_rows, 0);
}

}  // namespace
}  // namespace hearth::serve
