// What the commands that write models share: --force, progress, ctrl-C and a
// summary.
#pragma once

#include <functional>
#include <string>

#include "cli/options/options.h"
#include "hearth/convert.h"

namespace hearth::cli {

// A refusal to replace what is there, with the option that allows it.
std::string WithForce(std::string message);

struct ModelWriting {
  bool force = false;
  bool quiet = false;

  void AddOptions(Command& command);
  // Runs `write` with options that show its progress and stop at ctrl-C; prints
  // its notes and what was written where. The exit code.
  int Run(const std::string& verb, const std::string& out,
          const std::function<Result<ConvertReport>(const WriteOptions&)>&
              write) const;
};

}  // namespace hearth::cli
