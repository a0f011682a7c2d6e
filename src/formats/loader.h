// Opens a model of any supported kind without reading its weights: files are
// mapped, headers parsed and every tensor's place, type and shape checked
// against the configuration. Milliseconds, whatever the size.
#pragma once

#include <string>

#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// `path`: a GGUF file (of a split model any part), a .tinygpt file, a Hugging
// Face directory, or a folder that stands for one of them (model_folder.h);
// files are told apart by content, not by name. Errors name the file and what
// is wrong or missing: kNotFound, kCorrupt, kUnsupported (an architecture, rope
// type, tensor or number format that hearth has no code for: refused, never
// skipped), kIo.
Result<LoadedModel> LoadModel(const std::string& path);

// The same for a file's content in memory: GGUF, not split, or .tinygpt.
// Borrows `bytes`: the caller keeps them, aligned for any type, for as long as
// the model lives. `label` starts messages.
Result<LoadedModel> LoadModelFromMemory(ByteSpan bytes,
                                        const std::string& label);

}  // namespace hearth
