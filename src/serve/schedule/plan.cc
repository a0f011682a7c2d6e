#include "serve/schedule/plan.h"

#include <algorithm>
#include <numeric>

namespace hearth::serve {
namespace {

constexpr int kChunkUnit = 16;    // the least that a mixed pass computes
constexpr int kWholeBlocks = 64;  // from here on chunks end with a block
// Nobody decodes: a pass may be longer, but a newcomer waits for its end.
constexpr double kAloneStalls = 2;
constexpr int kPassedOverMax = 8;

// Below this many tokens the weights' unpacking is measured, not the rate.
constexpr int kRateTokensMin = 16;

}  // namespace

Planner::Planner(const PlanOptions& options) : options_(options) {}

int Planner::passed_over_max() const {
  return std::max(kPassedOverMax, options_.running_max - 1);
}

double Planner::prefill_rate() const {
  return 1000 * *std::max_element(rates_.begin(), rates_.end());
}

double Planner::DecodeMs(int rows) const {
  int i = std::min(rows, kDecodeRowsKept);
  while (i > 0 && decode_ms_[static_cast<std::size_t>(i)] == 0) --i;
  return decode_ms_[static_cast<std::size_t>(i)];
}

int Planner::ChunkTokens(int decode_rows) const {
  const int most = options_.rows_max - decode_rows;
  const double rate = prefill_rate() / 1000;
  if (rate == 0) return decode_rows == 0 ? most : std::min(kChunkUnit, most);
  const double ms = options_.stall_ms * (decode_rows == 0 ? kAloneStalls : 1);
  const double tokens = std::min(rate * ms, static_cast<double>(most));
  const int whole = static_cast<int>(tokens) / kChunkUnit * kChunkUnit;
  return std::clamp(whole, std::min(kChunkUnit, most), most);
}

void Planner::PlanDecode(std::span<const PlanItem> items, Pass& pass) const {
  // All of them fit but for long guesses: then those that waited go first.
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].decodes) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) {
                     return items[a].passed_over > items[b].passed_over;
                   });
  for (const std::size_t i : order) {
    if (pass.decode_rows + items[i].tokens > options_.rows_max) {
      pass.passed_over[i] = true;
      continue;
    }
    pass.rows[i] = items[i].tokens;
    pass.decode_rows += items[i].tokens;
  }
}

// Fewest tokens left first, unless somebody would be passed over too often: of
// those that waited longest, the i-th can have its turn i passes from now.
std::vector<std::size_t> Planner::PrefillOrder(
    std::span<const PlanItem> items) const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].decodes) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) {
                     return items[a].passed_over > items[b].passed_over;
                   });
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (items[order[i]].passed_over + static_cast<int>(i) >=
        passed_over_max()) {
      // The longest waiting one first, the rest as ever.
      std::stable_sort(order.begin() + 1, order.end(),
                       [&](std::size_t a, std::size_t b) {
                         return items[a].left < items[b].left;
                       });
      return order;
    }
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return items[a].left != items[b].left ? items[a].left < items[b].left
                                          : a < b;
  });
  return order;
}

void Planner::PlanPrefill(std::span<const PlanItem> items, Pass& pass) const {
  const std::vector<std::size_t> order = PrefillOrder(items);
  int room = ChunkTokens(pass.decode_rows);
  for (const std::size_t i : order) {
    const PlanItem& item = items[i];
    int n = std::min(item.tokens, room);
    if (n < item.tokens && n >= kWholeBlocks) {
      const int over = (item.at + n) % options_.block_tokens;
      if (over < n) n -= over;
    }
    if (n <= 0) {
      pass.passed_over[i] = true;
      continue;
    }
    pass.rows[i] = n;
    pass.prefill_rows += n;
    room -= n;
  }
  if (pass.prefill_rows > 0) return;
  for (const std::size_t i : order) pass.passed_over[i] = false;
}

Pass Planner::Plan(std::span<const PlanItem> items, bool prefills) {
  Pass pass;
  pass.rows.assign(items.size(), 0);
  pass.passed_over.assign(items.size(), false);
  PlanDecode(items, pass);
  if (pass.decode_rows == 0) debt_ms_ = 0;
  if (debt_ms_ <= 0 && prefills) PlanPrefill(items, pass);
  return pass;
}

void Planner::Report(int decode_rows, int prefill_rows, double ms) {
  if (ms <= 0) return;
  if (prefill_rows == 0) {
    if (decode_rows == 0) return;
    if (decode_rows <= kDecodeRowsKept) {
      double& known = decode_ms_[static_cast<std::size_t>(decode_rows)];
      known = known == 0 ? ms : 0.75 * known + 0.25 * ms;
    }
    decode_rate_ = 1000 * decode_rows / ms;
    debt_ms_ -= ms;
    return;
  }
  // What is known of answers may be old: no rate is more than twice the truth.
  const double prefill_ms =
      decode_rows == 0 ? ms : std::max(ms - DecodeMs(decode_rows), ms / 2);
  if (prefill_rows >= kRateTokensMin) {
    rates_[static_cast<std::size_t>(n_rates_++ % kRatesKept)] =
        prefill_rows / prefill_ms;
    n_rates_ %= kRatesKept;
  }
  if (decode_rows == 0) return;
  Owe(prefill_ms);
}

void Planner::Owe(double ms) {
  debt_ms_ = std::max(0.0, debt_ms_) +
             ms * options_.decode_share / (1 - options_.decode_share);
}

int Planner::ReadTokens(bool others_decode) const {
  if (others_decode && debt_ms_ > 0) return 0;
  const double ms = options_.stall_ms * (others_decode ? 1 : kAloneStalls);
  const double tokens =
      std::min(read_rate_ * ms, static_cast<double>(options_.rows_max));
  return std::max(static_cast<int>(tokens) / kChunkUnit, 1) * kChunkUnit;
}

void Planner::ReportRead(int tokens, double ms, bool others_decode) {
  if (ms <= 0) return;
  if (tokens >= kRateTokensMin) {
    const double rate = tokens / ms;
    read_rate_ = read_rate_ == 0 ? rate : (read_rate_ + rate) / 2;
  }
  if (others_decode) Owe(ms);
}

}  // namespace hearth::serve
