// What a prompt cache directory holds, as plain data: cache.h gives it.
//
// Units  bytes of files, counts of tokens, nanoseconds since 1970 (0: unknown).
// Ids    64 hex digits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

// One stored prompt.
struct PromptInfo {
  std::string stem;  // its name: "<model>-<12 hex>"
  std::string model_name;
  std::string model_id, format_id;
  int block_tokens = 0;
  std::uint64_t n_tokens = 0;
  std::uint64_t n_blocks_full = 0;
  std::uint64_t n_blocks_present = 0;  // of the full ones
  // Up to the first missing block; of a model that carries states, up to the
  // newest of them that all blocks before are there for.
  std::uint64_t n_tokens_usable = 0;
  // All blocks are there and, of a model that carries states, some of these.
  bool whole = false;
  std::uint64_t n_tail_tokens = 0;
  std::uint64_t bytes = 0;         // manifest, note, blocks and states
  std::uint64_t bytes_shared = 0;  // of them, that other prompts have too
  // Of a model that carries states: positions where they are stored.
  bool carries_states = false;
  std::uint64_t n_states = 0;
  std::uint64_t bytes_states = 0;  // of bytes
  std::int64_t created_ns = 0;
  std::int64_t last_use_ns = 0;
  bool pinned = false;
  std::string preview = {};  // its beginning, where ReadPreviews found it
};

struct PromptList {
  std::vector<PromptInfo> prompts;  // newest use first
  std::uint64_t n_locked = 0;  // not among them: of another key, or of none
};

// A file of a prompt: a block, or a piece of one.
struct BlockInfo {
  std::string id;
  std::uint64_t first_token = 0, n_tokens = 0;
  bool present = false;
  bool is_piece = false;
  std::uint64_t bytes = 0;  // of the file
  int n_sharing = 0;        // stored prompts that have it
};

// A file of states: what all layers keep at one position.
struct StateInfo {
  std::string id;              // of the prefix
  std::uint64_t n_tokens = 0;  // of the prefix
  bool present = false;
  std::uint64_t bytes = 0;  // of the file
  int n_sharing = 0;        // stored prompts that name it
};

struct PromptDetails {
  PromptInfo info;
  std::vector<BlockInfo> blocks;
  std::vector<StateInfo> states;     // rising
  std::vector<std::int32_t> tokens;  // up to the first missing block
  std::string note;  // the sidecar's JSON text; empty without one
};

struct KindStats {
  std::uint64_t n_files = 0, bytes = 0;
};

struct ModelStats {
  std::string model_name;
  std::string model_id;
  std::uint64_t n_prompts = 0;
  std::uint64_t n_tokens_unique = 0;  // a shared block counts once
  std::uint64_t bytes = 0;            // likewise
};

struct StoreStats {
  std::uint64_t total_bytes = 0;
  KindStats blocks, states, manifests, sidecars, memos, quarantined,
      temporaries, other;
  std::uint64_t n_blocks_loose = 0;  // in no manifest: stopped prefills
  std::uint64_t n_pinned = 0;
  std::int64_t free_bytes = -1;  // of the disk; -1: unknown
  std::vector<ModelStats> models;
};

struct Defect {
  std::string path;
  std::string reason;
  bool set_aside = false;
};

struct VerifyReport {
  std::uint64_t n_files = 0, bytes = 0;
  double seconds = 0;
  std::uint64_t n_locked = 0;  // not checked: encrypted under another key
  std::vector<Defect> defects;
  // Stored prompts whose chain has a hole; not damage: eviction makes them.
  std::vector<std::string> incomplete;
};

struct GcReport {
  std::uint64_t n_files = 0, bytes = 0;  // deleted
  std::uint64_t bytes_left = 0;
  // What should be gone and is not, with the system's reason; one line each.
  std::vector<std::string> left;
};

}  // namespace hearth
