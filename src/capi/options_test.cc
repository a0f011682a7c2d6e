// Options of the C interface: by name, checked, of one engine.
#include <utility>
#include <vector>

#include "capi/capi_testing.h"

namespace hearth {
namespace {

TEST_F(CApi, OptionsAreKnownByNameAndChecked) {
  hearth_engine_options* options = nullptr;
  ASSERT_EQ(hearth_engine_options_new(&options), HEARTH_OK);
  const auto set = [&](const char* name, const char* value) {
    return hearth_engine_options_set(options, name, value);
  };
  EXPECT_EQ(set("kv_storage", "int8"), HEARTH_OK);
  EXPECT_EQ(set("kv_keys", "fp16"), HEARTH_OK);
  EXPECT_EQ(set("cache_verify", "false"), HEARTH_OK);
  EXPECT_EQ(set("kv_ram_budget_bytes", "18446744073709551615"), HEARTH_OK);
  EXPECT_EQ(set("kv_storage", "int9"), HEARTH_INVALID_ARGUMENT);
  EXPECT_EQ(set("n_threads", "many"), HEARTH_INVALID_ARGUMENT);
  EXPECT_EQ(set("n_threads", "99999999999"), HEARTH_INVALID_ARGUMENT);
  EXPECT_EQ(set("verify_model", "yes"), HEARTH_INVALID_ARGUMENT);
  EXPECT_EQ(set("modelpath", "x"), HEARTH_INVALID_ARGUMENT);
  EXPECT_STREQ(hearth_last_error(), "there is no option \"modelpath\"");
  EXPECT_EQ(set("model_path", nullptr), HEARTH_INVALID_ARGUMENT);
  EXPECT_EQ(set("model_path", "/no/such/file"), HEARTH_OK);
  hearth_engine* engine = nullptr;
  EXPECT_EQ(hearth_engine_open(options, &engine), HEARTH_NOT_FOUND);
  EXPECT_EQ(engine, nullptr);
  EXPECT_EQ(hearth_engine_options_free(options), HEARTH_OK);

  hearth_generate_options* generate = Greedy(engine_, "3");
  const auto ask = [&](const char* name, const char* value) {
    return hearth_generate_options_set(generate, name, value);
  };
  using Pairs = std::vector<std::pair<const char*, const char*>>;
  for (const auto& [name, value] : Pairs{{"stop_text", "end"},
                                         {"logit_bias", "5=-inf"},
                                         {"suppressed_id", "7"},
                                         {"dry_sequence_breaker", "x"},
                                         {"seed", "18446744073709551615"},
                                         {"repeat_penalty", "1.1"}}) {
    EXPECT_EQ(ask(name, value), HEARTH_OK) << name << hearth_last_error();
  }
  for (const auto& [name, value] : Pairs{{"stop_text", ""},
                                         {"logit_bias", "5"},
                                         {"logit_bias", "x=1"},
                                         {"suppressed_id", "-1"},
                                         {"temperature", "nan"},
                                         {"top_k", "1.5"},
                                         {"n_tokens", "1"}}) {
    EXPECT_EQ(ask(name, value), HEARTH_INVALID_ARGUMENT) << name;
  }
  // Ranges are the engine's affair.
  hearth_session* session = Synced(engine_, ids_);
  EXPECT_EQ(ask("top_p", "3"), HEARTH_OK);
  EXPECT_EQ(
      hearth_session_generate(session, generate, nullptr, nullptr, nullptr),
      HEARTH_INVALID_ARGUMENT);
  EXPECT_EQ(hearth_session_free(session), HEARTH_OK);
  EXPECT_EQ(hearth_generate_options_free(generate), HEARTH_OK);
}

TEST_F(CApi, OptionsOfAnotherEngineAreRefused) {
  hearth_engine* other = OpenSmall();
  hearth_generate_options* options = Greedy(other, "3");
  hearth_session* session = Synced(engine_, ids_);
  EXPECT_EQ(
      hearth_session_generate(session, options, nullptr, nullptr, nullptr),
      HEARTH_INVALID_ARGUMENT);
  EXPECT_EQ(hearth_session_free(session), HEARTH_OK);
  EXPECT_EQ(hearth_generate_options_free(options), HEARTH_OK);
  EXPECT_EQ(hearth_engine_free(other), HEARTH_OK);
}

}  // namespace
}  // namespace hearth
