// The two forms of importance matrices' files: docs/formats/imatrix.md.
#pragma once

#include <string>

#include "base/bytes.h"
#include "hearth/importance.h"
#include "hearth/result.h"

namespace hearth {

// Either form, untrusted. `label` starts messages.
Result<ImportanceMatrix> ReadGgufImportance(ByteSpan bytes,
                                            const std::string& label);
Result<ImportanceMatrix> ReadOldImportance(ByteSpan bytes,
                                           const std::string& label);

// What both must be: names that are there once, sums for each matrix, and
// numbers that sums of squares and counts can be. kCorrupt.
Result<void> CheckImportance(const ImportanceMatrix& matrix,
                             const std::string& label);

}  // namespace hearth
