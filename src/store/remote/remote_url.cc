#include "store/remote/remote_url.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace hearth {
namespace {

constexpr int kDatabaseMax = 65535;

std::optional<int> Number(std::string_view text, int max) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < 0 ||
      value > max) {
    return std::nullopt;
  }
  return value;
}

// %41 is A.
std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    int value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, value, 16);
    if (digits.size() != 2 || parsed.ec != std::errc() || parsed.ptr != end) {
      return std::nullopt;
    }
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

Error Invalid(const std::string& why) {
  return {
      Code::kInvalidArgument,
      "shared cache: " + why + "; it looks like redis://:password@host:6379/0"};
}

}  // namespace

Result<RemoteUrl> ParseRemoteUrl(const std::string& text) {
  RemoteUrl url;
  std::string_view rest = text;
  if (rest.starts_with("rediss://")) {
    url.tls = true;
    rest.remove_prefix(9);
  } else if (rest.starts_with("redis://")) {
    rest.remove_prefix(8);
  } else {
    return Invalid("begins neither with redis:// nor with rediss://");
  }
  const std::size_t at = rest.rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view who = rest.substr(0, at);
    rest.remove_prefix(at + 1);
    const std::size_t colon = who.find(':');
    if (colon == std::string_view::npos) {
      return Invalid("a password stands behind a colon");
    }
    const auto user = PercentDecoded(who.substr(0, colon));
    const auto password = PercentDecoded(who.substr(colon + 1));
    if (!user.has_value() || !password.has_value()) {
      return Invalid("a % is not followed by two hex digits");
    }
    url.user = *user;
    url.password = *password;
  }
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view name = rest.substr(slash + 1);
    const auto number = Number(name, kDatabaseMax);
    if (!name.empty() && !number.has_value()) {
      return Invalid("its database is no number");
    }
    url.database = number.value_or(0);
    rest = rest.substr(0, slash);
  }
  std::string_view port;
  if (rest.starts_with('[')) {  // an IPv6 address
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return Invalid("a [ is not closed");
    url.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
  } else {
    const std::size_t colon = rest.find(':');
    url.host = rest.substr(0, colon);
    port = colon == std::string_view::npos ? "" : rest.substr(colon);
  }
  if (url.host.empty()) return Invalid("it names no host");
  if (!port.empty()) {
    const auto number =
        port[0] == ':' ? Number(port.substr(1), 65535) : std::nullopt;
    if (!number.has_value() || *number == 0) {
      return Invalid("its port is no number from 1 to 65535");
    }
    url.port = *number;
  }
  return url;
}

}  // namespace hearth
