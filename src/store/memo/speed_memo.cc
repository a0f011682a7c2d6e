#include "store/memo/speed_memo.h"

#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "store/directory/layout.h"

namespace hearth {
namespace {

constexpr std::size_t kSpeedBytesMax = 4096;
constexpr std::int64_t kSpeedVersion = 2;
constexpr const char* kLoadKey = "load_bytes_per_s";
constexpr const char* kPrefillKey = "prefill_tokens_per_s";

double Sane(const Json& json, const char* key) {
  const auto value = JsonNumber(json, key, "", 0);
  return value.ok() && std::isfinite(*value) && *value > 0 ? *value : 0;
}

std::string ChecksumLine(std::string_view line) {
  char hex[18];
  std::snprintf(hex, sizeof(hex), "%016llx\n",
                static_cast<unsigned long long>(Checksum64(AsBytes(line))));
  return hex;
}

}  // namespace

SpeedMemo::SpeedMemo(SideFiles files, const Digest& key)
    : files_(std::move(files)),
      name_(ToHex(key, 16) + std::string(kSpeedSuffix)) {}

KvSpeeds SpeedMemo::Find() const {
  const auto file = files_.Find(name_, kSpeedBytesMax);
  if (!file.has_value()) return {};
  const std::string_view text = AsText(file->bytes);
  // A damaged digit would be a wrong speed for many launches.
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos ||
      text.substr(end + 1) != ChecksumLine(text.substr(0, end))) {
    return {};
  }
  const auto json = ParseJson(std::string(text.substr(0, end)), name_);
  if (!json.ok() || !json->is_object()) return {};
  const auto version = JsonInt(*json, "version", "", 0);
  if (!version.ok() || *version != kSpeedVersion) return {};
  return {Sane(*json, kLoadKey), Sane(*json, kPrefillKey)};
}

Result<void> SpeedMemo::Save(const KvSpeeds& speeds) const {
  const Json json = {{"version", kSpeedVersion},
                     {kLoadKey, speeds.load_bytes_per_s},
                     {kPrefillKey, speeds.prefill_tokens_per_s}};
  const std::string line = json.dump();
  return files_.Write(name_, AsBytes(line + "\n" + ChecksumLine(line)),
                      Durability::kCached, Room::kEvict);
}

}  // namespace hearth
