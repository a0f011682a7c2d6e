// One sequence of an engine with its KV cache, an answer in progress, and what
// is reported of both. Who may call what from which thread: engine.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/miss_kind.h"
#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth {

// How a prompt was obtained.
struct SyncReport {
  int prompt_tokens = 0;
  int reused_tokens = 0;    // not computed again
  std::string reuse_tier;   // "none", "memory", "disk", "file", "remote"
  std::string miss_reason;  // why not more; empty when all was reused
  MissKind miss_kind = MissKind::kNotStored;  // of a miss_reason
  std::vector<std::string> warnings;          // damaged files set aside, ...
  double lookup_ms = 0;                       // finding, verifying and mapping
  double prefill_ms = 0;                      // computing what was not reused
};

// The natural logarithm of a token's probability.
struct TokenLogprob {
  std::int32_t id = 0;
  double logprob = 0;
};

struct Token {
  std::int32_t id = 0;         // -1: text that was held back, at the end
  std::string_view text = {};  // complete UTF-8 characters; may be empty
  // As the model has it, before temperature and the other sampling options; 0
  // unless GenerateOptions::logprobs.
  double logprob = 0;
  std::span<const TokenLogprob> top = {};  // the most probable ones first
};

// What guessing ahead brought. All zero without EngineOptions::draft.
struct SpeculationReport {
  std::string drafter;  // "prompt lookup", the draft model's name, ...
  int steps = 0;        // forward steps, with or without guesses
  int drafted = 0;      // guesses that were verified
  int accepted = 0;     // of them: right, thus tokens without a step
  std::uint64_t kv_physical_bytes = 0;  // of a draft model
};

enum class StopReason : std::uint8_t {
  kLength,
  kEndOfText,  // an end marker, a stop text, or a constraint that was complete
  kContext,
  kCaller
};

struct GenerateReport {
  std::vector<std::int32_t> token_ids;  // as sampled, the end marker excluded
  std::string text;
  StopReason stop = StopReason::kLength;
  std::int32_t end_id = -1;   // the end marker that was sampled, or -1
  std::string stop_text;      // that ended it; empty: none did
  double first_token_ms = 0;  // from the call to the first token
  double decode_ms = 0;       // from the first token to the last
  SpeculationReport speculation;
};

struct KvReport {
  int tokens = 0;
  int saved_tokens = 0;  // leading ones, in the prompt cache or on their way
  std::uint64_t logical_bytes = 0;   // what attention reads
  std::uint64_t physical_bytes = 0;  // what is resident for it, mapped included
  std::uint64_t mapped_bytes = 0;    // of them: shared with the page cache
  std::uint64_t shared_bytes = 0;    // of them: other sessions hold them, too
  // Of a model that carries states: of physical_bytes, those of the newest
  // token and of earlier ones that are kept; and how many positions these are.
  std::uint64_t state_bytes = 0;
  int kept_states = 0;
  int populated_layers = 0;
  int kv_layers = 0;
};

struct SessionOptions {
  // Sessions of different spaces share nothing, in memory or stored.
  std::string key_space = {};
  // Full blocks of an answer go to the prompt cache every half second, as those
  // of a prompt do. And no save is waited for: what the writer has no room for
  // is handed over later (TryPersist).
  bool save_answers = false;
};

// What may be taken from others when a session wants memory. Always: what the
// prompt cache has becomes a mapping.
enum class Relief : std::uint8_t {
  kFree,     // and resting sessions let go that are saved
  kResting,  // resting sessions let go, saved or not
  kWait      // the same, after what they hold was saved
};

class SessionCore;

// What the prompt cache has of a prompt, verified and mapped. Engine::Match
// makes it, on any thread; Session::Attach uses it up.
class PrefixMatch {
 public:
  PrefixMatch();
  ~PrefixMatch();
  PrefixMatch(PrefixMatch&& other) noexcept;
  PrefixMatch& operator=(PrefixMatch&& other) noexcept;

  int n_tokens() const;  // leading tokens of the prompt

 private:
  friend class Engine;
  friend class Session;
  struct Found;
  std::unique_ptr<Found> found_;  // null: nothing
};

// An answer in progress, for callers that make the forward steps themselves:
//
//   auto answer = session.Begin({.n_tokens_max = 100}, on_token, nullptr);
//   for (auto next = (*answer)->Next(); next.ok() && !next->empty();
//        next = (*answer)->Next()) {
//     engine.Step({{&session, *next, StepLogits::kAll}, ...other sessions'});
//   }
//   GenerateReport report = (*answer)->Finish();
class Generation {
 public:
  virtual ~Generation() = default;

  // Samples and emits what the last step gave. The tokens to append in the next
  // step, whose logits are all wanted: the newest one, and guesses behind it
  // (what of them is wrong is rewound by the next call). Empty when the answer
  // is over. Valid until the next call. kInvalidArgument when the tokens before
  // were not appended.
  // `guesses_max`: fewer guesses than it would make, where that cannot change
  // the text.
  static constexpr int kGuessesAtWill = 1 << 30;
  virtual Result<std::span<const std::int32_t>> Next(
      int guesses_max = kGuessesAtWill) = 0;
  // The first half of Next, for callers that have others to serve meanwhile:
  // samples and emits, then has a draft model read so many tokens at most of
  // what it must know before it can guess. How many it has still to read: 0
  // when Next would compute a block or less, and without a draft model. Next
  // does all of it when this was not called.
  virtual Result<int> Prepare(int n_tokens_max) = 0;
  // Emits the text that was held back; the report. Called once.
  virtual GenerateReport Finish() = 0;
};

class Session {
 public:
  ~Session();

  // Called between steps of a long prefill; false stops it (kCancelled; what
  // was computed stays and is handed to the prompt cache).
  using Progress = std::function<bool(int tokens_done, int tokens_total)>;
  // Called for each token; false ends the generation.
  using OnToken = std::function<bool(const Token&)>;

  // Makes the cache hold exactly `tokens`: keeps the longest prefix that the
  // session, the prompt cache file or directory has, computes the rest. The
  // caller always gives the whole prompt. kInvalidArgument for an empty prompt
  // or foreign ids, kResourceFull when it exceeds the context.
  // `marks`: numbers of leading tokens, rising, that a message ends with, where
  // control tokens do not tell. A model that carries states can be gone on with
  // from positions alone where they were kept, and these are such places.
  Result<SyncReport> Sync(std::span<const std::int32_t> tokens,
                          const Progress& progress,
                          std::span<const int> marks = {});

  // Samples from the state that Sync left. Token text arrives as soon as it is
  // complete. After the first token the prompt is handed to the prompt cache.
  // A draft model reads the prompt then; `on_draft_prefill` is called between
  // its steps as Sync's progress is, and false ends the generation.
  Result<GenerateReport> Generate(const GenerateOptions& options,
                                  const OnToken& on_token,
                                  const Progress& on_draft_prefill = nullptr);

  // The same without any KV cache: every token recomputes the whole sequence.
  Result<GenerateReport> GenerateUncached(std::span<const std::int32_t> prompt,
                                          const GenerateOptions& options,
                                          const OnToken& on_token);

  // --- The parts that Sync and Generate are made of, for a scheduler ---------

  // How many leading ones of `tokens` the session has: what a match must exceed
  // to be of use.
  int Held(std::span<const std::int32_t> tokens) const;
  // Keeps the longest prefix of `tokens` that the session or `match` has, but
  // never all of them: report.reused_tokens. The rest is to be appended by
  // Engine::Step, which hands full blocks to the prompt cache every half second
  // meanwhile. Errors as Sync, and kInvalidArgument for a match of another
  // prompt or engine. `marks` as Sync.
  Result<SyncReport> Attach(std::span<const std::int32_t> tokens,
                            PrefixMatch match, std::span<const int> marks = {});
  // Of a model that carries states: the number of tokens, above n_tokens(),
  // that a step of the attached prompt should end with, so that the states
  // there are kept. Of others the prompt's number of tokens.
  int NextStop() const;
  // Another such place, which somebody else's prompt has in common. False when
  // the prompt has come to it already, or does not go there.
  bool AddStop(int n_tokens);
  // Begins an answer from the logits of the last step. It may outlive the
  // session object. kInvalidArgument when there are none.
  Result<std::unique_ptr<Generation>> Begin(const GenerateOptions& options,
                                            const OnToken& on_token,
                                            const Progress& on_draft_prefill);
  // The last step's logits, [rows][vocab_size]: of the newest tokens, as many
  // as it was asked for. Empty when they are not known any more. Valid until
  // the next call.
  std::span<const float> logits() const;
  // Has the memory budget promise what growing to `n_tokens` takes, until the
  // session's next step has ended. kResourceFull when `relief` does not give as
  // much; then no session has lost anything.
  Result<void> Reserve(int n_tokens, Relief relief);
  // Hands all that the session holds to the prompt cache, and lets the memory
  // budget take it. A session between Attach and this, or the end of its
  // answer, is never taken. An answer in progress may go on later, after Attach
  // with the tokens that the session had and steps for what is missing.
  void Finish();
  // The two halves of it. False when the writer has no room now and some of it
  // was not handed over. `rests`: nobody is expected to ask soon, so that
  // states of the newest tokens are worth their files, too.
  bool TryPersist(bool rests = false);
  void Rest();

  // Keeps the first `n_tokens`. kInvalidArgument when there are fewer.
  Result<void> Rewind(int n_tokens);
  // An independent session with the same tokens; KV blocks are shared.
  Result<std::unique_ptr<Session>> Fork();

  // Hands all that the session holds to the prompt cache, answers included;
  // returns at once. Nothing happens without a prompt cache.
  void Persist();

  std::vector<std::int32_t> tokens() const;
  int n_tokens() const;
  KvReport Usage() const;

 private:
  friend class Engine;
  explicit Session(std::shared_ptr<SessionCore> core);
  const std::shared_ptr<SessionCore> core_;
};

}  // namespace hearth
