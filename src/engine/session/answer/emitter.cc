#include "engine/session/answer/emitter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/sampling/check_sampling.h"

namespace hearth {

Result<void> CheckGenerate(const GenerateOptions& options, int vocab_size) {
  HEARTH_TRY(CheckSampling(options.sampling, vocab_size));
  for (const std::string& text : options.stop_texts) {
    if (text.empty()) {
      return {Code::kInvalidArgument,
              "an empty stop text would end every answer at once"};
    }
  }
  if (options.top_logprobs < 0) {
    return {Code::kInvalidArgument,
            "the number of most probable tokens must be 0 or more"};
  }
  return {};
}

Result<std::unique_ptr<TokenConstraint>> NewConstraint(
    const GenerateOptions& options) {
  if (!options.constraint) return std::unique_ptr<TokenConstraint>();
  auto constraint = options.constraint();
  if (constraint == nullptr) {
    return {Code::kInvalidArgument, "the constraint's maker made none"};
  }
  return constraint;
}

Emitter::Emitter(const Tokenizer& tokenizer, GenerateOptions options,
                 Session::OnToken on_token,
                 std::unique_ptr<TokenConstraint> constraint)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      on_token_(std::move(on_token)),
      sampler_(options_.sampling, &tokenizer, std::move(constraint)),
      decoder_(tokenizer, /*skip_special=*/true, /*at_start=*/false),
      stops_(options_.stop_texts) {}

// In double: a vocabulary has 10^5 terms, and the sum decides every figure.
void Emitter::FillLogprobs(std::span<const float> logits, Token& token) {
  const double best = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - best);
  const double log_total = best + std::log(sum);
  const auto logprob = [&](std::int32_t id) {
    return logits[static_cast<std::size_t>(id)] - log_total;
  };
  token.logprob = logprob(token.id);
  std::vector<std::int32_t> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(i);
  }
  const std::size_t n =
      std::min(ids.size(), static_cast<std::size_t>(options_.top_logprobs));
  const auto last = ids.begin() + static_cast<std::ptrdiff_t>(n);
  std::partial_sort(ids.begin(), last, ids.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      const float x = logits[static_cast<std::size_t>(a)];
                      const float y = logits[static_cast<std::size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  top_.clear();
  for (auto id = ids.begin(); id != last; ++id) {
    top_.push_back({*id, logprob(*id)});
  }
  token.top = top_;
}

std::optional<std::int32_t> Emitter::Emit(std::int32_t id,
                                          std::span<const float> logits) {
  sampler_.Keep(id);
  if (report_.token_ids.empty()) report_.first_token_ms = clock_.ms();
  if (!options_.ignore_eos && tokenizer_.IsEnd(id)) {
    report_.stop = StopReason::kEndOfText;
    report_.end_id = id;
    return std::nullopt;
  }
  report_.token_ids.push_back(id);
  const std::string text = stops_.Push(decoder_.Push(id));
  report_.text += text;
  Token token{.id = id, .text = text};
  if (options_.logprobs) FillLogprobs(logits, token);
  if (on_token_ && !on_token_(token)) {
    report_.stop = StopReason::kCaller;
    return std::nullopt;
  }
  if (!stops_.found().empty()) {
    report_.stop = StopReason::kEndOfText;
    report_.stop_text = stops_.found();
    return std::nullopt;
  }
  if (n_left() <= 0) {
    report_.stop = StopReason::kLength;
    return std::nullopt;
  }
  return id;
}

std::optional<std::int32_t> Emitter::Next(
    std::span<const float> logits, std::span<const std::int32_t> before) {
  const auto id = sampler_.Sample(logits, before);
  if (id.has_value()) return Emit(*id, logits);
  StopForConstraint();
  return std::nullopt;
}

GenerateReport Emitter::Finish() {
  std::string rest = stops_.Flush();
  // What follows a stop text is not part of the answer.
  if (stops_.found().empty()) rest += decoder_.Flush();
  report_.text += rest;
  if (!rest.empty() && on_token_) (void)on_token_({.id = -1, .text = rest});
  report_.decode_ms = clock_.ms() - report_.first_token_ms;
  return std::move(report_);
}

}  // namespace hearth
