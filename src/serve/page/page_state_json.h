// The page's state as the data of server-sent events: names and units are those
// of docs/page.md.
#pragma once

#include <optional>
#include <string>

#include "serve/page/page_state.h"

namespace hearth::serve {

// One line of JSON: everything.
std::string SnapshotJson(const PageModel& model, const PageState& state);

// One line of JSON: what `after` has otherwise than `before`; nothing when only
// the time has passed.
std::optional<std::string> ChangeJson(const PageState& before,
                                      const PageState& after);

}  // namespace hearth::serve
