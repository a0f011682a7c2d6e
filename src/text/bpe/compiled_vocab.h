// A loaded tokenizer as one flat file that is used in place: no parsing, no
// hashing of pieces, no copies. Layout: docs/formats/compiled-tokenizer.md.
//
// The caller decides where the bytes live and names their source by a digest:
// of the tokenizer files' bytes, or of whatever else tells versions apart.
// Errors  kIncompatible: another version, or another source. kCorrupt: damage.
//         Every length, offset and id is checked before it is used.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "hearth/result.h"
#include "text/tokenizer.h"

namespace hearth {

inline constexpr std::uint32_t kCompiledVersion = 2;

// The usual name of a source: SHA-256 over both texts.
Digest TokenizerSource(std::string_view tokenizer_json,
                       std::string_view tokenizer_config_json);

// kInvalidArgument for a tokenizer without a vocabulary (bytes).
Result<std::vector<std::byte>> CompileTokenizer(const Tokenizer& tokenizer,
                                                const Digest& source);

// `bytes` is a mapping or a buffer, aligned to 16; `backing` keeps it alive for
// as long as the tokenizer lives (null: the caller does). `what` names it in
// messages.
Result<std::unique_ptr<Tokenizer>> FromCompiled(
    ByteSpan bytes, const Digest& source, const std::string& what,
    std::shared_ptr<const void> backing = nullptr);

}  // namespace hearth
