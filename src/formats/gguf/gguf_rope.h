// The rotary settings of a GGUF file.
#pragma once

#include "formats/families.h"
#include "hearth/result.h"

namespace hearth {

// Reads them into in.config.rope and builds its frequencies; the keys, and the
// tensors of those scalings that have some. kUnsupported for types that hearth
// does not know.
Result<void> ReadGgufRope(const GgufInput& in, const Family& family);

}  // namespace hearth
