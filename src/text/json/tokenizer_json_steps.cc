#include "text/json/tokenizer_json_steps.h"

#include <functional>
#include <utility>

#include "text/unicode/utf8.h"

namespace hearth {
namespace {

using Steps = std::vector<Step>;

Error Unknown(const std::string& what, const std::string& type) {
  return {Code::kUnsupported, what + ": type " + type + " is not supported"};
}

Error Bad(const std::string& what, const std::string& fault) {
  return {Code::kCorrupt, what + ": " + fault};
}

// {"String": "..."} or {"Regex": "..."}; some writers give the bare string.
struct Pattern {
  std::string text;
  bool regex = false;
};
Result<Pattern> ReadPattern(const Json& object, const std::string& what) {
  const Json* pattern = JsonFind(object, "pattern");
  if (pattern == nullptr) return Bad(what, "member \"pattern\" is missing");
  if (pattern->is_string()) return Pattern{pattern->get<std::string>(), false};
  if (JsonFind(*pattern, "Regex") != nullptr) {
    HEARTH_ASSIGN(std::string text, JsonText(*pattern, "Regex", what));
    return Pattern{std::move(text), true};
  }
  HEARTH_ASSIGN(std::string text, JsonText(*pattern, "String", what));
  return Pattern{std::move(text), false};
}

Result<std::uint8_t> ReadBehavior(const Json& object, const std::string& what,
                                  const char* fallback) {
  HEARTH_ASSIGN(const std::string name,
                JsonText(object, "behavior", what, std::string(fallback)));
  constexpr std::pair<const char*, SplitBehavior> kNames[] = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  for (const auto& [known, behavior] : kNames) {
    if (name == known) return static_cast<std::uint8_t>(behavior);
  }
  return Error{Code::kUnsupported, what + ": behavior " + name};
}

Result<std::uint8_t> ReadScheme(const Json& object, const std::string& what) {
  HEARTH_ASSIGN(const bool add,
                JsonBool(object, "add_prefix_space", what, true));
  HEARTH_ASSIGN(const std::string name,
                JsonText(object, "prepend_scheme", what,
                         std::string(add ? "always" : "never")));
  if (name == "always")
    return static_cast<std::uint8_t>(PrependScheme::kAlways);
  if (name == "first") return static_cast<std::uint8_t>(PrependScheme::kFirst);
  if (name == "never") return static_cast<std::uint8_t>(PrependScheme::kNever);
  return Error{Code::kUnsupported, what + ": prepend_scheme " + name};
}

Result<Step> ReadReplace(const Json& value, const std::string& what) {
  HEARTH_ASSIGN(Pattern pattern, ReadPattern(value, what));
  HEARTH_ASSIGN(std::string content, JsonText(value, "content", what));
  if (pattern.text.empty()) return Bad(what, "an empty pattern");
  return Step{pattern.regex ? StepKind::kReplaceRegex : StepKind::kReplaceText,
              0, 0, std::move(pattern.text), std::move(content)};
}

Result<std::string> ReadReplacement(const Json& value,
                                    const std::string& what) {
  HEARTH_ASSIGN(std::string text, JsonText(value, "replacement", what,
                                           std::string("\xE2\x96\x81")));
  if (text.empty() || Utf8Length(text[0]) != text.size()) {
    return Bad(what, "\"replacement\" is not one character");
  }
  return text;
}

// Runs `read` on every element of a Sequence, or on the value itself.
using ReadOne = std::function<Result<void>(const Json&, const std::string& type,
                                           const std::string& what, Steps&)>;
Result<void> ReadAll(const Json& value, const char* list_name,
                     const std::string& what, const ReadOne& read,
                     Steps& steps) {
  if (value.is_null()) return {};
  HEARTH_ASSIGN(const std::string type, JsonText(value, "type", what));
  if (type != "Sequence") return read(value, type, what + "." + type, steps);
  const Json* list = JsonFind(value, list_name);
  if (list == nullptr || !list->is_array()) {
    return Bad(what, std::string("member \"") + list_name + "\" is not a list");
  }
  for (const Json& element : *list) {
    HEARTH_TRY(ReadAll(element, list_name, what, read, steps));
  }
  return {};
}

Result<void> ReadOneNormalizer(const Json& value, const std::string& type,
                               const std::string& what, Steps& steps) {
  constexpr std::pair<const char*, StepKind> kPlain[] = {
      {"NFC", StepKind::kNfc},
      {"NFD", StepKind::kNfd},
      {"NFKC", StepKind::kNfkc},
      {"NFKD", StepKind::kNfkd},
      {"Lowercase", StepKind::kLowercase},
      {"StripAccents", StepKind::kStripMarks},
      {"ByteLevel", StepKind::kSpellBytes}};
  for (const auto& [name, kind] : kPlain) {
    if (type == name) {
      steps.push_back({kind, 0, 0, {}, {}});
      return {};
    }
  }
  if (type == "Prepend") {
    HEARTH_ASSIGN(std::string text, JsonText(value, "prepend", what));
    steps.push_back({StepKind::kPrepend, 0, 0, std::move(text), {}});
    return {};
  }
  if (type == "Replace") {
    HEARTH_ASSIGN(Step step, ReadReplace(value, what));
    steps.push_back(std::move(step));
    return {};
  }
  if (type == "Strip") {
    HEARTH_ASSIGN(const bool left, JsonBool(value, "strip_left", what, true));
    HEARTH_ASSIGN(const bool right, JsonBool(value, "strip_right", what, true));
    steps.push_back({StepKind::kStripSpace, left, right, {}, {}});
    return {};
  }
  return Unknown(what, type);
}

Result<void> ReadOnePreTokenizer(const Json& value, const std::string& type,
                                 const std::string& what, Steps& steps) {
  if (type == "ByteLevel") {
    HEARTH_ASSIGN(const bool space,
                  JsonBool(value, "add_prefix_space", what, true));
    HEARTH_ASSIGN(const bool regex, JsonBool(value, "use_regex", what, true));
    steps.push_back({StepKind::kByteLevel, space, regex, {}, {}});
  } else if (type == "Split") {
    HEARTH_ASSIGN(Pattern pattern, ReadPattern(value, what));
    HEARTH_ASSIGN(const std::uint8_t behavior,
                  ReadBehavior(value, what, "Isolated"));
    HEARTH_ASSIGN(const bool invert, JsonBool(value, "invert", what, false));
    steps.push_back(
        {pattern.regex ? StepKind::kSplitRegex : StepKind::kSplitText,
         behavior,
         invert,
         std::move(pattern.text),
         {}});
  } else if (type == "CharDelimiterSplit") {
    HEARTH_ASSIGN(std::string text, JsonText(value, "delimiter", what));
    steps.push_back({StepKind::kSplitText,
                     static_cast<std::uint8_t>(SplitBehavior::kRemoved),
                     0,
                     std::move(text),
                     {}});
  } else if (type == "Digits") {
    HEARTH_ASSIGN(const bool each,
                  JsonBool(value, "individual_digits", what, false));
    steps.push_back({StepKind::kDigits, each, 0, {}, {}});
  } else if (type == "Punctuation") {
    HEARTH_ASSIGN(const std::uint8_t behavior,
                  ReadBehavior(value, what, "Isolated"));
    steps.push_back({StepKind::kPunctuation, behavior, 0, {}, {}});
  } else if (type == "Metaspace") {
    HEARTH_ASSIGN(std::string text, ReadReplacement(value, what));
    HEARTH_ASSIGN(const std::uint8_t scheme, ReadScheme(value, what));
    HEARTH_ASSIGN(const bool split, JsonBool(value, "split", what, true));
    steps.push_back({StepKind::kMetaspace, scheme, split, std::move(text), {}});
  } else if (type == "Whitespace") {
    steps.push_back({StepKind::kWhitespace, 0, 0, {}, {}});
  } else if (type == "WhitespaceSplit") {
    steps.push_back({StepKind::kWhitespaceSplit, 0, 0, {}, {}});
  } else if (type == "BertPreTokenizer") {
    steps.push_back({StepKind::kBertSplit, 0, 0, {}, {}});
  } else {
    return Unknown(what, type);
  }
  return {};
}

Result<void> ReadOneDecoder(const Json& value, const std::string& type,
                            const std::string& what, Steps& steps) {
  if (type == "ByteLevel") {
    steps.push_back({StepKind::kDecodeByteLevel, 0, 0, {}, {}});
  } else if (type == "ByteFallback") {
    steps.push_back({StepKind::kDecodeByteFallback, 0, 0, {}, {}});
  } else if (type == "Fuse") {
    steps.push_back({StepKind::kDecodeFuse, 0, 0, {}, {}});
  } else if (type == "Replace") {
    HEARTH_ASSIGN(Step step, ReadReplace(value, what));
    steps.push_back(std::move(step));
  } else if (type == "Strip") {
    HEARTH_ASSIGN(std::string text, JsonText(value, "content", what));
    HEARTH_ASSIGN(const std::int64_t start, JsonInt(value, "start", what, 0));
    HEARTH_ASSIGN(const std::int64_t stop, JsonInt(value, "stop", what, 0));
    if (text.empty() || start < 0 || start > 255 || stop < 0 || stop > 255) {
      return Bad(what, "content is empty, or start or stop is not 0..255");
    }
    steps.push_back({StepKind::kDecodeStrip,
                     static_cast<std::uint8_t>(start),
                     static_cast<std::uint8_t>(stop),
                     std::move(text),
                     {}});
  } else if (type == "Metaspace") {
    HEARTH_ASSIGN(std::string text, ReadReplacement(value, what));
    HEARTH_ASSIGN(const std::uint8_t scheme, ReadScheme(value, what));
    steps.push_back(
        {StepKind::kDecodeMetaspace, scheme, 0, std::move(text), {}});
  } else {
    return Unknown(what, type);
  }
  return {};
}

Result<std::int32_t> AsId(const Json& value, const std::string& what) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 ||
      value.get<std::int64_t>() > INT32_MAX) {
    return Bad(what, "a token id is not a number of 0..2147483647");
  }
  return value.get<std::int32_t>();
}

// The ids of special_tokens[name].
Result<void> AppendSpecial(const Json& processor, const std::string& name,
                           const std::string& what,
                           std::vector<std::int32_t>& out) {
  const Json* table = JsonFind(processor, "special_tokens");
  const Json* entry =
      table == nullptr ? nullptr : JsonFind(*table, name.c_str());
  const Json* ids = entry == nullptr ? nullptr : JsonFind(*entry, "ids");
  if (ids == nullptr || !ids->is_array()) {
    return Bad(what, "special_tokens has no ids for " + name);
  }
  for (const Json& id : *ids) {
    HEARTH_ASSIGN(const std::int32_t value, AsId(id, what));
    out.push_back(value);
  }
  return {};
}

Result<SurroundingIds> ReadTemplate(const Json& value,
                                    const std::string& what) {
  const Json* single = JsonFind(value, "single");
  if (single == nullptr || !single->is_array()) {
    return Bad(what, "member \"single\" is not a list");
  }
  SurroundingIds around;
  int n_sequences = 0;
  for (const Json& part : *single) {
    if (JsonFind(part, "Sequence") != nullptr) {
      ++n_sequences;
      continue;
    }
    const Json* special = JsonFind(part, "SpecialToken");
    if (special == nullptr) {
      return Bad(what, "\"single\" holds neither Sequence nor SpecialToken");
    }
    HEARTH_ASSIGN(const std::string name, JsonText(*special, "id", what));
    HEARTH_TRY(AppendSpecial(value, name, what,
                             n_sequences == 0 ? around.before : around.after));
  }
  if (n_sequences != 1) return Bad(what, "\"single\" needs one Sequence");
  return around;
}

// BertProcessing and RobertaProcessing: [cls] text [sep].
Result<SurroundingIds> ReadClsSep(const Json& value, const std::string& what) {
  SurroundingIds around;
  for (const char* name : {"cls", "sep"}) {
    const Json* pair = JsonFind(value, name);
    if (pair == nullptr || !pair->is_array() || pair->size() != 2) {
      return Bad(what, std::string("member \"") + name + "\" is not a pair");
    }
    HEARTH_ASSIGN(const std::int32_t id, AsId((*pair)[1], what));
    (name[0] == 'c' ? around.before : around.after).push_back(id);
  }
  return around;
}

}  // namespace

Result<std::vector<Step>> ReadNormalizer(const Json& value,
                                         const std::string& what) {
  Steps steps;
  HEARTH_TRY(ReadAll(value, "normalizers", what + ": normalizer",
                     ReadOneNormalizer, steps));
  return steps;
}

Result<std::vector<Step>> ReadPreTokenizer(const Json& value,
                                           const std::string& what) {
  Steps steps;
  HEARTH_TRY(ReadAll(value, "pretokenizers", what + ": pre_tokenizer",
                     ReadOnePreTokenizer, steps));
  return steps;
}

Result<std::vector<Step>> ReadDecoder(const Json& value,
                                      const std::string& what) {
  Steps steps;
  if (value.is_null()) {
    steps.push_back({StepKind::kDecodeJoin, 0, 0, {}, {}});
    return steps;
  }
  HEARTH_TRY(
      ReadAll(value, "decoders", what + ": decoder", ReadOneDecoder, steps));
  return steps;
}

Result<SurroundingIds> ReadPostProcessor(const Json& value,
                                         const std::string& what) {
  SurroundingIds all;
  if (value.is_null()) return all;
  const std::string where = what + ": post_processor";
  HEARTH_ASSIGN(const std::string type, JsonText(value, "type", where));
  if (type == "ByteLevel") return all;  // offsets only
  if (type == "TemplateProcessing") return ReadTemplate(value, where);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return ReadClsSep(value, where);
  }
  if (type != "Sequence") return Unknown(where, type);
  const Json* list = JsonFind(value, "processors");
  if (list == nullptr || !list->is_array()) {
    return Bad(where, "member \"processors\" is not a list");
  }
  for (const Json& element : *list) {
    HEARTH_ASSIGN(SurroundingIds one, ReadPostProcessor(element, what));
    all.before.insert(all.before.begin(), one.before.begin(), one.before.end());
    all.after.insert(all.after.end(), one.after.begin(), one.after.end());
  }
  return all;
}

}  // namespace hearth
