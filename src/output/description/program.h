// How a family of models writes its answers, as a machine of parts: what may
// follow what. It is made from a description (description.h), read by a Walker
// (reader/walker.h) and turned into masks (mask/answer_grammar.h).
//
// A part is fixed (a literal, a special token) or open (text, a name, JSON):
// open ones last until a fixed one that may follow them comes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton/token_trie.h"

namespace hearth::output {

enum class PartKind : std::uint8_t {
  kStart,   // before the first part; only at the two starts
  kFixed,   // these bytes
  kText,    // any text, maybe none
  kName,    // of a tool
  kKey,     // of one argument, written as a tag
  kValue,   // of that argument
  kJson,    // JSON of a shape
  kDigits,  // a call's number
  kId       // a call's id: letters and digits
};

enum class TextRole : std::uint8_t { kDropped, kReasoning, kContent };
enum class ValueForm : std::uint8_t {
  kBySchema,  // text where the schema says string, JSON elsewhere
  kString,
  kJson
};
enum class ShapeKind : std::uint8_t {
  kArguments,  // the object of arguments
  kCall,       // an object that holds a name and arguments
  kCalls,      // a list of those
  kNamedCalls  // a list of objects {NAME: arguments}
};

struct Shape {
  ShapeKind kind = ShapeKind::kArguments;
  std::string name_key = {}, arguments_key = {};
  std::string id_key = {};  // a string that is written behind; empty: none
};

struct Part {
  PartKind kind = PartKind::kStart;
  std::string fixed = {};  // kFixed: its bytes, or its code when it is a token
  bool special = false;    // kFixed: <<"...">>, a token where there is one
  TextRole role = TextRole::kDropped;
  ValueForm form = ValueForm::kBySchema;
  bool lines = false;  // kValue: between two line ends
  Shape shape = {};
  bool blanks_before = false;  // white space may stand before it
  bool in_calls = false;       // belongs to the part of an answer with calls
  bool in_call = false;        // belongs to one call
  bool begins_call = false;
  bool ends_call = false;
};

// Part 0 is the start of an answer, part 1 that of one which begins inside its
// reasoning.
inline constexpr int kAnswerStart = 0, kThoughtStart = 1;

// A fixed part that the vocabulary has as one token. In the bytes that a
// Walker reads and masks are made of, it is kTokenByte and its number from 1,
// which no text holds: 0xFF is never a byte of UTF-8.
struct TokenMarker {
  std::int32_t id;
  std::string spelling;
};
using grammar::kTokenByte;

struct Program {
  std::string family;
  // Around reasoning; empty where a family has none.
  std::string thought_begin, thought_end;
  std::vector<Part> parts;
  std::vector<std::vector<int>> follow;  // [parts]: what may come next
  std::vector<bool> last;                // [parts]: an answer may end here
  std::vector<TokenMarker> markers;

  const Part& at(int part) const {
    return parts[static_cast<std::size_t>(part)];
  }
  const std::vector<int>& After(int part) const {
    return follow[static_cast<std::size_t>(part)];
  }
  bool MayEnd(int part) const { return last[static_cast<std::size_t>(part)]; }
  // The code of markers[i].
  static std::string CodeOf(std::size_t i) {
    return {kTokenByte, static_cast<char>(i + 1)};
  }
  // Bytes with codes as text that shows the markers' spelling.
  std::string Spelled(std::string_view bytes) const;
};

// The token that stands for exactly this spelling, if there is one.
using FindToken =
    std::function<std::optional<std::int32_t>(std::string_view spelling)>;

// The program with its special tokens coded.
Program WithTokens(Program program, const FindToken& find_token);

bool IsBlank(char c);

}  // namespace hearth::output
