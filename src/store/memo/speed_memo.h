// How fast this machine loads and computes KV of one model, as measured by
// earlier launches: what decides whether loading is worth it.
// File format: docs/formats/store.md. A wrong value costs time, never an
// answer.
#pragma once

#include <string>
#include <string_view>

#include "base/hash.h"
#include "hearth/result.h"
#include "store/memo/side_files.h"

namespace hearth {

struct KvSpeeds {
  double load_bytes_per_s = 0;      // found, verified and mapped; 0: unknown
  double prefill_tokens_per_s = 0;  // 0: unknown
};

// The file's text for one line of JSON, and back: nothing unless all of it is
// right.
std::string SealedSpeeds(std::string_view line);
KvSpeeds ParseSpeeds(std::string_view text, const std::string& what);

class SpeedMemo {
 public:
  // `key`: model, format, machine and threads.
  SpeedMemo(SideFiles files, const Digest& key);

  // Anything wrong with the memo is simply no memo.
  KvSpeeds Find() const;
  Result<void> Save(const KvSpeeds& speeds) const;

 private:
  SideFiles files_;
  std::string name_;
};

}  // namespace hearth
