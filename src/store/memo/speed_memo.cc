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

std::string SealedSpeeds(std::string_view line) {
  return std::string(line) + "\n" + ChecksumLine(line);
}

KvSpeeds ParseSpeeds(std::string_view text, const std::string& what) {
  // A damaged digit would be a wrong speed for many launches.
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos ||
      text.substr(end + 1) != ChecksumLine(text.substr(0, end))) {
    return {};
  }
  const auto json = ParseJson(text.substr(0, end), what);
  if (!json.ok() || !json->is_object()) return {};
  const auto version = JsonInt(*json, "version", "", 0);
  if (!version.ok() || *version != kSpeedVersion) return {};
  return {Sane(*json, kLoadKey), Sane(*json, kPrefillKey)};
}

SpeedMemo::SpeedMemo(SideFiles files, const Digest& key)
    : files_(std::move(files)),
      name_(ToHex(key, 16) + std::string(kSpeedSuffix)) {}

KvSpeeds SpeedMemo::Find() const {
  const auto file = files_.Find(name_, kSpeedBytesMax);
  return file.has_value() ? ParseSpeeds(AsText(file->bytes), name_)
                          : KvSpeeds();
}

Result<void> SpeedMemo::Save(const KvSpeeds& speeds) const {
  const Json json = {{"version", kSpeedVersion},
                     {kLoadKey, speeds.load_bytes_per_s},
                     {kPrefillKey, speeds.prefill_tokens_per_s}};
  return files_.Write(name_, AsBytes(SealedSpeeds(json.dump())),
                      Durability::kCached, Room::kEvict);
}

}  // namespace hearth
