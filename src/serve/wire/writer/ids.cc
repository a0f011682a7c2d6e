#include "serve/wire/writer/ids.h"

#include <cstdint>
#include <ctime>
#include <string_view>

#include "base/hash.h"

namespace hearth::serve {

std::string CallId(const std::string& request_id, int choice, int call,
                   bool short_ids) {
  const Digest digest = Sha256()
                            .Field("hearth call id")
                            .Field(request_id)
                            .Field(static_cast<std::uint64_t>(choice))
                            .Field(static_cast<std::uint64_t>(call))
                            .Finish();
  if (!short_ids) return "call_" + ToHex(digest, 12);
  constexpr std::string_view kDigits =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string id;
  auto rest = LoadLe<std::uint64_t>(digest.bytes.data());
  for (int i = 0; i < 9; ++i) {
    id += kDigits[rest % kDigits.size()];
    rest /= kDigits.size();
  }
  return id;
}

std::string ItemId(const char* prefix, const std::string& request_id,
                   const std::string& index) {
  return std::string(prefix) + "_" + request_id + "_" + index;
}

std::string IsoTime(std::int64_t unix_s) {
  const auto time = static_cast<std::time_t>(unix_s);
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[32];
  const std::size_t n =
      std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, n};
}

}  // namespace hearth::serve
