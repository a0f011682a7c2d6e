// The families that hearth knows: src/output/families, one file each.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "output/description/program.h"

namespace hearth::output {

// All that write calls, in the order of their names.
const std::vector<std::shared_ptr<const Program>>& CallFamilies();
// nullptr when no family has this name.
std::shared_ptr<const Program> FamilyNamed(std::string_view name);
// For a model without a known form of calls: reasoning between `begin` and
// `end`, then text. Both empty: text alone.
std::shared_ptr<const Program> ThoughtFamily(std::string_view begin,
                                             std::string_view end);

}  // namespace hearth::output
