#include "store/directory/layout.h"

#include <algorithm>

namespace hearth {
namespace {

constexpr std::size_t kNameMax = 64;
constexpr std::size_t kStemDigestBytes = 6;  // 12 hex digits

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

// Lower case only: a name has one spelling.
int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string SanitizedName(const std::string& model_name) {
  std::string name;
  for (const char c : model_name) {
    if (name.size() == kNameMax) break;
    name += IsPlain(c) ? c : '_';
  }
  if (name.empty()) return "model";
  if (name[0] == '.' || name[0] == '-') name[0] = '_';
  return name;
}

std::string BlockFolder(const Digest& id) { return ToHex(id, 1); }

std::string BlockName(const Digest& id) {
  return ToHex(id) + std::string(kBlockSuffix);
}

std::string PromptStem(const std::string& model_name, const Digest& end) {
  return SanitizedName(model_name) + "-" + ToHex(end, kStemDigestBytes);
}

StorePath BlockPath(const Digest& id) {
  return {std::string(kBlocksName) + "/" + BlockFolder(id), BlockName(id)};
}

StorePath StatePath(const Digest& id, std::uint64_t position) {
  return {
      std::string(kStatesName) + "/" + BlockFolder(id),
      ToHex(id) + "-" + std::to_string(position) + std::string(kStateSuffix)};
}

StorePath ManifestPath(const std::string& stem) {
  return {kPromptsName, stem + std::string(kPromptSuffix)};
}

StorePath NotePath(const std::string& stem) {
  return {kPromptsName, stem + std::string(kSidecarSuffix)};
}

StorePath PinPath(const std::string& stem) { return {kPinsName, stem}; }

StorePath SidePath(const std::string& name) { return {kModelsName, name}; }

bool IsStoreFolder(std::string_view name) {
  const auto is_one_of = [name](const auto& folders) {
    return std::find(folders.begin(), folders.end(), name) != folders.end();
  };
  return is_one_of(kDeepFolders) || is_one_of(kFlatFolders);
}

std::optional<Digest> BlockIdOf(std::string_view file_name) {
  if (!file_name.ends_with(kBlockSuffix)) return std::nullopt;
  file_name.remove_suffix(kBlockSuffix.size());
  return DigestFromHex(file_name);
}

// A position has one spelling: no zeros in front, no sign.
std::optional<StateName> StateNameOf(std::string_view file_name) {
  constexpr std::size_t kHex = 2 * sizeof(Digest);
  constexpr std::size_t kDigitsMax = 9;
  if (!file_name.ends_with(kStateSuffix)) return std::nullopt;
  file_name.remove_suffix(kStateSuffix.size());
  if (file_name.size() <= kHex + 1 || file_name[kHex] != '-') {
    return std::nullopt;
  }
  const std::string_view digits = file_name.substr(kHex + 1);
  if (digits.size() > kDigitsMax || digits[0] == '0' ||
      digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto id = DigestFromHex(file_name.substr(0, kHex));
  if (!id.has_value()) return std::nullopt;
  StateName name{*id, 0};
  for (const char digit : digits) {
    name.position =
        name.position * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return name;
}

std::optional<Digest> DigestFromHex(std::string_view hex) {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = HexValue(hex[2 * i]);
    const int low = HexValue(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

}  // namespace hearth
