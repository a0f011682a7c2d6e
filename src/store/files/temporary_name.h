// Names of files that are being written, and whether their writers still live.
//
//   <name>.tmp-<8 hex: machine and process space>-<process id>-<number>
#pragma once

#include <string>

#include "store/files/directory.h"

namespace hearth {

// A new one for `name`; no two calls of any process give the same.
std::string TemporaryName(const std::string& name);

bool IsTemporary(const std::string& name);

// Whether a temporary file's writer cannot finish it any more: its process is
// gone, or the file is older than an hour.
bool IsStaleTemporary(const DirectoryEntry& entry);

}  // namespace hearth
