// A command and its options. The parser (CLI11) takes ten seconds to compile in
// each file that sees it, so options.cc and main.cc alone do.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hearth/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hearth::cli {

// One option or positional argument of a command; a handle.
class Option {
 public:
  Option() = default;
  explicit Option(CLI::Option* option) : option_(option) {}

  const Option& Required() const;
  const Option& Excludes(const Option& other) const;
  // What help shows as the value without it.
  const Option& Default(const std::string& text) const;

  bool given() const;        // REQUIRES: the command line is parsed
  std::string name() const;  // "--context"

 private:
  CLI::Option* option_ = nullptr;
};

// Takes a value's text; its refusal (kInvalidArgument) ends the parse with the
// option's name before it.
using TakeText = std::function<Result<void>(const std::string&)>;
// The same for the values of all times that the option is given.
using TakeTexts = std::function<Result<void>(std::span<const std::string>)>;

// `names`: "--context,-c"; without dashes a positional argument. Values are
// read whole and within their limits, or refused. Targets must outlive the
// command, so Run's callback usually owns them.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  Command Sub(const std::string& name, const std::string& help) const;
  void NeedsSub(int at_least) const;
  bool HasSub() const;  // REQUIRES: the command line is parsed
  // `title` for the options that follow, in help.
  void Group(const std::string& title);
  // `run` gives the exit code.
  // Help shows these options alone, then `footer`; the others work as well.
  void ShowOnly(const std::vector<std::string>& names,
                const std::string& footer) const;
  void Run(int& exit_code, std::function<int()> run) const;

  Option Flag(const std::string& names, bool& target, const std::string& help);
  // Clears `target` instead.
  Option FlagOff(const std::string& names, bool& target,
                 const std::string& help);
  Option Take(const std::string& names, TakeText take, const std::string& help);
  // `repeats`: it may be given several times, with one value each.
  Option TakeEach(const std::string& names, bool repeats, TakeTexts take,
                  const std::string& help);
  Option Text(const std::string& names, std::string& target,
              const std::string& help);
  // A text that may not be empty.
  Option Name(const std::string& names, std::string& target,
              const std::string& help);
  Option Integer(const std::string& names, int& target, int low, int high,
                 const std::string& help);
  // Separated by commas.
  Option Integers(const std::string& names, std::vector<int>& target, int low,
                  int high, const std::string& help);
  Option Number(const std::string& names, double& target, double low,
                double high, const std::string& help);
  Option Size(const std::string& names, std::uint64_t& target,
              const std::string& help);
  Option Seed(const std::string& names, std::optional<std::uint64_t>& target,
              const std::string& help);

 private:
  CLI::App* app_;
  std::string group_;
};

}  // namespace hearth::cli
