// The commands that a user types into a conversation, apart from what they do.
#pragma once

#include <optional>
#include <string>

#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth::cli {

enum class ChatVerb : std::uint8_t {
  kNone,  // a message
  kHelp,
  kExit,
  kClear,
  kSave,
  kLoad,
  kUndo,
  kRetry,
  kSystem,
  kSet,
  kDrop,
};

struct ChatCommand {
  ChatVerb verb = ChatVerb::kNone;
  std::string rest;  // what follows the word, without blanks around
};

// Reads one line. A line that begins with "/" and a letter is a command; what
// is none is kInvalidArgument with the nearest one. "//" begins a message with
// "/".
Result<ChatCommand> ParseChatCommand(const std::string& line);

// The message of a line that is no command.
std::string MessageOf(const std::string& line);

const char* ChatHelp();

// What /set changes.
struct ChatSettings {
  SamplingOptions sampling;
  int n_tokens = -1;             // of an answer at most; -1: no limit
  std::optional<bool> thinking;  // nothing: as the template has it
};

// "temperature 0.5", "top-k 40", "thinking off", ...: one setting and its
// value. Gives what was set, for people; without a value all of them.
// kInvalidArgument.
Result<std::string> SetChat(const std::string& assignment,
                            ChatSettings& settings);

}  // namespace hearth::cli
