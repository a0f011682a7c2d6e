// Encoding a prompt and its blocks as one prompt file.
#pragma once

#include <span>

#include "store/kv_store.h"
#include "store/prompt_file.h"

namespace hearth {

// The file's parts; they point into `blocks`' payloads, nothing is copied.
// `blocks` are the prompt's last ones: all of them for a bundle, the partial
// one or none for a manifest. kInvalidArgument when they do not fit `tokens`.
Result<PromptFileParts> EncodePrompt(const KvIdentity& identity,
                                     const KvSpec& spec,
                                     std::span<const std::int32_t> tokens,
                                     std::span<const BlockToSave> blocks);

// Writes the parts to `path`, as SaveBundle does.
Result<void> WriteBundle(const std::string& path,
                         std::span<const ByteSpan> parts, FileOps& ops,
                         const Vault* vault);

}  // namespace hearth
