// The readable note beside a manifest. For people only: nothing but what shows
// it to them reads it back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/hash.h"
#include "cache/block_chain.h"
#include "cache/kv_spec.h"

namespace hearth {

struct SidecarFacts {
  Digest end_id;  // of the prompt's last block
  std::size_t n_tokens = 0;
  std::size_t manifest_bytes = 0;
  std::int64_t created_unix_s = 0;
  std::string preview;  // prompt text; left out when empty, since it leaks
};

std::string SidecarText(const KvIdentity& identity, const KvSpec& spec,
                        const SidecarFacts& facts);

}  // namespace hearth
