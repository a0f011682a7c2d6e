// What the parts of `hearth bench` share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/options/command.h"
#include "cli/terminal/table.h"
#include "hearth/options.h"

namespace hearth::cli {

using OrderedJson = nlohmann::ordered_json;

// The middle value, or the mean of the two middle ones; 0 for none.
double Median(std::vector<double> values);

// {"median": ..., "all": [...]}
OrderedJson Spread(const std::vector<double>& values);

// "median (lowest - highest)", each with `decimals`.
std::string SpreadText(const std::vector<double>& values, int decimals);

// `key` of /proc/self/status ("VmHWM", "RssAnon", ...) in bytes; 0: not there.
std::uint64_t StatusBytes(const std::string& key);

// The options that every measurement of a model has.
struct BenchArgs {
  EngineOptions engine;
  std::string kv = "fp16";
  bool json = false;
  bool quiet = false;

  void Add(Command& command);
  // Reads `kv`. kInvalidArgument.
  Result<void> Finalize();
  // The same as command-line words, for a child process.
  std::vector<std::string> Words() const;
};

// bench --batch-sequences: tokens a second summed over so many conversations.
struct BatchBenchArgs {
  BenchArgs base;
  std::vector<int> sequences;
  std::vector<int> depths = {0, 4096};  // tokens that each one has before
  int n_decode = 0;
  int repetitions = 0;
};
int BenchBatch(const BatchBenchArgs& args);

// Fixed pseudo-random ids below `n_vocab`.
std::vector<std::int32_t> RandomTokens(int n, int n_vocab);

void PrintJson(const OrderedJson& json);

// Each adds its subcommand of `bench`.
void AddBenchWarmStart(const Command& bench, int& exit_code);
void AddBenchMemory(const Command& bench, int& exit_code);
void AddBenchStore(const Command& bench, int& exit_code);

// What a child process printed, and when.
struct ChildRun {
  double first_line_ms = 0;  // from just before the start to the first newline
  double total_ms = 0;       // to its end
  std::uint64_t peak_rss_bytes = 0;
  std::string last_line;  // of its standard output, without the newline
};

// Runs this program again with `arguments`. kIo: it could not be started or
// failed; what it said is on stderr.
Result<ChildRun> RunSelf(const std::vector<std::string>& arguments);

// Puts what is in the page cache of a file, or of all files below a directory,
// back on the disk's side. kIo names the file.
Result<void> DropFromPageCache(const std::string& path);

}  // namespace hearth::cli
