// .heads files: docs/formats/heads.md.
//
//   file := "TGMH" u32 version, u32 header_bytes, header (JSON), f32 body
#pragma once

#include <string>

#include "base/bytes.h"
#include "hearth/result.h"
#include "model/config.h"
#include "model/draft_heads.h"

namespace hearth {

// A regular file with that magic.
bool IsDraftHeadsFile(const std::string& path);

// kIncompatible when the heads were made for a model of another shape than
// `base`; kCorrupt, kUnsupported, kNotFound, kIo as for models.
Result<DraftHeads> LoadDraftHeads(const std::string& path,
                                  const ModelConfig& base);

// The same for bytes that the caller keeps; `file` stays empty.
Result<DraftHeads> ParseDraftHeads(ByteSpan bytes, const std::string& label,
                                   const ModelConfig& base);

}  // namespace hearth
