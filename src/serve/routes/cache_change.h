// What POST /hearth/v1/cache asks for.
#pragma once

#include <string>

#include "hearth/result.h"
#include "serve/app/call.h"

namespace hearth::serve {

struct CacheChange {
  enum class Kind : std::uint8_t { kPin, kUnpin, kEvict };
  Kind kind = Kind::kPin;
  std::string name;  // of a stored prompt
};

// {"pin": name}, {"unpin": name} or {"evict": name}. kInvalidArgument in words
// for its sender.
Result<CacheChange> ParseCacheChange(const HttpRequest& request);

}  // namespace hearth::serve
