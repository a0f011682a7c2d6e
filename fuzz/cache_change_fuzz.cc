// The body of POST /hearth/v1/cache: what changes a user's stored prompts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "serve/routes/cache_change.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hearth::serve::HttpRequest request;
  request.body.assign(reinterpret_cast<const char*>(data), size);
  const auto change = hearth::serve::ParseCacheChange(request);
  if (!change.ok()) return 0;
  // Nothing is done to a prompt whose name was not said.
  if (change->name.empty() || change->name.size() > size) std::abort();
  return 0;
}
