// Names of files that are being written, and whether their writers still live.
//
//   <name>.tmp-<8 hex: machine and process space>-<process id>-<number>
#pragma once

#include <string>

#include "base/files/directory.h"

namespace hearth {

// A new one for `name`; no two calls of any process give the same.
std::string TemporaryName(const std::string& name);

// Also of the form `<name>.tmp.<process id>.<number>`, which versions before
// 0.2 made.
bool IsTemporary(const std::string& name);

// Whether a temporary file's writer cannot finish it any more: its process is
// gone, or the file's time is more than an hour away.
bool IsStaleTemporary(const DirectoryEntry& entry);

// Removes what writers of the file `name` (empty: of any file) that cannot
// finish any more left in this one folder.
void SweepTemporariesOf(const Directory& folder, const std::string& name);

}  // namespace hearth
