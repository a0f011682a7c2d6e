// A checksum made right: block and state images open alike.
#pragma once

#include <cstddef>
#include <vector>

#include "store/format/block_image.h"

namespace hearth {

// The header's checksum of an image, where its stated length can be one.
inline void ResealImage(std::vector<std::byte>& image) {
  const std::size_t header_bytes = StatedHeaderBytes(image);
  if (header_bytes < kBlockTokensAt || header_bytes > image.size()) return;
  StoreLe(image.data() + kBlockChecksumAt,
          Checksum64(ByteSpan(image).subspan(kBlockVersionAt,
                                             header_bytes - kBlockVersionAt)));
}

}  // namespace hearth
