// A prompt and its blocks as one file: how it is written, what must not be
// written over. docs/formats/manifest.md.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "base/files/file_ops.h"
#include "base/files/vault.h"
#include "store/format/prompt_file.h"

namespace hearth {

// kInvalidArgument when there is something at `path` that is no bundle (an
// empty file is fine), or no directory to make it in.
Result<void> CheckBundleTarget(const std::string& path, FileOps& ops);

// Writes the parts to `path`. A link is the user's wish: what it points to is
// replaced, not the link. Errors as CheckBundleTarget, and of the system.
Result<void> WriteBundle(const std::string& path,
                         std::span<const ByteSpan> parts, FileOps& ops,
                         const Vault* vault);

// All of a bundle, mapped or decrypted, with its header checked. kNotFound.
struct OpenBundle {
  FileBytes file;
  PromptHeader header;
  bool is_mapped = false;
};
Result<OpenBundle> ReadBundle(const std::string& path, const Vault* vault);

}  // namespace hearth
