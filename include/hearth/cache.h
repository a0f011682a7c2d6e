// What one can do with a prompt cache directory, other processes using it or
// not.
//
// Names   a stored prompt is named by its stem ("<model>-<12 hex>") or by any
//         beginning of it, or of its hex digits, that only one prompt has.
// Errors  kNotFound: no such directory or prompt. kInvalidArgument: the name
//         fits several.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hearth/cache_report.h"
#include "hearth/cache_tree.h"
#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth {

// A prompt cache directory, the key file of its encrypted entries (empty: those
// are left alone), and the one of the shared cache whose blocks it keeps
// (empty: that these are signed with it is not checked).
struct CacheDir {
  CacheDir(std::string at, std::string key = {}, std::string remote_key = {})
      : path(std::move(at)),
        key_file(std::move(key)),
        remote_key_file(std::move(remote_key)) {}
  std::string path;
  std::string key_file;
  std::string remote_key_file;
};

Result<PromptList> CacheList(const CacheDir& dir);
Result<PromptDetails> CacheShow(const CacheDir& dir, const std::string& name);
// Fills in the previews that EngineOptions::cache_previews left beside them.
void ReadPreviews(const CacheDir& dir, std::vector<PromptInfo>& prompts);
// What the stored prompts have in common, and every block.
Result<PromptTree> CacheTree(const CacheDir& dir);
Result<StoreStats> CacheStats(const CacheDir& dir);
// Reads every file whole; what cannot be right is moved to quarantine.
// `progress`: bytes read, of all.
using CacheProgress = std::function<void(std::uint64_t, std::uint64_t)>;
Result<VerifyReport> CacheVerify(const CacheDir& dir,
                                 const CacheProgress& progress = nullptr);
// A pinned prompt and its blocks are not evicted. Both give the stem.
Result<std::string> CachePin(const CacheDir& dir, const std::string& name);
Result<std::string> CacheUnpin(const CacheDir& dir, const std::string& name);
// Deletes leftovers and prompts with holes, then enforces the limit (0: none).
Result<GcReport> CacheGc(const CacheDir& dir, std::uint64_t disk_budget_bytes);
// Deletes one prompt, and its blocks that no other has. kInvalidArgument for a
// pinned one.
Result<GcReport> CacheEvict(const CacheDir& dir, const std::string& name);
// Deletes everything, or what one model name has.
Result<GcReport> CacheWipe(const CacheDir& dir, const std::string& model_name);
// The file is encrypted when the directory's entries are, with the same key.
Result<void> CacheExport(const CacheDir& dir, const std::string& name,
                         const std::string& path);
// Within the limit (0: none); gives the stem. Makes the directory.
Result<std::string> CacheImport(const CacheDir& dir, const std::string& path,
                                std::uint64_t disk_budget_bytes = 0);

// What loading the stored tokens would take, and computing them instead.
struct LoadCost {
  double load_ms = 0, compute_ms = 0;
  bool pays = false;  // loading is predicted to be faster
};

// Where a prompt and the nearest stored one part.
struct PartingPlace {
  std::uint64_t byte = 0;     // of the prompt's text
  std::string asked, stored;  // the texts around it
};

// Why a prompt would not be found whole.
struct CacheMiss {
  std::uint64_t n_tokens = 0;         // asked for
  std::uint64_t n_tokens_stored = 0;  // that a lookup would find
  std::string reason;                 // of the lookup; empty when none
  // Stored under other token ids, where EngineOptions::cache_by_text finds
  // them.
  std::optional<std::uint64_t> n_tokens_by_text;
  std::optional<LoadCost> cost;  // nothing stored, or not measured: none
  // The stored prompt that shares the most leading tokens; empty: none stored.
  std::string nearest_stem;
  std::uint64_t n_tokens_common = 0;
  // Key fields in which the nearest differs: "model", "kv format",
  // "name space". Its blocks cannot be used while this is not empty.
  std::vector<std::string> key_differences;
  // Only when the two are of one key and the prompt goes on after it.
  std::optional<PartingPlace> parting;
};

// How much of a prompt would hit for this engine's model and settings, and
// where it parts from the nearest stored prompt.
Result<CacheMiss> CacheWhy(Engine& engine, const std::string& prompt);
// The same for a prompt that is tokenised already.
Result<CacheMiss> CacheWhy(Engine& engine, std::span<const std::int32_t> ids);

}  // namespace hearth
