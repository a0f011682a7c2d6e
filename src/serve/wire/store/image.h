// Entries of the response store as bytes: docs/formats/response.md.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/bytes.h"
#include "hearth/result.h"
#include "serve/wire/stored.h"

namespace hearth::serve {

constexpr std::uint64_t kImageBytesMax = 128ull << 20;

std::string ImageOf(const StoredResponse& response);
std::string ImageOf(const StoredPrompt& prompt);

// kCorrupt when the bytes are not what ImageOf makes; `what` names them.
Result<std::variant<StoredResponse, StoredPrompt>> ReadImage(
    ByteSpan bytes, const std::string& what);

}  // namespace hearth::serve
