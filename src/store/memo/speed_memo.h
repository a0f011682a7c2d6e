// How fast this machine loads and computes KV of one model, as measured by
// earlier launches: what decides whether loading is worth it.
// File format: docs/formats/store.md. A wrong value costs time, never an
// answer.
#pragma once

#include <optional>
#include <string>

#include "base/hash.h"
#include "hearth/result.h"

namespace hearth {

class FileOps;

struct KvSpeeds {
  double load_bytes_per_s = 0;      // found, verified and mapped; 0: unknown
  double prefill_tokens_per_s = 0;  // 0: unknown
};

class SpeedMemo {
 public:
  // `root`: the store's. `key`: model, format, machine and threads.
  SpeedMemo(std::string root, const Digest& key, FileOps* file_ops = nullptr);

  // Anything wrong with the memo is simply no memo.
  KvSpeeds Find() const;
  Result<void> Save(const KvSpeeds& speeds) const;

 private:
  std::string root_;
  std::string name_;
  FileOps& ops_;
};

}  // namespace hearth
