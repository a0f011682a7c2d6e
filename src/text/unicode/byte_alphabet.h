// The byte alphabet of byte-level vocabularies: each byte has one printable
// character, so that a vocabulary file can spell any bytes. The space is "Ġ",
// the line feed "Ċ"; printable Latin-1 characters stand for themselves.
// Source  GPT-2's encoder: bytes 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF keep their
//         code point; the other 68, in order, take U+0100 and up.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

// Appends the spelling of `bytes`.
void AppendSpelled(std::string& out, std::string_view bytes);

// Appends the bytes that `spelling` stands for. On a character outside the
// alphabet: false, and `out` is as it was.
bool AppendUnspelled(std::string& out, std::string_view spelling);

// The value of a piece spelled "<0xNN>", as vocabularies with byte fallback
// have them, or -1.
int ByteOfPiece(std::string_view piece);

}  // namespace hearth
