// Reasoning that a client carries for us and gives back: encrypted_content of
// /v1/responses, signatures of /v1/messages. It is marked, so that it is never
// taken for another server's, and encrypted when there is a key:
//   h1.p.<base64url of the text>      h1.k.<base64url of a sealed file>
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth {
class Vault;
}

namespace hearth::serve {

// Says that the text is beside it, so that the signature need not carry it.
constexpr std::string_view kShownMark = "h1.s";

std::string MarkText(std::string_view text, const Vault* vault);
// Nothing: not ours, damaged, or under another key.
std::optional<std::string> UnmarkText(std::string_view marked,
                                      const Vault* vault);
bool IsMarked(std::string_view text);

std::string Base64Url(std::string_view bytes);
std::optional<std::string> FromBase64Url(std::string_view text);

}  // namespace hearth::serve
