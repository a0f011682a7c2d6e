#include "engine/dialogue/message_ends.h"

namespace hearth {

std::vector<int> IdsUpTo(const Tokenizer& tokenizer,
                         std::span<const std::int32_t> ids,
                         std::string_view text,
                         std::span<const std::size_t> ends) {
  std::vector<int> counts;
  std::string bytes;
  std::size_t n_bytes = 0, next = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    bytes.clear();
    tokenizer.AppendBytes(ids[i], /*at_start=*/i == 0, bytes);
    if (text.substr(n_bytes, bytes.size()) != bytes) return {};
    n_bytes += bytes.size();
    while (next < ends.size() && ends[next] < n_bytes) {
      counts.push_back(static_cast<int>(i));
      ++next;
    }
  }
  if (n_bytes != text.size()) return {};
  for (; next < ends.size(); ++next) {
    counts.push_back(static_cast<int>(ids.size()));
  }
  // Two ends inside one token count once.
  std::vector<int> rising;
  for (const int n : counts) {
    if (n > 0 && (rising.empty() || n > rising.back())) rising.push_back(n);
  }
  return rising;
}

}  // namespace hearth
