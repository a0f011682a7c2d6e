// What a file is that should have been a model and is none: the accidents of
// downloads, other programs' formats, models in forms that are not read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "hearth/result.h"

namespace hearth {

// What `bytes` seem to be and what to do about it, as in "this is a git-lfs
// pointer, ...". Nothing when they look like none of the kinds that are known.
// Looks at the first few thousand bytes only.
std::optional<std::string> ForeignKind(ByteSpan bytes);

// Of those, what happens to any file on its way here, whatever it should have
// been: an empty file, a git-lfs pointer, a web page, an error message of a
// server, an archive around the file.
std::optional<std::string> DownloadAccident(ByteSpan bytes);

// kCorrupt with that, for a file that has a known form.
Result<void> RefuseDownloadAccident(ByteSpan bytes, const std::string& path);

// A remark when the name of a file says that its download is not finished
// ("x.gguf.part"); else empty. To be put behind an error's message.
std::string UnfinishedDownloadNote(std::string_view path);

}  // namespace hearth
