// What every request needs of a server whose model is open.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "hearth/dialogue.h"
#include "hearth/engine.h"
#include "serve/app/page_desk.h"
#include "serve/app/workers.h"
#include "serve/journal/journal.h"
#include "serve/log/request_log.h"
#include "serve/metrics/metrics.h"
#include "serve/schedule/scheduler.h"
#include "serve/wire/answer.h"
#include "serve/wire/store/response_store.h"

namespace hearth::serve {

struct Core {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Dialogue> dialogue;  // null: the model has no chat template
  std::string no_dialogue;             // why not
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<Journal> journal;  // null: ids are always the tokenizer's
  std::unique_ptr<ResponseStore> store;
  std::unique_ptr<RequestLog> log;  // null: none is kept
  ServedModel served;
  SamplingOptions sampling;  // where a request says nothing
  bool has_seed = false;     // its seed counts, too; else each has a new one
  bool strict_model = false;
  std::string chat_template;  // its text; empty: none, or not the model's own
  SchedulerOptions scheduling;
  // Calls the function after so many milliseconds, on the sockets' thread.
  std::function<void(int, std::function<void()>)> later;
  std::function<int()> n_connections;
  std::unique_ptr<PageDesk> page;
  std::unique_ptr<Workers> workers;  // last: their work uses all of the above
};

// Milliseconds since 1970.
std::int64_t NowMs();

}  // namespace hearth::serve
