#include "engine/dialogue/prompt_places.h"

#include <algorithm>

namespace hearth {

Result<int> IdsOfBeginning(const Tokenizer& tokenizer,
                           std::span<const std::int32_t> ids,
                           std::string_view part) {
  HEARTH_ASSIGN(
      const std::vector<std::int32_t> alone,
      tokenizer.Encode(part, {.add_special = false, .parse_special = true}));
  const auto differ =
      std::mismatch(ids.begin(), ids.end(), alone.begin(), alone.end());
  return static_cast<int>(differ.first - ids.begin());
}

std::vector<IdRange> FindAnswers(const Tokenizer& tokenizer,
                                 std::span<const std::int32_t> ids,
                                 std::span<const std::int32_t> opening,
                                 std::optional<std::int32_t> closing) {
  std::vector<IdRange> answers;
  if (opening.empty()) return answers;
  const auto is_end = [&](std::int32_t id) {
    return tokenizer.IsEnd(id) || closing == id;
  };
  auto from = ids.begin();
  while (true) {
    from = std::search(from, ids.end(), opening.begin(), opening.end());
    if (from == ids.end()) return answers;
    const auto begin = from + static_cast<std::ptrdiff_t>(opening.size());
    const auto end = std::find_if(begin, ids.end(), is_end);
    if (end == ids.end()) return answers;
    answers.push_back({.begin = static_cast<int>(begin - ids.begin()),
                       .end = static_cast<int>(end - ids.begin())});
    from = end;
  }
}

}  // namespace hearth
