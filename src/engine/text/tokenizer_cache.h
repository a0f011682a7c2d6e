// Keeps tokenizers in compiled form beside the prompt cache, so that a second
// launch maps one file instead of parsing a vocabulary of 150,000 entries.
//
// The entry is named by the stamps (device, inode, size, times) of the files it
// was made from: a changed file makes a new entry, and nothing is hashed.
#pragma once

#include <memory>

#include "hearth/result.h"
#include "model/weights.h"
#include "store/memo/side_files.h"
#include "text/tokenizer.h"

namespace hearth {

// MakeTokenizer through a store's side files; plainly without (null). A
// missing, foreign or damaged entry is made again; failing to write it, or
// having no spare room for it, costs time at the next start and nothing else.
Result<std::unique_ptr<Tokenizer>> MakeTokenizerCached(
    const LoadedModel& model, const SideFiles* side_files);

}  // namespace hearth
