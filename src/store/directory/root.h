// Making, recognising and tidying the root directory of a store.
#pragma once

#include <string>

#include "base/files/directory.h"
#include "hearth/result.h"

namespace hearth {

// Makes the root when it is missing and states its version. A root whose
// VERSION is lost or damaged but that holds nothing except a store's folders,
// and what systems put everywhere, is taken back.
// kIncompatible: another version. kInvalidArgument: somebody else's directory.
// A root that cannot be written to is fine as long as its version is right.
Result<void> PrepareRoot(FileOps& ops, const std::string& path);

// Removes temporary files whose writer cannot finish them, in every folder.
void SweepTemporaries(const Directory& root);

}  // namespace hearth
