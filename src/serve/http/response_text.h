// Answers as bytes of HTTP/1.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/message.h"

namespace hearth::serve {

// How the client learns where a body ends.
enum class BodyEnd { kLength, kChunks, kClose };

// The head of an answer, the empty line included. `length` of the body counts
// for kLength. Header values lose what would end their line.
std::string ResponseHead(int status, std::string_view content_type,
                         const std::vector<HttpHeader>& headers, BodyEnd end,
                         std::uint64_t length, bool keep_alive);

// A piece of a body, framed for kChunks. REQUIRES: not empty.
std::string Chunk(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace hearth::serve
