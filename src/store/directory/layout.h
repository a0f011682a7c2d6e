// Where everything is inside a store: the one place that knows its paths. Only
// digests and sanitised model names become file names; nothing a prompt
// contains does. docs/formats/store.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "cache/block_chain.h"

namespace hearth {

inline constexpr const char* kVersionName = "VERSION";
inline constexpr const char* kVersionText = "hearth store 1\n";
inline constexpr const char* kBlocksName = "blocks";
inline constexpr const char* kStatesName = "states";
inline constexpr const char* kPromptsName = "prompts";
inline constexpr const char* kModelsName = "models";
inline constexpr const char* kPinsName = "pins";
inline constexpr const char* kQuarantineName = "quarantine";
inline constexpr const char* kUsageName = "usage";

inline constexpr std::string_view kBlockSuffix = ".kv";
inline constexpr std::string_view kStateSuffix = ".state";
inline constexpr std::string_view kPromptSuffix = ".kvcache";
inline constexpr std::string_view kSidecarSuffix = ".meta.json";
// In models/.
inline constexpr std::string_view kMemoSuffix = ".memo";
inline constexpr std::string_view kSpeedSuffix = ".speed";
inline constexpr std::string_view kTokenizerSuffix = ".tokenizer";

// The folders that hold files, and those that hold folders of files.
inline constexpr std::array<const char*, 4> kFlatFolders = {
    kPromptsName, kModelsName, kPinsName, kQuarantineName};
inline constexpr std::array<const char*, 2> kDeepFolders = {kBlocksName,
                                                            kStatesName};

// A file below the root.
struct StorePath {
  std::string folder;  // "blocks/ab", "prompts", …; "" is the root
  std::string name;
};

// Letters, digits, '-', '_' and '.' stay; at most 64 characters; never empty,
// hidden or taken for an option.
std::string SanitizedName(const std::string& model_name);

std::string BlockFolder(const Digest& id);  // "ab", in blocks/ and states/
std::string BlockName(const Digest& id);    // "ab12….kv"
// `end` is the id of the prompt's last block. Without the suffix.
std::string PromptStem(const std::string& model_name, const Digest& end);

StorePath BlockPath(const Digest& id);
// Of the states behind a prefix of so many tokens: "ab12…-4096.state".
StorePath StatePath(const Digest& id, std::uint64_t position);
StorePath ManifestPath(const std::string& stem);
StorePath NotePath(const std::string& stem);
StorePath PinPath(const std::string& stem);
StorePath SidePath(const std::string& name);  // in models/

// Whether the root of a store has a folder of this name.
bool IsStoreFolder(std::string_view name);

// The id that a block file's name stands for; nothing when it is no such name.
std::optional<Digest> BlockIdOf(std::string_view file_name);
// The same of a file of states.
struct StateName {
  Digest id;
  std::uint64_t position = 0;
};
std::optional<StateName> StateNameOf(std::string_view file_name);
std::optional<Digest> DigestFromHex(std::string_view hex);

}  // namespace hearth
