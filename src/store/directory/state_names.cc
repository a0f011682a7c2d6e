#include "store/directory/state_names.h"

#include <algorithm>

#include "store/directory/layout.h"
#include "store/format/state_image.h"

namespace hearth {

std::vector<PromptEntry> StatesOf(const Directory& root,
                                  const BlockChain& chain, std::size_t n_max) {
  std::vector<PromptEntry> states;
  const auto above = root.Sub(kStatesName);
  if (!above.ok()) return states;
  const auto folders = above->Names();
  if (!folders.ok()) return states;
  for (const std::string& folder : *folders) {
    const auto opened = above->Sub(folder);
    if (!opened.ok()) continue;
    const auto names = opened->Names();
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      const auto state = StateNameOf(name);
      if (!state.has_value() || BlockFolder(state->id) != folder ||
          state->position == 0 || state->position > n_max ||
          StateQueryOf(chain, state->position).prefix.block_id != state->id) {
        continue;
      }
      states.push_back({state->id, state->position, 0, 0});
    }
  }
  std::sort(states.begin(), states.end(),
            [](const auto& a, const auto& b) { return a.end < b.end; });
  return states;
}

}  // namespace hearth
