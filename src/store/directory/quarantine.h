// Getting things that cannot be right out of the way, so that they cannot fail
// twice, and making the store's folders where something else took their place.
#pragma once

#include <string>
#include <vector>

#include "base/files/directory.h"
#include "hearth/result.h"

namespace hearth {

// Damage and foreign files are set aside; what a later version wrote, or the
// system would not let us read, stays where it is.
inline bool IsDefect(const Error& error) {
  return error.code == Code::kCorrupt || error.code == Code::kInvalidArgument;
}

// Moves `name` of `folder`, whatever it is (of a link the link), to
// quarantine/. False when that is not possible, as in a directory that cannot
// be written to.
bool SetAside(const Directory& root, const Directory& folder,
              const std::string& name);

// Opens "a" or "a/b" below the root. Never follows a link.
Result<Directory> OpenFolder(const Directory& root, const std::string& folder);

// The same, made when missing. A link, file or pipe in its place is set aside.
// Parents that got a new folder and are not flushed yet come into `unflushed`.
Result<Directory> MakeFolder(const Directory& root, const std::string& folder,
                             std::vector<Directory>& unflushed);

}  // namespace hearth
