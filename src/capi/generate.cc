// Answers of the C interface.
#include <string>
#include <utility>
#include <vector>

#include "capi/inside.h"
#include "capi/report.h"

namespace hearth::capi {
namespace {

static_assert(static_cast<int>(StopReason::kLength) == HEARTH_STOP_LENGTH);
static_assert(static_cast<int>(StopReason::kEndOfText) ==
              HEARTH_STOP_END_OF_TEXT);
static_assert(static_cast<int>(StopReason::kContext) == HEARTH_STOP_CONTEXT);
static_assert(static_cast<int>(StopReason::kCaller) == HEARTH_STOP_CALLER);

// The options that stand behind a handle; null: as they are when new.
hearth_code OptionsOf(const SessionObject& object,
                      const hearth_generate_options* handle,
                      GenerateOptions& options) {
  if (handle == nullptr) {
    options.sampling = DefaultSampling(object.engine->engine->info().sampling);
    return HEARTH_OK;
  }
  const auto given = Handles::All().Find<GenerateOptionsObject>(handle);
  if (given == nullptr) return HEARTH_BAD_HANDLE;
  if (given->engine != object.engine) {
    return Fail(HEARTH_INVALID_ARGUMENT,
                "the options are of another engine than the session");
  }
  const MutexLock lock(given->mutex);
  options = given->options;
  return HEARTH_OK;
}

// Hands one token to the caller.
class TokenOut {
 public:
  TokenOut(hearth_on_token on_token, void* user)
      : on_token_(on_token), user_(user) {}

  bool operator()(const Token& token) {
    text_ = token.text;  // with a NUL behind it
    top_.clear();
    for (const TokenLogprob& one : token.top) {
      top_.push_back({one.id, one.logprob});
    }
    const hearth_token out{.struct_size = sizeof out,
                           .id = token.id,
                           .text = text_.c_str(),
                           .text_bytes = text_.size(),
                           .logprob = token.logprob,
                           .top = top_.data(),
                           .n_top = top_.size()};
    return on_token_(&out, user_) == 0;
  }

 private:
  hearth_on_token on_token_;
  void* user_;
  std::string text_;
  std::vector<hearth_logprob> top_;
};

hearth_generate_report ReportOf(const GenerateReport& r) {
  return {.struct_size = sizeof(hearth_generate_report),
          .stop = static_cast<hearth_stop>(r.stop),
          .end_id = r.end_id,
          .text = r.text.c_str(),
          .text_bytes = r.text.size(),
          .ids = r.token_ids.data(),
          .n_ids = r.token_ids.size(),
          .stop_text = r.stop_text.c_str(),
          .first_token_ms = r.first_token_ms,
          .decode_ms = r.decode_ms,
          .decode_steps = r.speculation.steps,
          .drafted_tokens = r.speculation.drafted,
          .accepted_tokens = r.speculation.accepted};
}

hearth_code Generate(SessionObject& object,
                     const hearth_generate_options* handle,
                     hearth_on_token on_token, void* user,
                     hearth_generate_report* report) {
  if (CheckReport(report) != HEARTH_OK) return HEARTH_INVALID_ARGUMENT;
  GenerateOptions options;
  if (const auto code = OptionsOf(object, handle, options); code != HEARTH_OK) {
    return code;
  }
  Session::OnToken out;
  if (on_token != nullptr) out = TokenOut(on_token, user);
  auto generated = object.session->Generate(options, out);
  if (!generated.ok()) return Fail(generated.error());
  object.generated = std::move(*generated);
  return FillReport(ReportOf(object.generated), report);
}

}  // namespace
}  // namespace hearth::capi

extern "C" hearth_code hearth_session_generate(
    hearth_session* session, const hearth_generate_options* options,
    hearth_on_token on_token, void* user, hearth_generate_report* report) {
  return hearth::capi::Inside(
      session, [&](hearth::capi::SessionObject& object) {
        return hearth::capi::Generate(object, options, on_token, user, report);
      });
}
