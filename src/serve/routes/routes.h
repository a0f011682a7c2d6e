// Every path of the server that computes no answer: what is asked, and by whom
// it is told. A worker runs them.
#pragma once

#include <span>
#include <string_view>

#include "serve/app/call.h"
#include "serve/app/core.h"

namespace hearth::serve {

struct Route {
  std::string_view method;  // GET stands for HEAD too
  std::string_view path;    // ends in '*': any path that begins so
  HttpAnswer (*answer)(Core& core, const Call& call);
};

std::span<const Route> OpenAiRoutes();
std::span<const Route> LlamaRoutes();  // llama-server's
std::span<const Route> OllamaRoutes();
std::span<const Route> HearthRoutes();   // hearth's own
std::span<const Route> RefusedRoutes();  // known, and refused with a reason

enum class Found { kNoPath, kNoMethod, kRoute };
struct FoundRoute {
  Found found = Found::kNoPath;
  const Route* route = nullptr;
  std::string allowed = {};  // methods, for kNoMethod
};
FoundRoute FindRoute(std::string_view method, std::string_view path);

}  // namespace hearth::serve
