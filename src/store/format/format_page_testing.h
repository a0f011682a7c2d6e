// Holds the hex dump of a format page against what the code writes.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "cache/block_chain.h"
#include "hearth_test_paths.h"

namespace hearth {

// The identity of the pages' examples.
inline KvIdentity PageIdentity() {
  KvIdentity identity;
  identity.model_id.bytes.fill(0x11);
  identity.format_id.bytes.fill(0x22);
  identity.model_name = "tiny";
  return identity;
}

// Rows of 16 bytes as the pages show them; rows of zeros are left out.
inline std::string DumpOf(ByteSpan bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    const ByteSpan row =
        bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at));
    bool zero = true;
    char field[16];
    std::snprintf(field, sizeof(field), "    %04x ", static_cast<unsigned>(at));
    std::string line = field;
    for (const std::byte b : row) {
      zero = zero && b == std::byte{0};
      std::snprintf(field, sizeof(field), " %02x", static_cast<unsigned>(b));
      line += field;
    }
    if (!zero) text += line + "\n";
  }
  return text;
}

inline void ExpectPageShows(const std::string& page, ByteSpan bytes) {
  const auto text =
      ReadTextFile(HEARTH_TEST_DATA "/../../docs/formats/" + page);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const std::string dump = DumpOf(bytes);
  EXPECT_NE(text->find(dump), std::string::npos) << page << " should show:\n"
                                                 << dump;
}

}  // namespace hearth
