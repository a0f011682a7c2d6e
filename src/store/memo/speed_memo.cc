#include "store/memo/speed_memo.h"

#include <cmath>
#include <utility>

#include "base/json.h"
#include "store/directory/layout.h"
#include "store/files/directory.h"

namespace hearth {
namespace {

constexpr std::size_t kSpeedBytesMax = 4096;
constexpr std::int64_t kSpeedVersion = 1;
constexpr const char* kLoadKey = "load_bytes_per_s";
constexpr const char* kPrefillKey = "prefill_tokens_per_s";

double Sane(const Json& json, const char* key) {
  const auto value = JsonNumber(json, key, "", 0);
  return value.ok() && std::isfinite(*value) && *value > 0 ? *value : 0;
}

}  // namespace

SpeedMemo::SpeedMemo(std::string root, const Digest& key, FileOps* file_ops)
    : root_(std::move(root)),
      name_(ToHex(key, 16) + ".speed"),
      ops_(file_ops ? *file_ops : FileOps::System()) {}

KvSpeeds SpeedMemo::Find() const {
  const auto root = Directory::Open(ops_, root_);
  if (!root.ok()) return {};
  const auto models = root->Sub(kModelsName);
  if (!models.ok()) return {};
  const auto bytes = models->ReadStart(name_, kSpeedBytesMax);
  if (!bytes.ok()) return {};
  const auto json = ParseJson(AsText(*bytes), name_);
  if (!json.ok() || !json->is_object()) return {};
  const auto version = JsonInt(*json, "version", "", 0);
  if (!version.ok() || *version != kSpeedVersion) return {};
  return {Sane(*json, kLoadKey), Sane(*json, kPrefillKey)};
}

Result<void> SpeedMemo::Save(const KvSpeeds& speeds) const {
  HEARTH_ASSIGN(const Directory root, Directory::Open(ops_, root_));
  HEARTH_ASSIGN(const Directory models, root.MakeSub(kModelsName));
  const Json json = {{"version", kSpeedVersion},
                     {kLoadKey, speeds.load_bytes_per_s},
                     {kPrefillKey, speeds.prefill_tokens_per_s}};
  const std::string text = json.dump() + "\n";
  const ByteSpan parts[] = {AsBytes(text)};
  return models.Write(name_, parts, Durability::kCached);
}

}  // namespace hearth
