#include "cli/commands/measured_text.h"

#include "cli/terminal/interrupt.h"

namespace hearth::cli {

void AddTextOption(Command& command, std::string& text_file) {
  command.Name("--text,--file,-f", text_file, "UTF-8 text; - is standard input")
      .Required();
}

void AddChunkOptions(Command& command, int& context_tokens, int& n_chunks_max) {
  command
      .Integer("--ctx-size,--context,-c", context_tokens, 4, 1 << 24,
               "tokens of a chunk")
      .Default("512, or the model's context where that is less");
  command.Integer("--chunks", n_chunks_max, 1, 1 << 24,
                  "chunks at most; default: all of the text");
}

std::function<bool(std::int64_t done, std::int64_t total)> Showing(
    Progress& progress) {
  return [&progress](std::int64_t done, std::int64_t total) {
    progress.Update(static_cast<std::uint64_t>(done),
                    static_cast<std::uint64_t>(total));
    return !Interrupted();
  };
}

Error OfText(const std::string& text_file, const Error& error) {
  if (error.code != Code::kInvalidArgument) return error;
  return {error.code, text_file + ": " + error.message};
}

}  // namespace hearth::cli
