// A model as a GGUF file, without a tokenizer.
#pragma once

#include <string>
#include <vector>

#include "convert/gguf/gguf_export.h"

namespace hearth {

inline Result<void> ExportGguf(const LoadedModel& model,
                               const std::string& path) {
  HEARTH_ASSIGN(const std::vector<GgufMetadata> metadata,
                GgufModelMetadata(model));
  HEARTH_ASSIGN(const std::vector<GgufTensorSource> tensors,
                GgufModelTensors(model));
  return WriteGguf(path, metadata, tensors);
}

}  // namespace hearth
