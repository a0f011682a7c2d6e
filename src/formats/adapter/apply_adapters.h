// Puts adapters beside the weights of a model, which stay as they are in their
// file: docs/lora.md.
#pragma once

#include <string>
#include <vector>

#include "formats/adapter/adapter_file.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

struct AdapterToApply {
  AdapterFile file;
  float scale = 1;  // of everything that it adds
};

// Takes them in the order of their content, whatever order they are given in.
// kIncompatible for adapters of another model; kUnsupported for layers that can
// have none and for models in a form without adapters; kInvalidArgument for one
// adapter given twice and for a scale that is 0 or no number. On an error the
// model is not to be used. REQUIRES: the model has no adapters yet.
Result<void> ApplyAdapters(std::vector<AdapterToApply> adapters,
                           LoadedModel& model);

}  // namespace hearth
