// Lines that a user types. On a terminal with editing, history and pasted text
// of several lines (libedit); from a file or pipe as they come, of any length.
#pragma once

#include <memory>
#include <string>

namespace hearth::cli {

struct LineRead {
  enum class Kind { kLine, kEnd, kCtrlC } kind = Kind::kEnd;
  std::string text;  // of kLine, without the line end
};

class LineEditor {
 public:
  // Ctrl-C at the prompt is Interrupted() of cli/interrupt.h.
  LineEditor();
  ~LineEditor();

  bool terminal() const { return state_ != nullptr; }
  // SIGTERM ends the input.
  LineRead Read(const std::string& prompt);
  // A message as the user sent it, for the arrow keys.
  void Remember(const std::string& text);

 private:
  struct State;  // of libedit; null without a terminal
  std::unique_ptr<State> state_;
};

// One message: a line; with a \ at its end the next one, too; between """ and
// """ any number. `prompt` is shown before the first line, `more` before
// others.
LineRead ReadMessage(LineEditor& editor, const std::string& prompt,
                     const std::string& more);

}  // namespace hearth::cli
