// A model from a GGUF file.
#pragma once

#include <string>

#include "base/bytes.h"
#include "hearth/result.h"
#include "model/mtp.h"
#include "model/weights.h"

namespace hearth {

// Borrows `bytes`: the caller keeps them for as long as the model lives
// (LoadModel puts their mapping into `files`). Of a split model, whose parts
// are found beside `label`, `files` holds all parts.
Result<LoadedModel> LoadGguf(ByteSpan bytes, const std::string& label);
// Its multi-token-prediction block; errors as LoadMtp.
Result<MtpBlock> LoadGgufMtp(ByteSpan bytes, const std::string& label);

}  // namespace hearth
