#include "engine/session/answer/stop_texts.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

// Bytes at the end of `text` that `stop` begins with, but not all of `stop`.
std::size_t BegunBytes(std::string_view text, std::string_view stop) {
  std::size_t n = std::min(text.size(), stop.size() - 1);
  while (!text.ends_with(stop.substr(0, n))) --n;
  return n;
}

}  // namespace

std::string StopTexts::Push(std::string_view text) {
  if (!found_.empty()) return {};
  held_ += text;
  std::size_t best_begin = 0;
  std::size_t best_end = std::string::npos;
  std::size_t n_begun = 0;
  for (const std::string& stop : texts_) {
    n_begun = std::max(n_begun, BegunBytes(held_, stop));
    const std::size_t begin = held_.find(stop);
    if (begin == std::string::npos) continue;
    const std::size_t end = begin + stop.size();
    if (end < best_end || (end == best_end && begin < best_begin)) {
      best_begin = begin;
      best_end = end;
      found_ = stop;
    }
  }
  std::string shown =
      held_.substr(0, found_.empty() ? held_.size() - n_begun : best_begin);
  held_.erase(0, found_.empty() ? shown.size() : held_.size());
  return shown;
}

std::string StopTexts::Flush() { return std::exchange(held_, ""); }

}  // namespace hearth
