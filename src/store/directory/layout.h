// Names inside a store. Only digests and sanitised model names become file
// names; nothing a prompt contains does. docs/formats/store.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "store/format/kv_identity.h"

namespace hearth {

inline constexpr const char* kVersionName = "VERSION";
inline constexpr const char* kVersionText = "hearth store 1\n";
inline constexpr const char* kBlocksName = "blocks";
inline constexpr const char* kPromptsName = "prompts";
inline constexpr const char* kModelsName = "models";
inline constexpr const char* kPinsName = "pins";
inline constexpr const char* kQuarantineName = "quarantine";
inline constexpr const char* kUsageName = "usage";

inline constexpr std::string_view kBlockSuffix = ".kv";
inline constexpr std::string_view kPromptSuffix = ".kvcache";
inline constexpr std::string_view kSidecarSuffix = ".meta.json";

// Letters, digits, '-', '_' and '.' stay; at most 64 characters; never empty,
// hidden or taken for an option.
std::string SanitizedName(const std::string& model_name);

std::string BlockFolder(const Digest& id);  // "ab"
std::string BlockName(const Digest& id);    // "ab12….kv"
// `end` is the id of the prompt's last block. Without the suffix.
std::string PromptStem(const std::string& model_name, const Digest& end);

// The id that a block file's name stands for; nothing when it is no such name.
std::optional<Digest> BlockIdOf(std::string_view file_name);
std::optional<Digest> DigestFromHex(std::string_view hex);

}  // namespace hearth
