#include "cli/terminal/text.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"

namespace hearth::cli {
namespace {

int lost_errno = 0;  // of the first write to standard output that failed

void NoteLoss() {
  if (lost_errno == 0) lost_errno = errno != 0 ? errno : EIO;
}

// The bytes of the character that starts at `at`, 0: not valid UTF-8; `value`
// is its code point.
std::size_t CharacterAt(std::string_view text, std::size_t at,
                        char32_t& value) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[at + i]);
  };
  const unsigned char first = byte(0);
  const std::size_t n = first < 0x80                     ? 1
                        : first >= 0xc2 && first < 0xe0  ? 2
                        : first >= 0xe0 && first < 0xf0  ? 3
                        : first >= 0xf0 && first <= 0xf4 ? 4
                                                         : 0;
  if (n == 0 || at + n > text.size()) return 0;
  value = n == 1 ? first : first & (0x7f >> n);
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    value = (value << 6) | (byte(i) & 0x3f);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = value >= kSmallest[n] && value <= 0x10ffff &&
                     (value < 0xd800 || value > 0xdfff);
  return valid ? n : 0;
}

bool SteersTerminal(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string Escape(std::string_view text, bool keep_lines) {
  std::string out;
  char spelled[16];
  for (std::size_t at = 0; at < text.size();) {
    char32_t c = 0;
    const std::size_t n = CharacterAt(text, at, c);
    if (n == 0) {
      std::snprintf(spelled, sizeof(spelled), "\\x%02x",
                    static_cast<unsigned char>(text[at]));
      out += spelled;
      ++at;
      continue;
    }
    if (!SteersTerminal(c) || (keep_lines && (c == '\n' || c == '\t'))) {
      out += text.substr(at, n);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      std::snprintf(spelled, sizeof(spelled), c < 0x80 ? "\\x%02x" : "\\u%04x",
                    static_cast<unsigned>(c));
      out += spelled;
    }
    at += n;
  }
  return out;
}

// Insertions, deletions, changes and swaps of neighbours from `a` to `b`.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(
      a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

void HoldStandardStreams() {
  // Opened in the direction that nobody uses, so that a use is an error.
  while (true) {
    const int fd = ::open("/dev/null", O_WRONLY);
    if (fd != STDIN_FILENO && fd != STDOUT_FILENO && fd != STDERR_FILENO) {
      if (fd > STDERR_FILENO) ::close(fd);
      return;
    }
    if (fd != STDOUT_FILENO) continue;
    ::close(fd);
    if (::open("/dev/null", O_RDONLY) != STDOUT_FILENO) return;
  }
}

void Print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    NoteLoss();
  }
}

bool PrintNow(std::string_view text) {
  Print(text);
  errno = 0;
  if (std::fflush(stdout) != 0) NoteLoss();
  return lost_errno == 0;
}

int FinishOutput(int code) {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) NoteLoss();
  // Network file systems tell of a full disk when a file is closed.
  const int fd = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (fd >= 0 && ::close(fd) != 0) NoteLoss();
  if (lost_errno == 0) return code;
  std::fprintf(stderr, "hearth: standard output: %s\n",
               ErrnoText(lost_errno).c_str());
  return code == kOk ? kFailed : code;
}

int Fail(const Error& error) {
  std::fprintf(stderr, "hearth: %s\n", Escaped(error.message).c_str());
  return error.code == Code::kInvalidArgument ? kUsage : kFailed;
}

void Note(const std::string& text) {
  std::fprintf(stderr, "hearth: %s\n", Escaped(text).c_str());
}

std::string Escaped(std::string_view text) { return Escape(text, false); }

std::string EscapedLines(std::string_view text) { return Escape(text, true); }

std::string Nearest(std::string_view word,
                    const std::vector<std::string>& known) {
  std::string best;
  // Half of a word may be wrong, three letters at most.
  std::size_t best_distance = std::min<std::size_t>(3, word.size() / 2) + 1;
  for (const std::string& one : known) {
    // A beginning that names one thing is as good as a typing error.
    const bool begins = word.size() >= 3 && one.starts_with(word);
    const std::size_t distance = begins ? 1 : Distance(word, one);
    if (distance < best_distance) {
      best_distance = distance;
      best = one;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view word,
                       const std::vector<std::string>& known) {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

std::size_t FirstInvalidUtf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    char32_t c = 0;
    const std::size_t n = CharacterAt(text, at, c);
    if (n == 0) break;
    at += n;
  }
  return at;
}

void PrintStatus(const std::string& text) { std::fputs(text.c_str(), stderr); }

int TerminalColumns() {
  struct winsize size = {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  return 80;
}

}  // namespace hearth::cli
