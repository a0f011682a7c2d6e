// What commands share that run a text through a model, chunk by chunk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/options/command.h"
#include "cli/terminal/progress.h"
#include "hearth/result.h"

namespace hearth::cli {

void AddTextOption(Command& command, std::string& text_file);
void AddChunkOptions(Command& command, int& context_tokens, int& n_chunks_max);

// Shows how far it is; false once the user has interrupted. `progress` outlives
// the result.
std::function<bool(std::int64_t done, std::int64_t total)> Showing(
    Progress& progress);

// `error` with the text's file in front, where the text is what it is about.
Error OfText(const std::string& text_file, const Error& error);

}  // namespace hearth::cli
