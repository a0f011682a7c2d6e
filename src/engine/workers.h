// The threads that an engine computes on, a draft model's engine included: one
// forward step at a time uses all of them.
#pragma once

#include "base/mutex.h"
#include "base/thread_pool.h"

namespace hearth {

struct Workers {
  // `n_tokens`, `n_prompts`: threads for steps of tokens and of prompts.
  Workers(int n_tokens, int n_prompts)
      : n_for_tokens(n_tokens),
        n_for_prompts(n_prompts),
        pool(n_tokens > n_prompts ? n_tokens : n_prompts) {}

  const int n_for_tokens, n_for_prompts;
  // Held while something runs on the pool. Whoever waits for it holds nothing
  // that a running step needs.
  Mutex turn;
  ThreadPool pool;
};

}  // namespace hearth
