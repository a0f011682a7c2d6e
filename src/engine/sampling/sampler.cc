#include "engine/sampling/sampler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/sampling/dry.h"
#include "engine/sampling/logit.h"
#include "engine/sampling/penalties.h"

namespace hearth {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// SplitMix64: a counter in, 64 well mixed bits out.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

bool HasXtc(const SamplingOptions& options) {
  // Two tokens cannot both have more than half; greedy is one token.
  return options.xtc_probability > 0 && options.xtc_threshold <= 0.5 &&
         options.temperature > 0;
}

bool IsSet(std::span<const std::uint64_t> mask, std::size_t id) {
  return id / 64 < mask.size() && (mask[id / 64] >> (id % 64) & 1) != 0;
}

// Minus infinity for what `mask` leaves out.
void Forbid(std::span<const std::uint64_t> mask, std::span<float> logits) {
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (!IsSet(mask, id)) logits[id] = kNever;
  }
}

bool AnyComes(std::span<const float> logits) {
  return std::any_of(logits.begin(), logits.end(),
                     [](float logit) { return logit > kNever; });
}

void AddBias(const SamplingOptions& options, std::span<float> logits) {
  for (const auto& [id, bias] : options.logit_bias) {
    const auto at = static_cast<std::size_t>(id);
    // A draft model's vocabulary may be the smaller one.
    if (at >= logits.size()) continue;
    logits[at] = bias > kNever ? ToLogit(logits[at] + bias) : kNever;
  }
  for (const std::int32_t id : options.suppressed_ids) {
    const auto at = static_cast<std::size_t>(id);
    if (at < logits.size()) logits[at] = kNever;
  }
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options, const Tokenizer* tokenizer,
                 std::unique_ptr<TokenConstraint> constraint)
    : options_(options),
      tokenizer_(tokenizer),
      constraint_(std::move(constraint)),
      adjusts_(constraint_ != nullptr || !options_.logit_bias.empty() ||
               !options_.suppressed_ids.empty() || HasPenalties(options_) ||
               HasDry(options_)) {}

double Sampler::NextUniform() {
  const std::uint64_t bits = Mix(Mix(options_.seed) ^ Mix(n_draws_++));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

bool Sampler::MaskNext() {
  mask_.assign((static_cast<std::size_t>(tokenizer_->vocab_size()) + 63) / 64,
               0);
  constraint_->Mask(mask_);
  return std::any_of(mask_.begin(), mask_.end(),
                     [](std::uint64_t word) { return word != 0; });
}

std::span<const float> Sampler::Adjusted(std::span<const float> logits,
                                         std::span<const std::int32_t> before) {
  if (!adjusts_) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  AddBias(options_, adjusted_);
  if (HasPenalties(options_)) Penalise(options_, before, adjusted_);
  if (HasDry(options_)) {
    PenaliseRepetitions(options_, tokenizer_, before, adjusted_);
  }
  if (constraint_ != nullptr) Forbid(mask_, adjusted_);
  if (AnyComes(adjusted_)) return adjusted_;
  // All that may come is suppressed: an answer's form counts more.
  adjusted_.assign(logits.begin(), logits.end());
  if (constraint_ == nullptr) return adjusted_;
  Forbid(mask_, adjusted_);
  // These logits may be of a draft's smaller vocabulary.
  return AnyComes(adjusted_) ? adjusted_ : std::span<const float>();
}

void Sampler::FilterFirst(std::span<const float> logits,
                          std::span<const std::int32_t> before,
                          Distribution& out) {
  auto& candidates = out.candidates;
  candidates.clear();
  out.total = 0;
  if (constraint_ != nullptr && !MaskNext()) return;
  const auto adjusted = Adjusted(logits, before);
  if (adjusted.empty()) return;
  Weigh(adjusted, options_.temperature, candidates);
  if (options_.top_k > 0 || options_.top_p < 1 || options_.min_p > 0 ||
      HasXtc(options_)) {
    SortByLogit(candidates);
    KeepTopK(options_.top_k, candidates);
    KeepTopP(options_.top_p, candidates);
    KeepMinP(options_.min_p, candidates);
  }
  out.SumUp();
}

void Sampler::Filter(std::span<const float> logits,
                     std::span<const std::int32_t> before, Distribution& out) {
  FilterFirst(logits, before, out);
  if (!HasXtc(options_) || NextUniform() >= options_.xtc_probability) return;
  DropTopChoices(options_.xtc_threshold, out.candidates);
  out.SumUp();
}

std::int32_t Sampler::Draw(const Distribution& distribution) {
  if (options_.temperature == 0) return distribution.candidates.front().id;
  double point = NextUniform() * distribution.total;
  for (const auto& c : distribution.candidates) {
    point -= c.weight;
    if (point < 0) return c.id;
  }
  return distribution.candidates.back().id;
}

std::optional<std::int32_t> Sampler::Sample(
    std::span<const float> logits, std::span<const std::int32_t> before) {
  Filter(logits, before, scratch_);
  if (scratch_.candidates.empty()) return std::nullopt;
  return Draw(scratch_);
}

void Sampler::Keep(std::int32_t id) {
  if (constraint_ != nullptr) constraint_->Accept(id);
}

std::int32_t Sampler::AcceptOrDraw(const Distribution& p, const Distribution& q,
                                   std::int32_t draft) {
  if (options_.temperature == 0) return p.candidates.front().id;
  if (NextUniform() * q.Of(draft) < p.Of(draft)) return draft;
  // What p has more than q, over the ids of q laid out densely.
  for (const auto& c : q.candidates) {
    const auto id = static_cast<std::size_t>(c.id);
    if (id >= q_of_id_.size()) q_of_id_.resize(id + 1, 0.0);
    q_of_id_[id] = c.weight / q.total;
  }
  scratch_.candidates.clear();
  scratch_.total = 0;
  for (const auto& c : p.candidates) {
    const auto id = static_cast<std::size_t>(c.id);
    const double more =
        c.weight / p.total - (id < q_of_id_.size() ? q_of_id_[id] : 0.0);
    if (more <= 0) continue;
    scratch_.candidates.push_back({c.logit, c.id, more});
    scratch_.total += more;
  }
  for (const auto& c : q.candidates) {
    q_of_id_[static_cast<std::size_t>(c.id)] = 0.0;
  }
  // p = q but for rounding: then p itself is what is left.
  return Draw(scratch_.candidates.empty() ? p : scratch_);
}

Sampler::Ahead::Ahead(Sampler& sampler)
    : sampler_(sampler),
      mark_(sampler.constraint_ == nullptr ? 0 : sampler.constraint_->Mark()) {}

Sampler::Ahead::~Ahead() {
  if (sampler_.constraint_ != nullptr) sampler_.constraint_->Return(mark_);
}

void Sampler::Ahead::Filter(std::span<const float> logits,
                            std::span<const std::int32_t> before,
                            Distribution& out) {
  sampler_.FilterFirst(logits, before, out);
}

bool Sampler::Ahead::Keep(std::int32_t id) {
  if (sampler_.constraint_ == nullptr) return true;
  (void)sampler_.MaskNext();
  if (!IsSet(sampler_.mask_, static_cast<std::size_t>(id))) return false;
  sampler_.constraint_->Accept(id);
  return true;
}

}  // namespace hearth
