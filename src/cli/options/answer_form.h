// What form an answer must have, as the command line says it.
#pragma once

#include <string>

#include "cli/options/options.h"
#include "hearth/constraint.h"
#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth::cli {

class AnswerFormArgs {
 public:
  void Add(Command& command);
  // Reads the file, before the model is opened. Errors name it.
  Result<void> Read();
  // For an engine's answers; empty without such an option. Says what of a
  // schema has no effect.
  Result<MakeConstraint> Make(Engine& engine) const;

 private:
  std::string schema_file_, grammar_file_;
  std::string text_;  // of the one that was given
};

}  // namespace hearth::cli
