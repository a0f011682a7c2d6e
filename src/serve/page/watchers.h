// Sends the page's events to everybody who watches, at most four times a
// second; while nobody does nothing is looked at.
//
// Threads  any. What `look` does is never done twice at a time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "serve/http/message.h"
#include "serve/page/feed.h"

namespace hearth::serve {

class PageWatchers {
 public:
  static constexpr int kEveryMs = 250;
  static constexpr int kPingMs = 15'000;  // a sign of life while all is quiet

  // Lets the feed observe the server as it is now.
  using Look = std::function<void(PageFeed&)>;
  // Calls a function after so many milliseconds, on a thread that may take its
  // time.
  using Later = std::function<void(int, std::function<void()>)>;

  // `feed` outlives the object; calls of `look` end with it.
  PageWatchers(PageFeed& feed, Look look, Later later);
  ~PageWatchers();  // ends every stream

  // Answers with the stream of events.
  void Add(std::shared_ptr<Reply> reply, std::vector<HttpHeader> headers);
  // Ends every stream; nobody is taken on any more.
  void Stop();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace hearth::serve
