#include "cli/chat/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <cwchar>

#include "cli/terminal/interrupt.h"

namespace hearth::cli {
namespace {

constexpr int kHistoryMax = 1000;
constexpr const char* kPasteOn = "\033[?2004h";
constexpr const char* kPasteOff = "\033[?2004l";
constexpr std::wstring_view kPasteEnd = L"\033[201~";

// Text is UTF-8 here whatever the environment says of it.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

// Waits for the terminal. False: ctrl-C or SIGTERM came. The system may give
// the signal to any thread, so that a read of this one need not notice.
bool WaitForInput() {
  constexpr int kLookMs = 100;
  pollfd terminal = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (!Interrupted() && !Terminated()) {
    if (::poll(&terminal, 1, kLookMs) > 0) return true;
  }
  return false;
}

// A character from the terminal; -1 ends the line: ctrl-C, SIGTERM, an error.
// libedit's own reader goes on after a signal.
int ReadCharacter(EditLine*, wchar_t* out) {
  std::mbstate_t state = {};
  while (true) {
    if (!WaitForInput()) return -1;
    char byte = 0;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n == 0) return 0;
    if (n < 0) {
      if (errno == EINTR && !Interrupted() && !Terminated()) continue;
      return -1;
    }
    const std::size_t made = std::mbrtowc(out, &byte, 1, &state);
    if (made == static_cast<std::size_t>(-2)) continue;  // more bytes belong
    if (made == static_cast<std::size_t>(-1)) {
      *out = L'\xfffd';
      return 1;
    }
    return 1;
  }
}

// What the terminal marks as pasted goes into the line as it is; line ends in
// it do not send it.
unsigned char TakePaste(EditLine* editor, wint_t) {
  std::wstring text;
  wchar_t c = 0;
  while (::el_wgetc(editor, &c) == 1) {
    text += c == L'\r' ? L'\n' : c;
    if (text.ends_with(kPasteEnd)) {
      text.resize(text.size() - kPasteEnd.size());
      break;
    }
  }
  if (!text.empty()) ::el_winsertstr(editor, text.c_str());
  return CC_REFRESH;
}

// Without a terminal: bytes to the next line end.
LineRead ReadPlain() {
  LineRead read;
  read.kind = LineRead::Kind::kLine;
  while (true) {
    errno = 0;
    const int c = std::fgetc(stdin);
    if (Terminated()) return {};
    if (c == '\n') return read;
    if (c != EOF) {
      read.text += static_cast<char>(c);
      continue;
    }
    if (errno == EINTR && Interrupted()) {
      std::clearerr(stdin);
      ClearInterrupt();
      return {LineRead::Kind::kCtrlC, {}};
    }
    return read.text.empty() ? LineRead{} : read;
  }
}

}  // namespace

struct LineEditor::State {
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event = {};
  std::string prompt;
};

LineEditor::LineEditor() {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) return;
  UseUtf8();
  auto state = std::make_unique<State>();
  // Answers go to stdout, which may be a file; the line is shown on stderr.
  state->editor = ::el_init("hearth", stdin, stderr, stderr);
  state->history = ::history_init();
  if (state->editor == nullptr || state->history == nullptr) {
    if (state->editor != nullptr) ::el_end(state->editor);
    if (state->history != nullptr) ::history_end(state->history);
    return;
  }
  EditLine* editor = state->editor;
  ::history(state->history, &state->event, H_SETSIZE, kHistoryMax);
  ::history(state->history, &state->event, H_SETUNIQUE, 1);
  ::el_set(editor, EL_CLIENTDATA, state.get());
  ::el_set(
      editor, EL_PROMPT, +[](EditLine* of) -> char* {
        State* own = nullptr;
        ::el_get(of, EL_CLIENTDATA, &own);
        return own->prompt.data();
      });
  ::el_set(editor, EL_HIST, ::history, state->history);
  ::el_set(editor, EL_EDITOR, "emacs");
  ::el_set(editor, EL_SIGNAL, 0);
  ::el_wset(editor, EL_GETCFN, ReadCharacter);
  ::el_wset(editor, EL_ADDFN, L"hearth-paste", L"Takes pasted text", TakePaste);
  ::el_set(editor, EL_BIND, "\033[200~", "hearth-paste", nullptr);
  ::el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  ::el_source(editor, nullptr);  // ~/.editrc, which may choose vi
  state_ = std::move(state);
}

LineEditor::~LineEditor() {
  if (state_ == nullptr) return;
  ::el_end(state_->editor);
  ::history_end(state_->history);
}

LineRead LineEditor::Read(const std::string& prompt) {
  if (state_ == nullptr) return ReadPlain();
  state_->prompt = prompt;
  ::el_resize(state_->editor);
  std::fputs(kPasteOn, stderr);
  // Before the prompt is shown, which libedit does later: a ctrl-D typed at
  // once would be the terminal's own then, and be lost.
  ::el_set(state_->editor, EL_PREP_TERM, 1);
  int n = 0;
  errno = 0;
  const char* line = ::el_gets(state_->editor, &n);
  std::fputs(kPasteOff, stderr);
  if (Terminated()) return {};
  if (line == nullptr || n <= 0) {
    std::fputc('\n', stderr);
    if (!Interrupted()) return {};
    ClearInterrupt();
    ::el_reset(state_->editor);
    return {LineRead::Kind::kCtrlC, {}};
  }
  std::string text(line, static_cast<std::size_t>(n));
  if (text.ends_with('\n')) text.pop_back();
  return {LineRead::Kind::kLine, std::move(text)};
}

void LineEditor::Remember(const std::string& text) {
  if (state_ == nullptr || text.empty()) return;
  ::history(state_->history, &state_->event, H_ENTER, text.c_str());
}

LineRead ReadMessage(LineEditor& editor, const std::string& prompt,
                     const std::string& more) {
  constexpr std::string_view kQuote = "\"\"\"";
  LineRead read = editor.Read(prompt);
  if (read.kind != LineRead::Kind::kLine) return read;
  std::string text = read.text;
  if (text.starts_with(kQuote)) {
    text.erase(0, kQuote.size());
    while (!text.ends_with(kQuote)) {
      read = editor.Read(more);
      if (read.kind == LineRead::Kind::kCtrlC) return read;
      // The input may end before the quote does.
      if (read.kind == LineRead::Kind::kEnd) break;
      text += "\n" + read.text;
    }
    if (text.ends_with(kQuote)) text.resize(text.size() - kQuote.size());
    if (text.starts_with('\n')) text.erase(0, 1);
    if (text.ends_with('\n')) text.pop_back();
  } else {
    while (text.ends_with('\\')) {
      text.back() = '\n';
      read = editor.Read(more);
      if (read.kind != LineRead::Kind::kLine) break;
      text += read.text;
    }
    if (read.kind == LineRead::Kind::kCtrlC) return read;
  }
  editor.Remember(text);
  return {LineRead::Kind::kLine, std::move(text)};
}

}  // namespace hearth::cli
