// What lies in a store, found by looking: every file with its kind, length and
// last use, and what the manifests say about the blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/directory.h"
#include "base/hash.h"
#include "hearth/result.h"
#include "store/directory/quarantine.h"
#include "store/format/prompt_file.h"

namespace hearth {

enum class FileKind {
  kBlock,
  kState,
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
  Digest id;                   // kBlock and kState
  std::uint64_t position = 0;  // kState
  std::uint64_t bytes = 0;
  std::int64_t last_use_ns = 0;
  bool stale = false;         // kTemporary only: its writer is gone
  bool is_regular = true;     // else a link, pipe, device, or a directory
  bool is_directory = false;  // where none belongs
};

struct Catalog {
  std::vector<CatalogFile> files;
  std::uint64_t total_bytes = 0;  // of all of them
};

// Reads names and lengths, no contents. Files that vanish meanwhile are left
// out.
Result<Catalog> ScanStore(const Directory& root);

// A manifest's name without its suffix; nothing when it is no such name.
std::string StemOf(const std::string& name, std::string_view suffix);

// A file's modification time as the time of its last use. One that lies more
// than an hour ahead was set by a clock that was wrong: it counts as lying as
// long ago, so that the file does not outlive all that are used from now on.
std::int64_t LastUseNs(std::int64_t mtime_ns, std::int64_t now_ns);

// Names of the manifests of one model, last used first, `n_max` at most.
std::vector<std::string> RecentManifests(const Directory& prompts,
                                         const std::string& model_name,
                                         std::size_t n_max);

// A manifest, read and checked as ReadStored and ParsePromptFile do, and that
// its name is that of its prompt.
Result<PromptHeader> ReadManifest(const Directory& prompts,
                                  const std::string& name);

}  // namespace hearth
