#include "serve/routes/cache_change.h"

namespace hearth::serve {
namespace {

// A stem has the model's name, which is cut, and hex digits.
constexpr std::size_t kNameBytesMax = 256;

}  // namespace

Result<CacheChange> ParseCacheChange(const HttpRequest& request) {
  HEARTH_ASSIGN(const OrderedJson body, BodyObject(request));
  if (body.size() != 1 || !body.begin()->is_string()) {
    return {Code::kInvalidArgument,
            "say one of {\"pin\": name}, {\"unpin\": name} and "
            "{\"evict\": name}"};
  }
  CacheChange change;
  const std::string& what = body.begin().key();
  if (what == "pin") {
    change.kind = CacheChange::Kind::kPin;
  } else if (what == "unpin") {
    change.kind = CacheChange::Kind::kUnpin;
  } else if (what == "evict") {
    change.kind = CacheChange::Kind::kEvict;
  } else {
    return {Code::kInvalidArgument,
            "a store is changed by pin, unpin or evict"};
  }
  change.name = body.begin()->get<std::string>();
  if (change.name.empty() || change.name.size() > kNameBytesMax) {
    return {Code::kInvalidArgument,
            "no stored prompt has an empty name, or one of more than " +
                std::to_string(kNameBytesMax) + " bytes"};
  }
  return change;
}

}  // namespace hearth::serve
