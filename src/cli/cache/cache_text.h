// What `hearth cache` prints for people. Names that come from files are
// escaped.
#pragma once

#include <string>

#include "hearth/cache.h"

namespace hearth::cli {

std::string ToText(const PromptList& list);
std::string ToText(const PromptDetails& details);
std::string ToText(const StoreStats& stats);
std::string ToText(const VerifyReport& report);
std::string ToText(const GcReport& report);
std::string ToText(const CacheMiss& miss);

}  // namespace hearth::cli
