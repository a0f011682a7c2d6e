// What lies in a store, found by looking: every file with its kind, length and
// last use, and what the manifests say about the blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "hearth/result.h"
#include "store/files/directory.h"
#include "store/format/prompt_file.h"

namespace hearth {

enum class FileKind {
  kBlock,
  kManifest,
  kSidecar,
  kMemo,  // of a model's digest
  kPin,
  kQuarantined,
  kTemporary,  // being written, or left by a dead writer
  kRootFile,   // VERSION, usage
  kUnknown,    // none of the store's
};

struct CatalogFile {
  FileKind kind = FileKind::kUnknown;
  std::string folder;  // "blocks/ab", "prompts", …; "" is the root
  std::string name;
  Digest id;  // kBlock only
  std::uint64_t bytes = 0;
  std::int64_t last_use_ns = 0;
  bool stale = false;  // kTemporary only: its writer is gone
};

struct Catalog {
  std::vector<CatalogFile> files;
  std::uint64_t total_bytes = 0;  // of all of them
};

// Reads names and lengths, no contents. Files that vanish meanwhile are left
// out.
Result<Catalog> ScanStore(const Directory& root);

// "a/b" below `root`, without following links.
Result<Directory> OpenFolder(const Directory& root, const std::string& folder);

// A manifest's name without its suffix; nothing when it is no such name.
std::string StemOf(const std::string& name, std::string_view suffix);

// A manifest, read and checked as ReadStored and ParsePromptFile do.
Result<PromptHeader> ReadManifest(const Directory& prompts,
                                  const std::string& name);

}  // namespace hearth
