// What one can do with a prompt cache directory, other processes using it or
// not. Each call gives a JSON object (one line) that `hearth cache --json`
// prints and `hearth cache` turns into a table.
//
// Names   a stored prompt is named by its stem ("<model>-<12 hex>") or by any
//         beginning of it, or of its hex digits, that only one prompt has.
// Errors  kNotFound: no such directory or prompt. kInvalidArgument: the name
//         fits several.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth {

// A prompt cache directory, and the key file of its encrypted entries (empty:
// those are left alone).
struct CacheDir {
  CacheDir(std::string at, std::string key = {})
      : path(std::move(at)), key_file(std::move(key)) {}
  std::string path;
  std::string key_file;
};

Result<std::string> CacheList(const CacheDir& dir);
Result<std::string> CacheShow(const CacheDir& dir, const std::string& name);
Result<std::string> CacheStats(const CacheDir& dir);
// Reads every file whole; what cannot be right is moved to quarantine.
Result<std::string> CacheVerify(const CacheDir& dir);
Result<std::string> CachePin(const CacheDir& dir, const std::string& name);
Result<std::string> CacheUnpin(const CacheDir& dir, const std::string& name);
// Deletes leftovers and prompts with holes, then enforces the limit (0: none).
Result<std::string> CacheGc(const CacheDir& dir,
                            std::uint64_t disk_budget_bytes);
// Deletes everything, or what one model name has. "left" names what these two
// could not delete.
Result<std::string> CacheWipe(const CacheDir& dir,
                              const std::string& model_name);
// The file is encrypted when the directory's entries are, with the same key.
Result<std::string> CacheExport(const CacheDir& dir, const std::string& name,
                                const std::string& path);
// Within the limit (0: none).
Result<std::string> CacheImport(const CacheDir& dir, const std::string& path,
                                std::uint64_t disk_budget_bytes = 0);
// How much of a prompt would hit for this engine's model and settings, and
// where it parts from the nearest stored prompt.
Result<std::string> CacheWhy(Engine& engine, const std::string& prompt);

}  // namespace hearth
