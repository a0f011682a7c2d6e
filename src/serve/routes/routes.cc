#include "serve/routes/routes.h"

namespace hearth::serve {
namespace {

bool Fits(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  return path.starts_with(pattern) && path.size() > pattern.size();
}

// A refusal that no request can change.
template <int kStatus>
HttpAnswer Refused(const Call& call, const char* type, std::string message) {
  WireError error;
  error.status = kStatus;
  error.type = type;
  error.message = std::move(message);
  return ErrorAnswer(WordsOf(call.http.path), error, call.id);
}

HttpAnswer NoVectors(Core&, const Call& call) {
  return Refused<501>(call, "not_supported_error",
                      "hearth computes no embeddings and no rankings: it has "
                      "no pooling models; ask a server that has");
}

HttpAnswer NoModelFiles(Core&, const Call& call) {
  return Refused<403>(call, "permission_error",
                      "no request loads, makes or deletes models here; start "
                      "`hearth serve MODEL` with the one you want");
}

HttpAnswer NoSlots(Core&, const Call& call) {
  return Refused<501>(call, "not_supported_error",
                      "there are no slots: conversations are saved by "
                      "themselves and found by their text");
}

constexpr Route kRefused[] = {
    {"POST", "/v1/embeddings", NoVectors},
    {"POST", "/embeddings", NoVectors},
    {"POST", "/embedding", NoVectors},
    {"POST", "/v1/rerank", NoVectors},
    {"POST", "/rerank", NoVectors},
    {"POST", "/reranking", NoVectors},
    {"POST", "/v1/reranking", NoVectors},
    {"POST", "/api/embed", NoVectors},
    {"POST", "/api/embeddings", NoVectors},
    {"POST", "/api/pull", NoModelFiles},
    {"POST", "/api/push", NoModelFiles},
    {"POST", "/api/create", NoModelFiles},
    {"POST", "/api/copy", NoModelFiles},
    {"DELETE", "/api/delete", NoModelFiles},
    {"POST", "/api/blobs/*", NoModelFiles},
    {"GET", "/api/blobs/*", NoModelFiles},
    {"POST", "/slots/*", NoSlots},
};

}  // namespace

std::span<const Route> RefusedRoutes() { return kRefused; }

FoundRoute FindRoute(std::string_view method, std::string_view path) {
  FoundRoute result;
  if (method == "HEAD") method = "GET";
  for (const auto routes : {OpenAiRoutes(), LlamaRoutes(), OllamaRoutes(),
                            HearthRoutes(), RefusedRoutes()}) {
    for (const Route& route : routes) {
      if (!Fits(route.path, path)) continue;
      if (route.method == method) return {Found::kRoute, &route, ""};
      result.found = Found::kNoMethod;
      result.allowed += (result.allowed.empty() ? "" : ", ");
      result.allowed += route.method;
    }
  }
  return result;
}

}  // namespace hearth::serve
