#include "cli/options/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/options/numbers.h"
#include "cli/terminal/units.h"

namespace hearth::cli {
namespace {

std::string ShortNumber(double value) {
  std::string text = Fixed(value, 6);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

const Option& Option::Required() const {
  option_->required();
  return *this;
}

const Option& Option::Excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

const Option& Option::Default(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

bool Option::given() const { return option_ != nullptr && *option_; }

std::string Option::name() const { return option_->get_name(); }

Command Command::Sub(const std::string& name, const std::string& help) const {
  return Command(*app_->add_subcommand(name, help));
}

void Command::NeedsSub(int at_least) const {
  app_->require_subcommand(at_least, 1);
}

bool Command::HasSub() const { return !app_->get_subcommands().empty(); }

void Command::Group(const std::string& title) { group_ = title; }

void Command::ShowOnly(const std::vector<std::string>& names,
                       const std::string& footer) const {
  for (CLI::Option* option : app_->get_options()) {
    const bool shown = std::any_of(
        names.begin(), names.end(),
        [option](const std::string& name) { return option->check_name(name); });
    if (!shown) option->group("");
  }
  app_->footer(footer);
}

void Command::Run(int& exit_code, std::function<int()> run) const {
  app_->callback([&exit_code, run = std::move(run)] { exit_code = run(); });
}

Option Command::Flag(const std::string& names, bool& target,
                     const std::string& help) {
  CLI::Option* option = app_->add_flag_callback(
      names, [&target] { target = true; }, help);
  if (!group_.empty()) option->group(group_);
  return Option(option);
}

Option Command::FlagOff(const std::string& names, bool& target,
                        const std::string& help) {
  CLI::Option* option = app_->add_flag_callback(
      names, [&target] { target = false; }, help);
  if (!group_.empty()) option->group(group_);
  return Option(option);
}

Option Command::Take(const std::string& names, TakeText take,
                     const std::string& help) {
  return TakeEach(
      names, /*repeats=*/false,
      [take = std::move(take)](std::span<const std::string> values) {
        return take(values.front());
      },
      help);
}

Option Command::TakeEach(const std::string& names, bool repeats, TakeTexts take,
                         const std::string& help) {
  const auto taken = [take = std::move(take),
                      names](const std::vector<std::string>& values) {
    const Result<void> done = take(values);
    if (done.ok()) return;
    throw CLI::ValidationError(names.substr(0, names.find(',')),
                               done.error().message);
  };
  CLI::Option* option =
      repeats
          ? app_->add_option_function<std::vector<std::string>>(names, taken,
                                                                help)
          : app_->add_option_function<std::string>(
                names, [taken](const std::string& value) { taken({value}); },
                help);
  if (repeats) option->allow_extra_args(false);
  option->type_name(names.starts_with('-') ? "X" : "");
  if (!group_.empty()) option->group(group_);
  return Option(option);
}

Option Command::Text(const std::string& names, std::string& target,
                     const std::string& help) {
  return Take(
      names,
      [&target](const std::string& text) -> Result<void> {
        target = text;
        return {};
      },
      help);
}

Option Command::Name(const std::string& names, std::string& target,
                     const std::string& help) {
  return Take(
      names,
      [&target](const std::string& text) -> Result<void> {
        if (text.empty()) return {Code::kInvalidArgument, "is empty"};
        target = text;
        return {};
      },
      help);
}

Option Command::Integer(const std::string& names, int& target, int low,
                        int high, const std::string& help) {
  return Take(
      names,
      [&target, low, high](const std::string& text) -> Result<void> {
        HEARTH_ASSIGN(const std::int64_t value, ParseInteger(text, low, high));
        target = static_cast<int>(value);
        return {};
      },
      help);
}

Option Command::Integers(const std::string& names, std::vector<int>& target,
                         int low, int high, const std::string& help) {
  return Take(
      names,
      [&target, low, high](const std::string& text) -> Result<void> {
        target.clear();
        for (std::size_t at = 0; at <= text.size();) {
          const std::size_t comma = std::min(text.find(',', at), text.size());
          HEARTH_ASSIGN(const std::int64_t value,
                        ParseInteger(text.substr(at, comma - at), low, high));
          target.push_back(static_cast<int>(value));
          at = comma + 1;
        }
        return {};
      },
      help);
}

Option Command::Number(const std::string& names, double& target, double low,
                       double high, const std::string& help) {
  const Option option = Take(
      names,
      [&target, low, high](const std::string& text) -> Result<void> {
        HEARTH_ASSIGN(target, ParseNumber(text, low, high));
        return {};
      },
      help);
  return option.Default(ShortNumber(target));
}

Option Command::Size(const std::string& names, std::uint64_t& target,
                     const std::string& help) {
  return Take(
      names,
      [&target](const std::string& text) -> Result<void> {
        HEARTH_ASSIGN(target, ParseSize(text));
        return {};
      },
      help);
}

Option Command::Seed(const std::string& names,
                     std::optional<std::uint64_t>& target,
                     const std::string& help) {
  return Take(
      names,
      [&target](const std::string& text) -> Result<void> {
        HEARTH_ASSIGN(target, ParseSeed(text));
        return {};
      },
      help);
}

}  // namespace hearth::cli
