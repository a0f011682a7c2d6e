// The C interface: what it gives is what the C++ one gives, and misuse is an
// error by name.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "capi/capi_testing.h"
#include "hearth/engine.h"
#include "testing/model_paths.h"

namespace hearth {
namespace {

TEST_F(CApi, GivesTheTextOfTheCppInterface) {
  const auto engine =
      std::move(*Engine::Open({.model_path = kStories260K, .n_threads = 1}));
  const auto want_ids = *engine->codec().Encode("Once upon a time", true);
  EXPECT_EQ(ids_, want_ids);
  const auto session = std::move(*engine->NewSession());
  ASSERT_TRUE(session->Sync(want_ids, nullptr).ok());
  const auto want = session->Generate(
      {.n_tokens_max = 30, .sampling = {.temperature = 0}}, nullptr);
  ASSERT_TRUE(want.ok());

  hearth_session* mine = Synced(engine_, ids_);
  hearth_generate_options* options = Greedy(engine_, "30");
  ASSERT_EQ(hearth_generate_options_set(options, "logprobs", "true"),
            HEARTH_OK);
  ASSERT_EQ(hearth_generate_options_set(options, "top_logprobs", "2"),
            HEARTH_OK);
  struct Seen {
    std::string text;
    int n = 0;
  } seen;
  const auto on_token = [](const hearth_token* token, void* user) -> int32_t {
    auto& s = *static_cast<Seen*>(user);
    s.text.append(token->text, token->text_bytes);
    EXPECT_EQ(std::strlen(token->text), token->text_bytes);
    if (token->id < 0) return 0;
    ++s.n;
    EXPECT_LT(token->logprob, 0);
    EXPECT_EQ(token->n_top, 2u);
    EXPECT_EQ(token->top[0].id, token->id) << "greedy";
    EXPECT_EQ(token->top[0].logprob, token->logprob);
    return 0;
  };
  hearth_generate_report report{};
  report.struct_size = sizeof report;
  ASSERT_EQ(hearth_session_generate(mine, options, on_token, &seen, &report),
            HEARTH_OK)
      << hearth_last_error();
  EXPECT_EQ(std::string(report.text, report.text_bytes), want->text);
  EXPECT_EQ(seen.text, want->text);
  EXPECT_EQ(seen.n, 30);
  EXPECT_EQ(std::vector(report.ids, report.ids + report.n_ids),
            want->token_ids);
  EXPECT_EQ(report.stop, HEARTH_STOP_LENGTH);
  EXPECT_STREQ(report.stop_text, "");

  std::vector<char> text(report.text_bytes + 1, 'x');
  std::size_t n_bytes = 0;
  EXPECT_EQ(hearth_engine_decode(engine_, report.ids, report.n_ids, text.data(),
                                 text.size() - 1, &n_bytes),
            HEARTH_BUFFER_TOO_SMALL);
  ASSERT_LE(n_bytes + 1, text.size());
  EXPECT_EQ(hearth_engine_decode(engine_, report.ids, report.n_ids, text.data(),
                                 text.size(), &n_bytes),
            HEARTH_OK);
  EXPECT_EQ(std::strlen(text.data()), n_bytes);
  EXPECT_EQ(hearth_generate_options_free(options), HEARTH_OK);
  EXPECT_EQ(hearth_session_free(mine), HEARTH_OK);
}

TEST_F(CApi, ForksRewindsAndCounts) {
  hearth_session* session = Synced(engine_, ids_);
  hearth_session* fork = nullptr;
  ASSERT_EQ(hearth_session_fork(session, &fork), HEARTH_OK);
  ASSERT_EQ(hearth_session_rewind(session, 2), HEARTH_OK);
  EXPECT_EQ(hearth_session_rewind(session, 3), HEARTH_INVALID_ARGUMENT);
  EXPECT_EQ(hearth_session_rewind(session, SIZE_MAX), HEARTH_INVALID_ARGUMENT);
  std::size_t n = 0;
  EXPECT_EQ(hearth_session_tokens(session, nullptr, 0, &n),
            HEARTH_BUFFER_TOO_SMALL);
  EXPECT_EQ(n, 2u);
  std::vector<std::int32_t> held(ids_.size());
  EXPECT_EQ(hearth_session_tokens(fork, held.data(), held.size(), &n),
            HEARTH_OK);
  EXPECT_EQ(held, ids_);
  hearth_usage usage{};
  EXPECT_EQ(hearth_session_usage(fork, &usage), HEARTH_INVALID_ARGUMENT)
      << "the size is not set";
  usage.struct_size = sizeof usage;
  ASSERT_EQ(hearth_session_usage(fork, &usage), HEARTH_OK);
  EXPECT_EQ(usage.tokens, static_cast<int>(ids_.size()));
  EXPECT_GT(usage.logical_bytes, 0u);
  // A caller of an older version knows fewer members.
  hearth_usage older{};
  older.struct_size = offsetof(hearth_usage, logical_bytes);
  ASSERT_EQ(hearth_session_usage(fork, &older), HEARTH_OK);
  EXPECT_EQ(older.tokens, usage.tokens);
  EXPECT_EQ(older.logical_bytes, 0u);
  EXPECT_EQ(hearth_session_persist(fork), HEARTH_OK);
  EXPECT_EQ(hearth_engine_drain_saves(engine_, 0), HEARTH_OK);
  EXPECT_EQ(hearth_engine_drain_saves(engine_, -1), HEARTH_INVALID_ARGUMENT);
  EXPECT_EQ(hearth_session_free(fork), HEARTH_OK);
  EXPECT_EQ(hearth_session_free(session), HEARTH_OK);
}

TEST_F(CApi, ASessionOutlivesItsEngine) {
  hearth_session* session = Synced(engine_, ids_);
  hearth_generate_options* options = Greedy(engine_, "5");
  ASSERT_EQ(hearth_engine_free(engine_), HEARTH_OK);
  hearth_generate_report report{};
  report.struct_size = sizeof report;
  ASSERT_EQ(
      hearth_session_generate(session, options, nullptr, nullptr, &report),
      HEARTH_OK);
  EXPECT_EQ(report.n_ids, 5u);
  EXPECT_EQ(hearth_session_free(session), HEARTH_OK);
  EXPECT_EQ(hearth_generate_options_free(options), HEARTH_OK);
  engine_ = nullptr;
}

TEST_F(CApi, AFormHoldsTheAnswer) {
  hearth_session* session = Synced(engine_, ids_);
  hearth_generate_options* options = Greedy(engine_, "20");
  ASSERT_EQ(hearth_generate_options_set(options, "grammar",
                                        "root ::= \"yes\" | \"no\""),
            HEARTH_OK)
      << hearth_last_error();
  hearth_generate_report report{};
  report.struct_size = sizeof report;
  ASSERT_EQ(
      hearth_session_generate(session, options, nullptr, nullptr, &report),
      HEARTH_OK);
  const std::string text(report.text, report.text_bytes);
  EXPECT_TRUE(text == "yes" || text == "no") << text;
  EXPECT_EQ(report.stop, HEARTH_STOP_END_OF_TEXT);
  EXPECT_EQ(hearth_generate_options_set(options, "json_schema", "{"),
            HEARTH_CORRUPT);
  EXPECT_EQ(
      hearth_generate_options_set(options, "json_schema", "{\"not\": {}}"),
      HEARTH_UNSUPPORTED);
  EXPECT_EQ(hearth_session_free(session), HEARTH_OK);
  EXPECT_EQ(hearth_generate_options_free(options), HEARTH_OK);
}

TEST_F(CApi, CallbacksStop) {
  hearth_session* session = nullptr;
  ASSERT_EQ(hearth_session_new(engine_, &session), HEARTH_OK);
  const std::vector<std::int32_t> longer(400, ids_[1]);
  EXPECT_EQ(hearth_session_sync(
                session, longer.data(), longer.size(),
                [](int32_t, int32_t, void*) -> int32_t { return 1; }, nullptr,
                nullptr),
            HEARTH_CANCELLED);
  ASSERT_EQ(hearth_session_sync(session, ids_.data(), ids_.size(), nullptr,
                                nullptr, nullptr),
            HEARTH_OK);
  hearth_generate_report report{};
  report.struct_size = sizeof report;
  ASSERT_EQ(hearth_session_generate(
                session, nullptr,
                [](const hearth_token*, void*) -> int32_t { return 7; },
                nullptr, &report),
            HEARTH_OK);
  EXPECT_EQ(report.stop, HEARTH_STOP_CALLER);
  EXPECT_EQ(report.n_ids, 1u);
  EXPECT_EQ(hearth_session_free(session), HEARTH_OK);
}

TEST_F(CApi, HandlesThatAreNoneAreFoundOut) {
  hearth_session* session = Synced(engine_, ids_);
  const auto usage_of = [](hearth_session* of) {
    hearth_usage usage{};
    usage.struct_size = sizeof usage;
    return hearth_session_usage(of, &usage);
  };
  EXPECT_EQ(usage_of(nullptr), HEARTH_BAD_HANDLE);
  EXPECT_STREQ(hearth_last_error(), "the session is NULL");
  EXPECT_EQ(usage_of(reinterpret_cast<hearth_session*>(engine_)),
            HEARTH_BAD_HANDLE);
  EXPECT_STREQ(hearth_last_error(),
               "the session is a handle of another kind: engine");
  int local = 0;
  EXPECT_EQ(usage_of(reinterpret_cast<hearth_session*>(&local)),
            HEARTH_BAD_HANDLE);
  EXPECT_STREQ(hearth_last_error(), "the session is no handle of hearth");
  ASSERT_EQ(hearth_session_free(session), HEARTH_OK);
  EXPECT_EQ(usage_of(session), HEARTH_BAD_HANDLE);
  EXPECT_STREQ(hearth_last_error(), "the session was freed");
  EXPECT_EQ(hearth_session_free(session), HEARTH_BAD_HANDLE) << "twice";
  EXPECT_EQ(hearth_session_free(nullptr), HEARTH_OK) << "as free() does";
  EXPECT_EQ(hearth_engine_open(nullptr, nullptr), HEARTH_INVALID_ARGUMENT);
  EXPECT_EQ(hearth_session_new(engine_, nullptr), HEARTH_INVALID_ARGUMENT);
}

TEST_F(CApi, ASessionFreedInItsOwnCallbackLivesUntilTheCallReturns) {
  hearth_session* session = Synced(engine_, ids_);
  struct User {
    hearth_session* session;
    int n_tokens;
  } user{session, 0};
  const auto on_token = [](const hearth_token*, void* data) -> int32_t {
    auto& u = *static_cast<User*>(data);
    if (++u.n_tokens == 1) {
      EXPECT_EQ(hearth_session_free(u.session), HEARTH_OK);
    }
    return u.n_tokens == 4;
  };
  EXPECT_EQ(hearth_session_generate(session, nullptr, on_token, &user, nullptr),
            HEARTH_OK);
  EXPECT_EQ(user.n_tokens, 4);
  EXPECT_EQ(hearth_session_persist(session), HEARTH_BAD_HANDLE);
}

TEST_F(CApi, ASecondThreadInASessionIsRefused) {
  hearth_session* session = Synced(engine_, ids_);
  const auto on_token = [](const hearth_token*, void* data) -> int32_t {
    auto* mine = static_cast<hearth_session*>(data);
    EXPECT_EQ(hearth_session_tokens(mine, nullptr, 0, nullptr),
              HEARTH_BUFFER_TOO_SMALL)
        << "its own thread may ask";
    std::thread([mine] {
      EXPECT_EQ(hearth_session_persist(mine), HEARTH_IN_USE);
      EXPECT_NE(std::string(hearth_last_error()).find("another thread"),
                std::string::npos);
    }).join();
    return 1;
  };
  EXPECT_EQ(
      hearth_session_generate(session, nullptr, on_token, session, nullptr),
      HEARTH_OK);
  EXPECT_EQ(hearth_session_free(session), HEARTH_OK);
}

TEST_F(CApi, SessionsInTwoThreadsWork) {
  hearth_generate_options* options = Greedy(engine_, "20");
  std::string texts[2];
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      hearth_session* session = Synced(engine_, ids_);
      hearth_generate_report report{};
      report.struct_size = sizeof report;
      EXPECT_EQ(
          hearth_session_generate(session, options, nullptr, nullptr, &report),
          HEARTH_OK);
      text = report.text;
      EXPECT_EQ(hearth_session_free(session), HEARTH_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_FALSE(texts[0].empty());
  EXPECT_EQ(hearth_generate_options_free(options), HEARTH_OK);
}

TEST(CApiNames, CodesAndVersionsHaveThem) {
  for (hearth_code code = HEARTH_OK; code <= HEARTH_INTERNAL; ++code) {
    EXPECT_STRNE(hearth_code_name(code), "unknown") << code;
  }
  EXPECT_STREQ(hearth_code_name(99), "unknown");
  EXPECT_EQ(hearth_abi_version(), HEARTH_ABI_VERSION);
  EXPECT_STRNE(hearth_version(), "");
}

}  // namespace
}  // namespace hearth
