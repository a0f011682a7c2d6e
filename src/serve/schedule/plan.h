// Which rows go into the next pass: rules 1 to 3 of docs/scheduler.md. Knows
// neither clock, engine nor memory: it is given what there is, and told what a
// pass took.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth::serve {

struct PlanOptions {
  int running_max = 8;
  double decode_share = 0.5;
  double stall_ms = 250;
  int block_tokens = 64;
  int rows_max = 512;
};

// A sequence that could compute now.
struct PlanItem {
  bool decodes = false;
  // Of decoding: the newest token and its guesses, all or none. Of a prefill:
  // the tokens left until the next place where it must stop.
  int tokens = 0;
  int at = 0;    // of a prefill: tokens that are there
  int left = 0;  // of a prefill: in all
  int passed_over = 0;
};

struct Pass {
  // Rows of each item, 0: none.
  std::vector<int> rows;
  int decode_rows = 0, prefill_rows = 0;
  // Prefills and answers that were ready and got nothing while others of their
  // kind got something.
  std::vector<bool> passed_over;
};

class Planner {
 public:
  explicit Planner(const PlanOptions& options);

  // `prefills` false: a draft model reads in their place.
  Pass Plan(std::span<const PlanItem> items, bool prefills = true);
  // What was computed, perhaps less than planned, and the time that it took.
  void Report(int decode_rows, int prefill_rows, double ms);

  // Tokens that a draft model may read now, between passes; 0: answers are owed
  // time first. And what came of it.
  int ReadTokens(bool others_decode) const;
  void ReportRead(int tokens, double ms, bool others_decode);

  // Prompt tokens of a pass beside so many rows of answers.
  int ChunkTokens(int decode_rows) const;
  // Times that a prefill may be passed over: more only where more run.
  int passed_over_max() const;
  // Prompt tokens a second, the best of the last passes; 0: not known.
  double prefill_rate() const;
  // Rows of answers a second in the last pass of answers alone.
  double decode_rate() const { return decode_rate_; }
  double debt_ms() const { return debt_ms_; }

 private:
  void PlanDecode(std::span<const PlanItem> items, Pass& pass) const;
  void PlanPrefill(std::span<const PlanItem> items, Pass& pass) const;
  std::vector<std::size_t> PrefillOrder(std::span<const PlanItem> items) const;
  // What a pass of so many rows of answers alone takes; 0: not known.
  double DecodeMs(int rows) const;

  static constexpr int kRatesKept = 8;
  static constexpr int kDecodeRowsKept = 64;

  const PlanOptions options_;
  void Owe(double ms);

  std::array<double, kRatesKept> rates_{};  // tokens/ms
  int n_rates_ = 0;
  std::array<double, kDecodeRowsKept + 1> decode_ms_{};  // by rows; 0: unknown
  double decode_rate_ = 0;
  double read_rate_ = 0;  // of a draft model, tokens/ms; 0: not known
  double debt_ms_ = 0;    // that answers are owed
};

}  // namespace hearth::serve
