// Making, recognising and tidying the root directory of a store.
#pragma once

#include <string>

#include "hearth/result.h"
#include "store/files/directory.h"

namespace hearth {

// Makes the root when it is missing and states its version. A root that lost
// its VERSION but holds nothing except a store's folders is taken back.
// kIncompatible: another version. kInvalidArgument: somebody else's directory.
// A root that cannot be written to is fine as long as its version is right.
Result<void> PrepareRoot(FileOps& ops, const std::string& path);

// Removes temporary files whose writer cannot finish them, in every folder.
void SweepTemporaries(const Directory& root);

// The same for what writers of the file `name` left in this one folder.
void SweepTemporariesOf(const Directory& folder, const std::string& name);

}  // namespace hearth
