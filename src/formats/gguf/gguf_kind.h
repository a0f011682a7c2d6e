// GGUF files that hold something else than a model which continues text.
#pragma once

#include "hearth/result.h"

namespace hearth {

class GgufFile;

// kUnsupported, naming what the file is and what to give instead: an adapter, a
// vision projector, an importance matrix, a vocabulary without weights, a model
// that makes embeddings or images or translates.
Result<void> RefuseOtherGguf(const GgufFile& file);

}  // namespace hearth
