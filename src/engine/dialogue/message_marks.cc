#include "engine/dialogue/message_marks.h"

#include <algorithm>
#include <set>

#include "engine/dialogue/prompt_places.h"
#include "engine/states/state_plan.h"

namespace hearth {

Result<std::vector<int>> MessageMarks(const Tokenizer& tokenizer,
                                      std::string_view text,
                                      std::span<const std::int32_t> ids,
                                      std::size_t n_messages,
                                      const RenderMessages& render) {
  if (MarksAtControlTokens(tokenizer, ids).size() + 1 >= n_messages) {
    return std::vector<int>{};
  }
  std::set<std::size_t> counts = {1, n_messages};
  for (std::size_t back = 1; back < n_messages; back *= 2) {
    counts.insert(n_messages - back);
  }
  std::set<int> marks;
  for (const std::size_t n : counts) {
    const auto part = render(n);
    if (!part.ok() || part->empty() || !text.starts_with(*part)) continue;
    HEARTH_ASSIGN(const int end, IdsOfBeginning(tokenizer, ids, *part));
    if (end > 0) marks.insert(end);
  }
  return std::vector<int>(marks.begin(), marks.end());
}

std::vector<int> MarksAmong(std::span<const std::int32_t> ids,
                            std::span<const std::int32_t> rendered,
                            const std::vector<int>& marks) {
  const auto head =
      std::mismatch(ids.begin(), ids.end(), rendered.begin(), rendered.end())
          .first -
      ids.begin();
  const auto tail = std::mismatch(ids.rbegin(), ids.rend(), rendered.rbegin(),
                                  rendered.rend())
                        .first -
                    ids.rbegin();
  const auto n = static_cast<std::ptrdiff_t>(ids.size());
  const auto n_rendered = static_cast<std::ptrdiff_t>(rendered.size());
  std::vector<int> moved;
  for (const int mark : marks) {
    if (mark <= head) {
      moved.push_back(mark);
    } else if (n_rendered - mark <= tail) {
      moved.push_back(static_cast<int>(n - n_rendered + mark));
    }
  }
  return moved;
}

}  // namespace hearth
