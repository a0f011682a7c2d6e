#include "serve/wire/common/marked_text.h"

#include <cstdint>

#include "base/files/vault.h"

namespace hearth::serve {
namespace {

constexpr std::string_view kMark = "h1.";
constexpr std::string_view kPlain = "h1.p.";
constexpr std::string_view kSealed = "h1.k.";
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string Base64Url(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() / 3 * 4 + 4);
  std::uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<std::uint8_t>(c);
    for (n_bits += 8; n_bits >= 6; n_bits -= 6) {
      out += kDigits[bits >> (n_bits - 6) & 63];
    }
  }
  if (n_bits > 0) out += kDigits[bits << (6 - n_bits) & 63];
  return out;
}

std::optional<std::string> FromBase64Url(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    n_bits += 6;
    if (n_bits >= 8) {
      n_bits -= 8;
      out += static_cast<char>(bits >> n_bits & 255);
    }
  }
  return out;
}

bool IsMarked(std::string_view text) { return text.starts_with(kMark); }

std::string MarkText(std::string_view text, const Vault* vault) {
  if (vault == nullptr) return std::string(kPlain) + Base64Url(text);
  const ByteSpan bytes = AsBytes(text);
  const auto sealed = vault->Seal(std::span(&bytes, 1));
  // Without random numbers nothing can be sealed, and nothing goes out plain.
  if (!sealed.ok()) return std::string(kMark);
  return std::string(kSealed) + Base64Url(AsText(*sealed));
}

std::optional<std::string> UnmarkText(std::string_view marked,
                                      const Vault* vault) {
  if (marked.starts_with(kPlain)) {
    return FromBase64Url(marked.substr(kPlain.size()));
  }
  if (!marked.starts_with(kSealed) || vault == nullptr) return std::nullopt;
  const auto sealed = FromBase64Url(marked.substr(kSealed.size()));
  if (!sealed) return std::nullopt;
  const auto opened = vault->Open(AsBytes(*sealed), "the reasoning");
  if (!opened.ok()) return std::nullopt;
  return std::string(AsText(opened->bytes));
}

}  // namespace hearth::serve
