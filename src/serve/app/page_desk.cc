#include "serve/app/page_desk.h"

#include <utility>

#include "serve/app/core.h"

namespace hearth::serve {
namespace {

// The store is looked at soon after something may have been saved, and now and
// then for what other programs do to it.
constexpr double kSoonMs = 1000, kNowAndThenMs = 10'000;

}  // namespace

PageDesk::PageDesk(Core& core)
    : core_(core),
      feed_({core.served.id, core.served.context_tokens,
             core.engine->options().block_tokens}),
      watchers_(
          feed_, [this](PageFeed& feed) { Look(feed); },
          [&core](int ms, std::function<void()> work) {
            // Looking at everything takes longer than sockets should wait.
            core.later(ms, [&core, work = std::move(work)] {
              core.workers->Do(work);
            });
          }) {}

void PageDesk::Look(PageFeed& feed) {
  const EngineOptions& options = core_.engine->options();
  const SchedulerView view = core_.scheduler->View();
  const KvMemory memory = core_.engine->MemoryInUse();
  PageMeters meters;
  meters.memory_held = memory.held_bytes;
  meters.memory_mapped = memory.mapped_bytes;
  meters.memory_budget = options.kv_ram_budget_bytes;
  meters.has_store = !options.prompt_cache_dir.empty();
  if (meters.has_store) {
    MeasureStore(view.done + view.failed + view.cancelled);
    meters.disk_used = disk_used_;
    meters.disk_budget = options.cache_disk_budget_bytes;
  }
  meters.save_queue = core_.engine->Saves().waiting_bytes;
  meters.connections = core_.n_connections();
  meters.store_version = asked_changes_ + disk_changes_;
  feed.Observe(view, meters);
}

void PageDesk::MeasureStore(std::uint64_t jobs_ended) {
  const double waited = since_measured_.ms();
  const bool due = !measured_ || waited >= kNowAndThenMs ||
                   (jobs_ended != jobs_ended_ && waited >= kSoonMs);
  if (!due) return;
  const std::uint64_t bytes = core_.engine->StoredBytes().value_or(0);
  const SaveReport saves = core_.engine->Saves();
  // What is still being written is seen by the next look.
  if (saves.waiting_bytes == 0) jobs_ended_ = jobs_ended;
  since_measured_ = Stopwatch();
  measured_ = true;
  if (bytes != disk_used_ || saves.n_written != saves_) ++disk_changes_;
  disk_used_ = bytes;
  saves_ = saves.n_written;
}

}  // namespace hearth::serve
