#include "serve/access/gate.h"

#include <arpa/inet.h>

#include <algorithm>

namespace hearth::serve {
namespace {

bool IsAddress(const std::string& text) {
  in6_addr ignored;
  return ::inet_pton(AF_INET, text.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &ignored) == 1;
}

// "[::1]:8080" and "localhost:8080" without port and brackets.
std::string NameOfHost(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? ""
                                         : std::string(host.substr(1, end - 1));
  }
  return std::string(host.substr(0, host.find(':')));
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::any_of(
      names.begin(), names.end(),
      [name](const std::string& known) { return SameName(known, name); });
}

// The secret in "Authorization: Bearer X", or in x-api-key.
std::string_view SecretOf(const HttpRequest& request) {
  const std::string_view given = request.Header("authorization");
  constexpr std::string_view kBearer = "bearer ";
  if (given.size() > kBearer.size() &&
      SameName(given.substr(0, kBearer.size()), kBearer)) {
    return given.substr(kBearer.size());
  }
  return request.Header("x-api-key");
}

}  // namespace

bool IsLoopback(std::string_view address) {
  return address == "::1" ||
         (address.starts_with("127.") && IsAddress(std::string(address)));
}

bool IsOpenPath(std::string_view path) {
  constexpr std::string_view kOpen[] = {"/health",   "/v1/health", "/",
                                        "/page.css", "/page.js",   "/icon.svg"};
  return std::find(std::begin(kOpen), std::end(kOpen), path) != std::end(kOpen);
}

Gate::Gate(GateOptions options, KeyRing& keys)
    : options_(std::move(options)), keys_(keys) {}

bool Gate::HostFits(std::string_view host) const {
  const std::string name = NameOfHost(host);
  if (SameName(name, "localhost") || IsLoopback(name)) return true;
  if (Contains(options_.bound, name) || Contains(options_.allow_hosts, name)) {
    return true;
  }
  // No name that a stranger's name server answers for can be an address, so a
  // server for other machines takes each of its own.
  const bool beyond =
      !std::all_of(options_.bound.begin(), options_.bound.end(),
                   [](const std::string& b) { return IsLoopback(b); });
  return beyond && IsAddress(name);
}

std::string Gate::ForeignOrigin(const HttpRequest& request) const {
  const std::string* origin = request.Find("origin");
  if (origin == nullptr || !Contains(options_.allow_origins, *origin))
    return "";
  return *origin;
}

std::optional<WireError> Gate::Check(const HttpRequest& request) const {
  const auto refusal = [](std::string message) {
    WireError error;
    error.status = 403;
    error.type = "permission_error";
    error.message = std::move(message);
    return error;
  };
  const std::string* host = request.Find("host");
  if (host != nullptr && !HostFits(*host)) {
    return refusal(
        "this server does not go by the name in Host; whoever starts it can "
        "allow that name");
  }
  const std::string* origin = request.Find("origin");
  const bool allowed = !ForeignOrigin(request).empty();
  const bool own =
      origin != nullptr && host != nullptr && *origin == "http://" + *host;
  if (origin != nullptr && !own && !allowed) {
    return refusal(
        "web pages of other sites may not ask this server; whoever starts it "
        "can allow this page's origin");
  }
  const std::string_view site = request.Header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none" && !allowed) {
    return refusal(
        "a web page of another site sent this; open the server's address "
        "itself, or have whoever starts it allow that page's origin");
  }
  // A browser asks beforehand, and never with a key.
  if (request.method == "OPTIONS" && allowed) return std::nullopt;
  if (keys_.n_keys() == 0 || IsOpenPath(request.path) ||
      keys_.NameOf(SecretOf(request)).has_value()) {
    return std::nullopt;
  }
  WireError error;
  error.status = 401;
  error.type = "authentication_error";
  error.code = "invalid_api_key";
  error.message =
      "this server asks for a key that it knows: \"Authorization: Bearer KEY\" "
      "or \"x-api-key: KEY\"";
  return error;
}

std::string Gate::ClientOf(const HttpRequest& request) const {
  if (keys_.n_keys() == 0) return "";
  return keys_.NameOf(SecretOf(request)).value_or("");
}

std::string Gate::SpaceOf(const std::string& client) const {
  return keys_.n_keys() > 1 && !options_.share_cache ? client : "";
}

}  // namespace hearth::serve
