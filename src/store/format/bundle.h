// A prompt and its blocks as one file.
#pragma once

#include <span>

#include "store/format/prompt_file.h"
#include "store/kv_store.h"

namespace hearth {

// A bundle's parts; they point into `blocks`' payloads, nothing is copied.
// kInvalidArgument when `blocks` are not all of the prompt's.
Result<PromptFileParts> EncodeBundle(const KvIdentity& identity,
                                     const KvSpec& spec,
                                     std::span<const std::int32_t> tokens,
                                     std::span<const BlockToSave> blocks);

// Whether a bundle can be written to `path`: for before the work. kNotFound: no
// folder to put it into; kInvalidArgument: a directory, a device, or a file
// that is no bundle.
Result<void> CheckBundleTarget(const std::string& path);

// Writes the parts to `path`, as SaveBundle does.
Result<void> WriteBundle(const std::string& path,
                         std::span<const ByteSpan> parts, FileOps& ops,
                         const Vault* vault);

}  // namespace hearth
