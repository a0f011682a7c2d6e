// What the program prints: standard output that is checked, messages on
// standard error, and foreign text that cannot steer a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"

namespace hearth::cli {

// Exit codes of the program.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kInterrupted = 130;  // as a shell reports ctrl-C

// Keeps the places of closed standard streams from being taken by files that
// are opened later: what is printed would go into them. Call first.
void HoldStandardStreams();

// To standard output. A failure is remembered, for FinishOutput.
void Print(std::string_view text);
// The same, at once. False: standard output takes no more.
bool PrintNow(std::string_view text);
// Flushes standard output. kFailed, said on stderr, when any of it was lost;
// else `code`.
int FinishOutput(int code);

// Prints "hearth: <message>" to stderr; gives the exit code for the error.
int Fail(const Error& error);
// One line of status or warning on stderr.
void Note(const std::string& text);

// `text` on one line: control characters, line ends and bytes that are no UTF-8
// are spelled out (\n, \x1b, \u009b), so that a name from a file or a server
// cannot steer the terminal. Marks that turn the direction of writing too.
std::string Escaped(std::string_view text);
// The same, but line ends and tabs stay: for text of many lines.
std::string EscapedLines(std::string_view text);

// The one of `known` that is spelled most like `word`; empty when none is near.
std::string Nearest(std::string_view word,
                    const std::vector<std::string>& known);
// "; did you mean X?", or nothing.
std::string DidYouMean(std::string_view word,
                       const std::vector<std::string>& known);

// Where the first byte is that belongs to no UTF-8 character; the size when all
// do.
std::size_t FirstInvalidUtf8(std::string_view text);

// Status text of several lines, which its maker has escaped, to stderr.
void PrintStatus(const std::string& text);

// Columns of the terminal on stderr; 80 when it is none.
int TerminalColumns();

}  // namespace hearth::cli
