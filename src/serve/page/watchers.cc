#include "serve/page/watchers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace hearth::serve {
namespace {

struct Watcher {
  std::shared_ptr<Reply> reply;
  // More is waiting than it reads: changes are left out, and it gets a snapshot
  // when there is room again.
  bool full = false;
  bool behind = false;
};

}  // namespace

struct PageWatchers::State : std::enable_shared_from_this<State> {
  State(PageFeed& of, Look with, Later then)
      : feed(of), look(std::move(with)), later(std::move(then)) {}

  PageFeed& feed;
  const Look look;
  const Later later;
  Mutex looking;  // taken before `mutex`; Stop waits here for a look to end
  Mutex mutex;
  std::vector<std::shared_ptr<Watcher>> watchers HEARTH_GUARDED_BY(mutex);
  bool ticking HEARTH_GUARDED_BY(mutex) = false;
  bool stopped HEARTH_GUARDED_BY(mutex) = false;

  void Remove(const Watcher* watcher) HEARTH_EXCLUDES(mutex);
  void Fill(Watcher& watcher, bool full) HEARTH_EXCLUDES(mutex);
  void Tick() HEARTH_EXCLUDES(looking, mutex);
  void TickLater();
  std::vector<std::shared_ptr<Watcher>> Ready(bool is_behind)
      HEARTH_EXCLUDES(mutex);
};

PageWatchers::PageWatchers(PageFeed& feed, Look look, Later later)
    : state_(std::make_shared<State>(feed, std::move(look), std::move(later))) {
}

PageWatchers::~PageWatchers() { Stop(); }

void PageWatchers::Add(std::shared_ptr<Reply> reply,
                       std::vector<HttpHeader> headers) {
  const auto watcher = std::make_shared<Watcher>();
  watcher->reply = std::move(reply);
  // The snapshot comes with the next tick.
  watcher->behind = true;
  ReplyWatch watch;
  const std::weak_ptr<State> weak = state_;
  const std::weak_ptr<Watcher> it = watcher;
  watch.gone = [weak, it] {
    const auto state = weak.lock();
    const auto gone = it.lock();
    if (state != nullptr && gone != nullptr) state->Remove(gone.get());
  };
  watch.full = [weak, it](bool full) {
    const auto state = weak.lock();
    const auto whose = it.lock();
    if (state != nullptr && whose != nullptr) state->Fill(*whose, full);
  };
  watch.quiet = [it] {
    if (const auto whose = it.lock()) whose->reply->Send(": quiet\n\n");
  };
  watch.quiet_first_ms = watch.quiet_every_ms = kPingMs;
  bool first = false, late = false;
  {
    const MutexLock lock(state_->mutex);
    late = state_->stopped;
    if (!late) {
      state_->watchers.push_back(watcher);
      first = !std::exchange(state_->ticking, true);
    }
  }
  watcher->reply->Watch(std::move(watch));
  watcher->reply->Start(200, "text/event-stream", std::move(headers));
  if (late) watcher->reply->End();
  if (first) {
    state_->later(0, [weak] {
      if (const auto state = weak.lock()) state->Tick();
    });
  }
}

void PageWatchers::Stop() {
  const MutexLock until_looked(state_->looking);
  std::vector<std::shared_ptr<Watcher>> watchers;
  {
    const MutexLock lock(state_->mutex);
    state_->stopped = true;
    watchers.swap(state_->watchers);
  }
  for (const auto& watcher : watchers) watcher->reply->End();
}

void PageWatchers::State::Remove(const Watcher* watcher) {
  const MutexLock lock(mutex);
  std::erase_if(watchers, [&](const auto& w) { return w.get() == watcher; });
}

void PageWatchers::State::Fill(Watcher& watcher, bool full) {
  const MutexLock lock(mutex);
  watcher.full = full;
  watcher.behind = watcher.behind || full;
}

// Those that can take something now; afterwards none of them is behind.
std::vector<std::shared_ptr<Watcher>> PageWatchers::State::Ready(
    bool is_behind) {
  const MutexLock lock(mutex);
  std::vector<std::shared_ptr<Watcher>> ready;
  for (const auto& watcher : watchers) {
    if (watcher->full || watcher->behind != is_behind) continue;
    ready.push_back(watcher);
  }
  if (is_behind) {
    for (const auto& watcher : ready) watcher->behind = false;
  }
  return ready;
}

void PageWatchers::State::Tick() {
  const MutexLock only(looking);
  {
    const MutexLock lock(mutex);
    if (stopped || watchers.empty()) {
      ticking = false;
      return;
    }
  }
  look(feed);
  // Sent without the lock: a reply may call back at once.
  const std::string change = feed.Change();
  if (!change.empty()) {
    for (const auto& watcher : Ready(false)) watcher->reply->Send(change);
  }
  const auto behind = Ready(true);
  if (!behind.empty()) {
    const std::string snapshot = feed.Snapshot();
    for (const auto& watcher : behind) watcher->reply->Send(snapshot);
  }
  TickLater();
}

void PageWatchers::State::TickLater() {
  later(kEveryMs, [weak = weak_from_this()] {
    if (const auto state = weak.lock()) state->Tick();
  });
}

}  // namespace hearth::serve
