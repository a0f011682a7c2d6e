#include "cli/terminal/input.h"

#include "base/file.h"
#include "base/json.h"
#include "cli/terminal/text.h"

namespace hearth::cli {

Result<std::string> ReadInput(const std::string& path) {
  return ReadTextFile(path == "-" ? "/dev/stdin" : path);
}

Result<std::string> ReadPrompt(const std::string& path) {
  HEARTH_ASSIGN(std::string text, ReadInput(path));
  const std::string name = path == "-" ? "standard input" : path;
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return Error{Code::kInvalidArgument,
                 name +
                     ": is UTF-16 text; save it as UTF-8 (iconv -f UTF-16 "
                     "-t UTF-8)"};
  }
  const std::size_t bad = FirstInvalidUtf8(text);
  if (bad < text.size()) {
    return Error{Code::kInvalidArgument,
                 name + ": is no UTF-8 text: byte " + std::to_string(bad) +
                     " belongs to no character; save it as UTF-8 (iconv -f "
                     "LATIN1 -t UTF-8, if it is that)"};
  }
  return text;
}

Result<std::vector<std::int32_t>> ParseIds(const std::string& text,
                                           const std::string& what) {
  HEARTH_ASSIGN(const Json json, ParseJson(text, what));
  const Json* array = &json;
  for (const char* key : {"input_ids", "ids"}) {
    if (const Json* member = JsonFind(json, key); member != nullptr) {
      array = member;
    }
  }
  if (!array->is_array()) {
    return {Code::kInvalidArgument, what + ": not a JSON array of token ids"};
  }
  std::vector<std::int32_t> ids;
  for (const Json& item : *array) {
    if (!item.is_number_integer() || item < 0 || item > INT32_MAX) {
      return {Code::kInvalidArgument,
              what + ": token ids are integers from 0; found " + item.dump()};
    }
    ids.push_back(item.get<std::int32_t>());
  }
  return ids;
}

}  // namespace hearth::cli
