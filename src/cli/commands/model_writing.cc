#include "cli/commands/model_writing.h"

#include <string_view>

#include "cli/options/command.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/units.h"

namespace hearth::cli {

void ModelWriting::AddOptions(Command& command) {
  command.Flag("--force", force,
               "replace what is there: a file, or the model in a directory");
  command.Flag("--quiet,-q", quiet, "no progress, notes or summary");
}

std::string WithForce(std::string message) {
  // The library's words, which name no options (base/files/output.cc).
  for (const std::string_view words :
       {"say that it may be replaced",
        "say that the model in it may be replaced"}) {
    const auto at = message.find(words);
    if (at == std::string::npos) continue;
    message.replace(at, words.size(), "replace it with --force");
  }
  return message;
}

int ModelWriting::Run(
    const std::string& verb, const std::string& out,
    const std::function<Result<ConvertReport>(const WriteOptions&)>& write)
    const {
  CatchInterrupts();
  const double start = SinceStartMs();
  std::uint64_t written = 0;
  Result<ConvertReport> report = [&] {
    Progress progress(verb, Unit::kBytes, quiet);
    return write({.replace = force,
                  .progress = [&](std::uint64_t done, std::uint64_t total) {
                    written = done;
                    progress.Update(done, total);
                    return !Interrupted();
                  }});
  }();
  if (!report.ok()) {
    const Error& error = report.error();
    if (error.code == Code::kCancelled) {
      Note("interrupted; nothing was written");
      return kInterrupted;
    }
    return Fail({error.code, WithForce(error.message)});
  }
  if (quiet) return kOk;
  for (const std::string& note : report->notes) Note(note);
  const double ms = SinceStartMs() - start;
  Note("wrote " + out + ": " +
       (report->n_tensors > 0 ? std::to_string(report->n_tensors) + " tensors, "
                              : "") +
       HumanBytes(written) + " in " + HumanMs(ms));
  return kOk;
}

}  // namespace hearth::cli
