// What `hearth cache --json` prints: one object for each report of the library.
// docs/cli.md promises the names.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "hearth/cache.h"

namespace hearth::cli {

nlohmann::ordered_json ToJson(const PromptList& list);
nlohmann::ordered_json ToJson(const PromptDetails& details);
nlohmann::ordered_json ToJson(const StoreStats& stats);
nlohmann::ordered_json ToJson(const VerifyReport& report);
nlohmann::ordered_json ToJson(const GcReport& report);
nlohmann::ordered_json ToJson(const CacheMiss& miss);

}  // namespace hearth::cli
