// What every subcommand shares: exit codes, error printing and registration.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "hearth/result.h"

namespace hearth::cli {

// Exit codes of the program.
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kInterrupted = 130;  // as a shell reports ctrl-C

// Prints "hearth: <message>" to stderr; gives the exit code for the error.
int Fail(const Error& error);
// One line of status or warning on stderr.
void Note(const std::string& text);

// HEARTH_NOW, the clock that chat templates see; empty: the real one.
std::string ClockFromEnvironment();

// Milliseconds since the program started.
double SinceStartMs();

// Each adds its subcommand; the callback leaves its exit code in `exit_code`.
void AddSample(CLI::App& app, int& exit_code);
void AddInspect(CLI::App& app, int& exit_code);
void AddLogits(CLI::App& app, int& exit_code);
void AddTokenize(CLI::App& app, int& exit_code);
void AddDetokenize(CLI::App& app, int& exit_code);
void AddTemplate(CLI::App& app, int& exit_code);
void AddChat(CLI::App& app, int& exit_code);
void AddCache(CLI::App& app, int& exit_code);
void AddConvert(CLI::App& app, int& exit_code);
void AddQuantize(CLI::App& app, int& exit_code);
void AddInit(CLI::App& app, int& exit_code);
void AddBench(CLI::App& app, int& exit_code);

}  // namespace hearth::cli
