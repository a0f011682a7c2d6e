#include "formats/huggingface/python_json.h"

#include <limits>
#include <optional>
#include <utility>

namespace hearth {
namespace {

// Each word stands in the text as a string that begins with a NUL character,
// which no other string of a configuration does.
constexpr struct {
  std::string_view word, in_text, as_value;
  double number;
} kWords[] = {
    {"NaN", "\"\\u0000NaN\"", std::string_view("\0NaN", 4),
     std::numeric_limits<double>::quiet_NaN()},
    {"-Infinity", "\"\\u0000-Infinity\"", std::string_view("\0-Infinity", 10),
     -std::numeric_limits<double>::infinity()},
    {"Infinity", "\"\\u0000Infinity\"", std::string_view("\0Infinity", 9),
     std::numeric_limits<double>::infinity()},
};

std::string WithStringsForWords(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      out += text.substr(i, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    bool replaced = false;
    for (const auto& w : kWords) {
      if (in_string || !text.substr(i).starts_with(w.word)) continue;
      out += w.in_text;
      i += w.word.size();
      replaced = true;
      break;
    }
    if (!replaced) out += text[i++];
  }
  return out;
}

// REQUIRES: nests as deep as ParseJson lets through.
void NumbersForStrings(Json& json) {
  if (json.is_structured()) {
    for (Json& item : json) NumbersForStrings(item);
  } else if (json.is_string()) {
    const std::string& text = json.get_ref<const std::string&>();
    for (const auto& w : kWords) {
      if (text != w.as_value) continue;
      json = w.number;
      return;
    }
  }
}

}  // namespace

Result<Json> ParsePythonJson(std::string_view text, const std::string& what) {
  Result<Json> strict = ParseJson(text, what);
  if (strict.ok() || (text.find("NaN") == std::string_view::npos &&
                      text.find("Infinity") == std::string_view::npos)) {
    return strict;
  }
  HEARTH_ASSIGN(Json json, ParseJson(WithStringsForWords(text), what));
  NumbersForStrings(json);
  return json;
}

}  // namespace hearth
