// The pipeline parts of a tokenizer.json as steps (step.h). Each function takes
// the value of one member; null gives no steps.
// Errors  kUnsupported naming the type or option that hearth has no code for;
//         kCorrupt naming a member that is missing or of another type.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "hearth/result.h"
#include "text/step.h"

namespace hearth {

Result<std::vector<Step>> ReadNormalizer(const Json& value,
                                         const std::string& what);
Result<std::vector<Step>> ReadPreTokenizer(const Json& value,
                                           const std::string& what);
Result<std::vector<Step>> ReadDecoder(const Json& value,
                                      const std::string& what);

// The ids that a post-processor puts around a single text.
struct SurroundingIds {
  std::vector<std::int32_t> before, after;
};
Result<SurroundingIds> ReadPostProcessor(const Json& value,
                                         const std::string& what);

}  // namespace hearth
