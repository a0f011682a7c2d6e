#include "serve/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RequestFigures Answered() {
  RequestFigures request;
  request.path = "/v1/chat/completions";
  request.status = 200;
  request.generated = true;
  request.prompt = 100;
  request.reused = 64;
  request.tier = "disk";
  return request;
}

TEST(Metrics, AMissIsCountedUnderItsReason) {
  const auto metrics = Metrics::Make("hermes");
  metrics->Count(Answered());
  EXPECT_THAT(metrics->Text({}), Not(HasSubstr("hearth_miss_total{")));
  RequestFigures missed = Answered();
  missed.missed = true;
  missed.miss_kind = MissKind::kDefect;
  metrics->Count(missed);
  missed.miss_kind = MissKind::kSlower;
  metrics->Count(missed);
  metrics->Count(missed);
  const std::string text = metrics->Text({});
  EXPECT_THAT(text, HasSubstr("hearth_miss_total{reason=\"defect\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hearth_miss_total{reason=\"slower\"} 2\n"));
}

TEST(Metrics, FormsAreTimed) {
  const auto metrics = Metrics::Make("");
  metrics->Mask(0.05);
  metrics->Mask(1.5);
  metrics->Compiled(4);
  const std::string text = metrics->Text({});
  EXPECT_THAT(text, HasSubstr("hearth_mask_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("hearth_mask_seconds_bucket{le=\"0.0001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("hearth_form_compile_seconds_count 1\n"));
}

TEST(Metrics, WhatOthersCountIsATotalThatOnlyGrows) {
  const auto metrics = Metrics::Make("");
  ServerGauges now;
  now.store_bytes = 4096;
  now.saves_lost = 3;
  EXPECT_THAT(metrics->Text(now), HasSubstr("hearth_saves_lost_total 3\n"));
  now.saves_lost = 5;
  const std::string text = metrics->Text(now);
  EXPECT_THAT(text, HasSubstr("hearth_saves_lost_total 5\n"));
  EXPECT_THAT(text, HasSubstr("hearth_store_bytes 4096\n"));
}

}  // namespace
}  // namespace hearth::serve
