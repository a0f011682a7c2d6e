// Which requests are let in: only those of the user's own programs. A web page
// that any site serves can send requests to this machine; its browser says so
// in headers that the page cannot change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/access/keys.h"
#include "serve/http/message.h"
#include "serve/wire/request.h"

namespace hearth::serve {

struct GateOptions {
  std::vector<std::string> bound = {};  // addresses that are listened on
  std::vector<std::string> allow_hosts = {}, allow_origins = {};
  bool share_cache = false;  // several keys have one name space
};

class Gate {
 public:
  Gate(GateOptions options, KeyRing& keys);

  // What is against the request: its Host, its Origin, its key.
  std::optional<WireError> Check(const HttpRequest& request) const;
  // The name of the key it came with; empty: no key is asked for.
  std::string ClientOf(const HttpRequest& request) const;
  // What the KV of its prompts is kept apart by; empty: nothing.
  std::string SpaceOf(const std::string& client) const;
  // The allowed origin that it came from; empty: none, or the server's own.
  std::string ForeignOrigin(const HttpRequest& request) const;

 private:
  bool HostFits(std::string_view host) const;

  const GateOptions options_;
  KeyRing& keys_;
};

// Whether an address reaches this machine alone.
bool IsLoopback(std::string_view address);

// What answers say of nobody in particular, and files of the page: no key.
bool IsOpenPath(std::string_view path);

}  // namespace hearth::serve
