// An engine of the C interface for tests, with a prompt's ids.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hearth/hearth.h"
#include "hearth_test_paths.h"

namespace hearth {

inline hearth_engine* OpenSmall() {
  hearth_engine_options* options = nullptr;
  EXPECT_EQ(hearth_engine_options_new(&options), HEARTH_OK);
  EXPECT_EQ(
      hearth_engine_options_set(options, "model_path",
                                HEARTH_TEST_DATA "/models/stories260K.gguf"),
      HEARTH_OK);
  EXPECT_EQ(hearth_engine_options_set(options, "n_threads", "1"), HEARTH_OK);
  hearth_engine* engine = nullptr;
  EXPECT_EQ(hearth_engine_open(options, &engine), HEARTH_OK)
      << hearth_last_error();
  EXPECT_EQ(hearth_engine_options_free(options), HEARTH_OK);
  return engine;
}

inline std::vector<std::int32_t> Encoded(hearth_engine* engine,
                                         const std::string& text) {
  std::size_t n = 0;
  EXPECT_EQ(
      hearth_engine_encode(engine, text.data(), text.size(), 1, nullptr, 0, &n),
      HEARTH_BUFFER_TOO_SMALL);
  std::vector<std::int32_t> ids(n);
  EXPECT_EQ(hearth_engine_encode(engine, text.data(), text.size(), 1,
                                 ids.data(), ids.size(), &n),
            HEARTH_OK);
  return ids;
}

inline hearth_session* Synced(hearth_engine* engine,
                              const std::vector<std::int32_t>& ids) {
  hearth_session* session = nullptr;
  EXPECT_EQ(hearth_session_new(engine, &session), HEARTH_OK);
  hearth_sync_report report{};
  report.struct_size = sizeof report;
  EXPECT_EQ(hearth_session_sync(session, ids.data(), ids.size(), nullptr,
                                nullptr, &report),
            HEARTH_OK)
      << hearth_last_error();
  EXPECT_EQ(report.prompt_tokens, static_cast<int>(ids.size()));
  EXPECT_STREQ(report.warnings, "");
  return session;
}

inline hearth_generate_options* Greedy(hearth_engine* engine,
                                       const char* n_tokens) {
  hearth_generate_options* options = nullptr;
  EXPECT_EQ(hearth_generate_options_new(engine, &options), HEARTH_OK);
  EXPECT_EQ(hearth_generate_options_set(options, "temperature", "0"),
            HEARTH_OK);
  EXPECT_EQ(hearth_generate_options_set(options, "n_tokens_max", n_tokens),
            HEARTH_OK);
  return options;
}

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = OpenSmall();
    ids_ = Encoded(engine_, "Once upon a time");
  }
  void TearDown() override { hearth_engine_free(engine_); }

  hearth_engine* engine_ = nullptr;
  std::vector<std::int32_t> ids_;
};

}  // namespace hearth
