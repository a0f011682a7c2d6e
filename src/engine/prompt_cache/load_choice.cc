#include "engine/prompt_cache/load_choice.h"

#include <cstdio>

namespace hearth {
namespace {

constexpr std::uint64_t kLoadBytesMin = std::uint64_t{256} << 10;
constexpr int kPrefillTokensMin = 64;
constexpr double kNewWeight = 0.5;       // of the latest measurement
constexpr double kDeclinedFactor = 1.1;  // faster, says each declined load
constexpr double kChangeToKeep = 0.2;

void Blend(double& speed, double latest) {
  speed = speed == 0 ? latest : speed + kNewWeight * (latest - speed);
}

bool Moved(double now, double kept) {
  return now != 0 &&
         (now < kept * (1 - kChangeToKeep) || now > kept * (1 + kChangeToKeep));
}

std::string Milliseconds(double ms) {
  char text[32];
  std::snprintf(text, sizeof(text), ms < 10 ? "%.1f ms" : "%.0f ms", ms);
  return text;
}

}  // namespace

void LoadChoice::NoteLoad(std::uint64_t bytes, double ms) {
  if (bytes < kLoadBytesMin || ms <= 0) return;
  Blend(speeds_.load_bytes_per_s, static_cast<double>(bytes) * 1e3 / ms);
}

void LoadChoice::NotePrefill(int n_tokens, double ms) {
  if (n_tokens < kPrefillTokensMin || ms <= 0) return;
  Blend(speeds_.prefill_tokens_per_s, n_tokens * 1e3 / ms);
}

void LoadChoice::NoteDeclined() {
  speeds_.load_bytes_per_s *= kDeclinedFactor;
  declined_ = true;  // or a launch that declines once would leave no trace
}

std::optional<LoadChoice::Prediction> LoadChoice::Predict(
    int n_tokens, std::uint64_t bytes) const {
  if (speeds_.load_bytes_per_s <= 0 || speeds_.prefill_tokens_per_s <= 0) {
    return std::nullopt;
  }
  return Prediction{static_cast<double>(bytes) * 1e3 / speeds_.load_bytes_per_s,
                    n_tokens * 1e3 / speeds_.prefill_tokens_per_s};
}

std::optional<KvSpeeds> LoadChoice::TakeChanged() {
  if (!declined_ && !Moved(speeds_.load_bytes_per_s, saved_.load_bytes_per_s) &&
      !Moved(speeds_.prefill_tokens_per_s, saved_.prefill_tokens_per_s)) {
    return std::nullopt;
  }
  saved_ = speeds_;
  declined_ = false;
  return speeds_;
}

std::string Describe(int n_tokens, const LoadChoice::Prediction& prediction) {
  return "loading " + std::to_string(n_tokens) + " tokens would take " +
         Milliseconds(prediction.load_ms) + ", computing them " +
         Milliseconds(prediction.compute_ms);
}

}  // namespace hearth
