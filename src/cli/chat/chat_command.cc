#include "cli/chat/chat_command.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <limits>
#include <vector>

#include "cli/options/numbers.h"
#include "cli/options/sampling_settings.h"
#include "cli/terminal/text.h"

namespace hearth::cli {
namespace {

struct Word {
  const char* word;
  ChatVerb verb;
};
constexpr Word kWords[] = {
    {"/help", ChatVerb::kHelp},        {"/?", ChatVerb::kHelp},
    {"/exit", ChatVerb::kExit},        {"/quit", ChatVerb::kExit},
    {"/bye", ChatVerb::kExit},         {"/clear", ChatVerb::kClear},
    {"/save", ChatVerb::kSave},        {"/load", ChatVerb::kLoad},
    {"/undo", ChatVerb::kUndo},        {"/retry", ChatVerb::kRetry},
    {"/regenerate", ChatVerb::kRetry}, {"/system", ChatVerb::kSystem},
    {"/set", ChatVerb::kSet},          {"/drop", ChatVerb::kDrop}};

std::string Trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin);
}

std::string Limit(int n_tokens) {
  return n_tokens < 0 ? "no limit" : std::to_string(n_tokens);
}

std::string AllSettings(const ChatSettings& s) {
  std::string text;
  for (const SamplingSetting& setting : SamplingSettings()) {
    text += setting.name + " " + setting.show(s.sampling) + ", ";
  }
  return text + "seed " + std::to_string(s.sampling.seed) + ", tokens " +
         Limit(s.n_tokens) + ", thinking " +
         (!s.thinking.has_value() ? "as the model's template has it"
          : *s.thinking           ? "on"
                                  : "off");
}

std::vector<std::string> SettingNames() {
  std::vector<std::string> names = {"seed", "tokens", "thinking"};
  for (const SamplingSetting& setting : SamplingSettings()) {
    names.push_back(setting.name);
  }
  return names;
}

}  // namespace

Result<ChatCommand> ParseChatCommand(const std::string& line) {
  const bool command =
      line.size() > 1 && line[0] == '/' &&
      (std::isalpha(static_cast<unsigned char>(line[1])) != 0 ||
       line[1] == '?');
  if (!command) return ChatCommand{};
  const auto blank = line.find_first_of(" \t\n");
  const std::string word = line.substr(0, blank);
  // A path at the beginning of a message, "/etc/fstab has ...".
  if (word.find('/', 1) != std::string::npos) return ChatCommand{};
  std::vector<std::string> known;
  for (const Word& one : kWords) {
    if (word == one.word) {
      return ChatCommand{one.verb, blank == std::string::npos
                                       ? ""
                                       : Trimmed(line.substr(blank))};
    }
    known.emplace_back(one.word);
  }
  return Error{Code::kInvalidArgument,
               "no command " + word + DidYouMean(word, known) +
                   "; /help lists them, and // begins a message with /"};
}

std::string MessageOf(const std::string& line) {
  return line.starts_with("//") ? line.substr(1) : line;
}

const char* ChatHelp() {
  return "/help            this list\n"
         "/exit            leave (or ctrl-D)\n"
         "/undo            take the last turn back\n"
         "/retry           answer the last message anew (or /regenerate)\n"
         "/clear           forget all turns\n"
         "/drop            forget the oldest turn\n"
         "/system TEXT     another system message; without TEXT none\n"
         "/set             show the settings; /set NAME VALUE changes one:\n"
         "                 what sample's options set (temperature, top-k, \n"
         "                 repeat-penalty, ...), seed, tokens, thinking "
         "on|off\n"
         "/save FILE       keep the conversation\n"
         "/load FILE       go on with one\n"
         "\"\"\"              begins and ends a message of several lines; a \\ "
         "at\n"
         "                 the end of a line goes on, too\n"
         "ctrl-C stops an answer.\n";
}

Result<std::string> SetChat(const std::string& assignment,
                            ChatSettings& settings) {
  const auto blank = assignment.find_first_of(" \t=");
  std::string name = assignment.substr(0, blank);
  const std::string value =
      blank == std::string::npos ? "" : Trimmed(assignment.substr(blank + 1));
  std::replace(name.begin(), name.end(), '_', '-');
  if (name.empty()) return AllSettings(settings);
  const auto with_name = [&](const Error& error) -> Error {
    return {error.code, name + " " + error.message};
  };
  constexpr int kMany = std::numeric_limits<int>::max();
  SamplingOptions& sampling = settings.sampling;
  if (const SamplingSetting* setting = FindSamplingSetting(name)) {
    const auto set = setting->set({&value, 1}, sampling);
    if (!set.ok()) return with_name(set.error());
  } else if (name == "tokens") {
    const auto parsed = ParseInteger(value, -1, kMany);
    if (!parsed.ok()) return with_name(parsed.error());
    settings.n_tokens = static_cast<int>(*parsed);
  } else if (name == "seed") {
    const auto parsed = ParseSeed(value);
    if (!parsed.ok()) return with_name(parsed.error());
    if (!parsed->has_value()) {
      return Error{
          Code::kInvalidArgument,
          "seed: give a number from 0; each run begins with a new one"};
    }
    sampling.seed = **parsed;
  } else if (name == "thinking") {
    if (value != "on" && value != "off") {
      return Error{Code::kInvalidArgument, "thinking is on or off"};
    }
    settings.thinking = value == "on";
  } else {
    return Error{Code::kInvalidArgument, "no setting " + name +
                                             DidYouMean(name, SettingNames()) +
                                             "; /set lists them"};
  }
  return AllSettings(settings);
}

}  // namespace hearth::cli
