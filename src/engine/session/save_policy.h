// What a session hands to the prompt cache, and when: a prompt once its answer
// has begun, full blocks while a long prompt is still being computed, all of it
// when asked to.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/prompt_cache/prompt_cache.h"
#include "engine/session/history.h"
#include "engine/states/state_saves.h"
#include "hearth/options.h"
#include "text/tokenizer.h"

namespace hearth {

class SavePolicy {
 public:
  using Clock = std::chrono::steady_clock;

  // All outlive the object. `cache` null: nothing is ever saved.
  SavePolicy(PromptCache* cache, const EngineOptions& options,
             const Tokenizer& tokenizer, const SessionOptions& session,
             int state_grid = 1, Clock::time_point (*now)() = &Clock::now)
      : cache_(cache),
        options_(&options),
        tokenizer_(&tokenizer),
        now_(now),
        key_space_(session.key_space),
        saves_answers_(session.save_answers),
        states_(state_grid) {}

  // The history now holds `n_stored` tokens that the store has, or more, and
  // began from stored states behind `state_at`; 0: it did not.
  void NoteRestored(int n_stored, int state_at) {
    n_stored_ = std::max(n_stored_, n_stored);
    if (state_at > 0) states_.NoteStored(state_at);
  }
  // The history's tokens from `n_tokens` on are others, or gone.
  void NoteRewound(int n_tokens);
  // A prompt of `n_tokens` begins: it is to be saved when all of it is there.
  void BeginPrompt(int n_tokens);
  // That prompt is not to be saved any more.
  void ForgetPrompt() { unsaved_prompt_.reset(); }

  // After each step: hands over full blocks of a prompt that still grows, so
  // that a killed prefill resumes, once every half second and never waiting;
  // and tells the sequence what a window may let go of. The same of answers,
  // where the session's options say so.
  void AfterStep(History& history);
  // Whether the states are worth keeping where a growing prompt or answer is
  // now: what a kill may cost. Of a prompt not sooner than ten seconds after
  // the ones before.
  bool WantsState(const History& history);
  // Hands over the prompt, if it is not yet.
  void SavePrompt(const History& history);
  // Hands over all that the history holds. `may_wait`: for the writer to have
  // room; false: some of it was not handed over. `rests`: with the newest
  // states that are kept, however little stands before them.
  bool SaveAll(const History& history, bool may_wait, bool rests);

  const std::string& key_space() const { return key_space_; }
  // Leading tokens that are stored or on their way.
  int n_stored() const { return n_stored_; }
  // Whether all of the history is, as far as is known.
  bool HasStored(const History& history) const;

  // For a fork of the history.
  SavePolicy Fork() const;

 private:
  // After a failed save it is not known what the store has.
  void ForgetLostSaves();
  void SaveSealed(const History& history);
  bool Save(const History& history, int n_tokens, bool may_wait,
            StateSaves::When when);
  // Tells the sequence what a window may let go of: what is with the writer.
  void KeepUnsaved(History& history) const;
  // How many of the first `n_tokens` can still be handed over.
  int SavableTokens(const KvSequence& kv, int n_tokens) const;

  PromptCache* cache_;
  const EngineOptions* options_;
  const Tokenizer* tokenizer_;
  Clock::time_point (*now_)();
  std::string key_space_;
  bool saves_answers_;
  StateSaves states_;
  int n_prompt_ = 0;                   // tokens of the newest prompt
  std::optional<int> unsaved_prompt_;  // tokens
  int n_stored_ = 0;  // leading tokens that are stored or on their way
  bool lacks_manifest_ = false;  // blocks went to the store with none
  std::uint64_t n_lost_ = 0;     // of the cache, when n_stored_ was set
  Clock::time_point last_save_ = {}, last_state_ = {};
};

}  // namespace hearth
