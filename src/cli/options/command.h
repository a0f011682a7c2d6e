// The commands of the program and what all of them share.
#pragma once

#include <string>

#include "cli/options/options.h"
#include "cli/terminal/text.h"
#include "hearth/result.h"

namespace hearth::cli {

// HEARTH_NOW, the clock that chat templates see; empty: the real one.
std::string ClockFromEnvironment();

// Milliseconds since the program started.
double SinceStartMs();

// "hearth 0.1.0 (...)": with the commit, the compiler and this machine's CPU.
std::string VersionText();

// Each adds its command to the program; the callback leaves its exit code in
// `exit_code`.
void AddSample(const Command& program, int& exit_code);
void AddInspect(const Command& program, int& exit_code);
void AddLogits(const Command& program, int& exit_code);
void AddPerplexity(const Command& program, int& exit_code);
void AddImatrix(const Command& program, int& exit_code);
void AddTokenize(const Command& program, int& exit_code);
void AddDetokenize(const Command& program, int& exit_code);
void AddTemplate(const Command& program, int& exit_code);
void AddChat(const Command& program, int& exit_code);
void AddCache(const Command& program, int& exit_code);
void AddConvert(const Command& program, int& exit_code);
void AddQuantize(const Command& program, int& exit_code);
void AddInit(const Command& program, int& exit_code);
void AddServe(const Command& program, int& exit_code);
void AddBench(const Command& program, int& exit_code);

}  // namespace hearth::cli
