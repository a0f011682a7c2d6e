#include "cli/options/answer_form.h"

#include "cli/terminal/input.h"
#include "cli/terminal/text.h"
#include "hearth/grammar.h"

namespace hearth::cli {

void AnswerFormArgs::Add(Command& command) {
  command.Group("Form of the answer");
  const Option schema = command.Name(
      "--json-schema,--json-schema-file", schema_file_,
      "a file with a JSON Schema: the answer is JSON that it accepts");
  command
      .Name("--grammar,--grammar-file", grammar_file_,
            "a file with a GBNF grammar: the answer is a text of it")
      .Excludes(schema);
}

Result<void> AnswerFormArgs::Read() {
  const std::string& file = schema_file_.empty() ? grammar_file_ : schema_file_;
  if (file.empty()) return {};
  auto text = ReadPrompt(file);
  // Elsewhere the text itself is the option's value.
  if (!text.ok() &&
      (file.starts_with('{') || file.find("::=") != std::string::npos)) {
    return {text.error().code,
            text.error().message + "; the option wants the name of a file"};
  }
  HEARTH_ASSIGN(text_, std::move(text));
  return {};
}

Result<MakeConstraint> AnswerFormArgs::Make(Engine& engine) const {
  if (schema_file_.empty() && grammar_file_.empty()) return MakeConstraint();
  auto form = schema_file_.empty() ? ConstraintFromGbnf(engine, text_)
                                   : ConstraintFromJsonSchema(engine, text_);
  if (!form.ok()) {
    const std::string& file =
        schema_file_.empty() ? grammar_file_ : schema_file_;
    return {form.error().code, file + ": " + form.error().message};
  }
  for (const std::string& note : form->notes) Note(schema_file_ + ": " + note);
  return std::move(form->make);
}

}  // namespace hearth::cli
