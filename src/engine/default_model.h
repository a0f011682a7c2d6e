// The model that is part of the program: a GGUF file in the read-only data
// (default_model.S), mapped like any other file by the system's loader.
#pragma once

#include "base/bytes.h"

namespace hearth {

ByteSpan DefaultModelBytes();

}  // namespace hearth
