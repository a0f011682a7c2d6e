#include "output/reader/tag_value.h"

#include <array>
#include <utility>

#include "output/description/program.h"
#include "output/reader/json_scanner.h"

namespace hearth::output {
namespace {

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// Appends a Python string that begins at `text[at]` and moves behind it.
bool TakePythonString(std::string_view text, std::size_t& at,
                      std::string& out) {
  const char quote = text[at++];
  out += '"';
  for (; at < text.size() && text[at] != quote; ++at) {
    char c = text[at];
    if (c == '\\') {
      if (++at >= text.size()) return false;
      c = text[at];
      if (c == '\'') {
        out += '\'';
      } else if (c == 'x') {
        out += "\\u00";
      } else {
        out += '\\';
        out += c;
      }
      continue;
    }
    out += JsonStringPart({&c, 1});
  }
  if (at >= text.size()) return false;
  ++at;
  out += '"';
  return true;
}

}  // namespace

bool IsJson(std::string_view text) {
  JsonScanner scanner;
  for (const char c : text) {
    if (!scanner.Push(c)) return false;
  }
  return scanner.done_if_over();
}

std::optional<std::string> JsonOfPython(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5>
      kWords = {{{"True", "true"},
                 {"False", "false"},
                 {"None", "null"},
                 {"(", "["},
                 {")", "]"}}};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\'' || text[at] == '"') {
      if (!TakePythonString(text, at, out)) return std::nullopt;
      continue;
    }
    bool found = false;
    for (const auto& [python, json] : kWords) {
      if (!text.substr(at).starts_with(python)) continue;
      out += json;
      at += python.size();
      found = true;
      break;
    }
    if (!found) out += text[at++];
  }
  if (!IsJson(out)) return std::nullopt;
  return out;
}

std::string JsonOfValue(std::string_view text) {
  const std::string_view inner = Trimmed(text);
  if (IsJson(inner)) return std::string(inner);
  if (auto python = JsonOfPython(inner)) return *python;
  return "\"" + JsonStringPart(text) + "\"";
}

}  // namespace hearth::output
