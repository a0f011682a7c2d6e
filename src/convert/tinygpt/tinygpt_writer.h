// Randomly initialised .tinygpt files (fp16), for timing and tests: what
// `hearth init` writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hearth/convert.h"
#include "hearth/result.h"

namespace hearth {

// "tiny, small, ...", for messages.
std::string TinygptPresetNames();

struct TinygptInit {
  int n_kv_heads = 0;  // 0: as many as heads
  bool yoco = false;   // the second half attends to the middle layer's KV
  std::uint64_t seed = 0;
};

// Writes `preset` to `path`, streamed and atomically (a temporary file beside
// it, flushed, renamed). The bytes depend on preset and `init` alone, on every
// platform. kInvalidArgument for an unknown preset or KV heads that do not
// divide the heads.
Result<void> InitTinygpt(std::string_view preset, const std::string& path,
                         TinygptInit init = {},
                         const WriteOptions& options = {});

}  // namespace hearth
