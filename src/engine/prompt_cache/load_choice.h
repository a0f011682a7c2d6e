// Whether loading stored KV is worth it: it is unless this machine was seen to
// compute the same tokens faster than it loads them (a slow or remote disk
// under a small model).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/memo/speed_memo.h"

namespace hearth {

class LoadChoice {
 public:
  // Speeds of earlier launches.
  explicit LoadChoice(KvSpeeds known) : speeds_(known), saved_(known) {}

  // A load or a prefill that took place. Short ones say little and are left
  // out.
  void NoteLoad(std::uint64_t bytes, double ms);
  void NotePrefill(int n_tokens, double ms);
  // A load that did not take place. Each makes the next one look a little
  // cheaper, so that one slow day is not for ever.
  void NoteDeclined();

  // Predicted milliseconds; nothing before both speeds are known.
  struct Prediction {
    double load_ms = 0, compute_ms = 0;
    // Below the margin a difference is noise, and nobody waits for it.
    bool load_pays() const { return load_ms <= compute_ms + kMarginMs; }
    static constexpr double kMarginMs = 20;
  };
  std::optional<Prediction> Predict(int n_tokens, std::uint64_t bytes) const;

  // The speeds, when they have moved enough since the last call to be kept.
  std::optional<KvSpeeds> TakeChanged();

 private:
  KvSpeeds speeds_, saved_;
  bool declined_ = false;  // since they were last taken
};

// "loading 900 tokens would take 40 ms, computing them 12 ms"
std::string Describe(int n_tokens, const LoadChoice::Prediction& prediction);

}  // namespace hearth
