// Filters that give text or a number.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "chat/jinja/run/builtins.h"
#include "chat/jinja/run/operators.h"
#include "chat/jinja/value/json_writer.h"
#include "chat/jinja/value/literals.h"
#include "chat/jinja/value/text.h"
#include "chat/jinja/value/text_ops.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

// Keeps the HTML mark of the input.
Value Like(const Value& input, std::string text) {
  return input.is_markup() ? Value::Markup(std::move(text))
                           : Value::String(std::move(text));
}

template <std::string (*kFunction)(std::string_view)>
Result<Value> Map(Vm& vm, const Value& self, const Args& args) {
  HEARTH_TRY(BindArgs(args, "filter", {}));
  HEARTH_ASSIGN(const std::string text, ToText(vm, self));
  return Like(self, kFunction(text));
}

// Jinja's own rule: words start behind blanks, hyphens and brackets.
std::string TitleWords(std::string_view s) {
  std::string out;
  bool starts_word = true;
  for (std::size_t pos = 0; pos < s.size();) {
    const char32_t c = DecodePoint(s, &pos);
    AppendPoint(starts_word ? UpperPoint(c) : LowerPoint(c), &out);
    starts_word = IsSpacePoint(c) || c == '-' || c == '(' || c == '{' ||
                  c == '[' || c == '<';
  }
  return out;
}

Result<Value> Trim(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "trim", {"chars"}));
  HEARTH_ASSIGN(const std::string text, ToText(vm, self));
  std::string chars;
  if (!bound[0].IsUndefined() && !bound[0].IsNone()) {
    HEARTH_ASSIGN(chars, StringArg(bound[0], "trim"));
    if (chars.empty()) return Like(self, text);
  }
  return Like(self, std::string(StripText(text, chars, true, true)));
}

Result<Value> Replace(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "replace", {"old", "new", "count"}, 2));
  HEARTH_ASSIGN(const std::string text, ToText(vm, self));
  HEARTH_ASSIGN(const std::string from, ToText(vm, bound[0]));
  HEARTH_ASSIGN(const std::string to, ToText(vm, bound[1]));
  HEARTH_ASSIGN(const std::int64_t count, IntArg(bound[2], -1, "replace"));
  HEARTH_ASSIGN(std::string out, ReplaceText(vm, text, from, to, count));
  return Like(self, std::move(out));
}

Result<Value> Indent(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "indent", {"width", "first", "blank"}));
  HEARTH_ASSIGN(std::string text, ToText(vm, self));
  std::string prefix;
  if (bound[0].IsString()) {
    prefix = bound[0].text();
  } else {
    HEARTH_ASSIGN(const std::int64_t width, IntArg(bound[0], 4, "indent"));
    HEARTH_ASSIGN(prefix, PadText(vm, "", width, " ", '<'));
  }
  // The newline that is added makes a last line break count as a line.
  text += '\n';
  std::vector<std::string> lines = SplitLines(text, false);
  HEARTH_TRY(vm.budget().BuildItems(lines.size()));
  const bool blank = Truthy(bound[2]);
  std::string out = Truthy(bound[1]) ? prefix : std::string();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (blank || !lines[i].empty())) out += prefix;
    out += lines[i];
    if (out.size() > vm.budget().limits().string_bytes_max) break;
  }
  HEARTH_TRY(vm.budget().BuildString(out.size()));
  return Like(self, std::move(out));
}

Result<Value> Join(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "join", {"d", "attribute"}));
  HEARTH_ASSIGN(const std::string separator, ToText(vm, bound[0]));
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  std::vector<std::string> parts;
  parts.reserve(items.size());
  for (const Value& item : items) {
    Value value = item;
    if (!bound[1].IsUndefined() && !bound[1].IsNone()) {
      HEARTH_ASSIGN(value, vm.GetItem(item, bound[1]));
    }
    HEARTH_ASSIGN(std::string text, ToText(vm, value));
    HEARTH_TRY(vm.budget().BuildString(text.size()));
    parts.push_back(std::move(text));
  }
  HEARTH_ASSIGN(std::string out, JoinTexts(vm, parts, separator));
  return Value::String(std::move(out));
}

Result<Value> Center(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "center", {"width"}));
  HEARTH_ASSIGN(const std::string text, ToText(vm, self));
  HEARTH_ASSIGN(const std::int64_t width, IntArg(bound[0], 80, "center"));
  HEARTH_ASSIGN(std::string out, PadText(vm, text, width, " ", '^'));
  return Like(self, std::move(out));
}

Result<Value> Truncate(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(
      const std::vector<Value> bound,
      BindArgs(args, "truncate", {"length", "killwords", "end", "leeway"}));
  HEARTH_ASSIGN(const std::string text, ToText(vm, self));
  HEARTH_ASSIGN(const std::int64_t length, IntArg(bound[0], 255, "truncate"));
  HEARTH_ASSIGN(const std::int64_t leeway, IntArg(bound[3], 5, "truncate"));
  std::string end = "...";
  if (!bound[2].IsUndefined()) {
    HEARTH_ASSIGN(end, StringArg(bound[2], "truncate"));
  }
  const auto end_length = static_cast<std::int64_t>(CountPoints(end));
  if (length < end_length || leeway < 0 || length > INT64_MAX - leeway) {
    return TypeError("truncate: length and leeway do not fit the end");
  }
  if (static_cast<std::int64_t>(CountPoints(text)) <= length + leeway) {
    return self;
  }
  std::string kept = text.substr(
      0, PointOffset(text, static_cast<std::size_t>(length - end_length)));
  if (!Truthy(bound[1])) {
    const std::size_t blank = kept.rfind(' ');
    if (blank != std::string::npos) kept.resize(blank);
  }
  return Value::String(kept + end);
}

Result<Value> WordCount(Vm& vm, const Value& self, const Args&) {
  HEARTH_ASSIGN(const std::string text, ToText(vm, self));
  std::int64_t words = 0;
  bool in_word = false;
  for (std::size_t pos = 0; pos < text.size();) {
    const char32_t c = DecodePoint(text, &pos);
    const bool is_word = IsAlphaPoint(c) || IsNumericPoint(c) || c == '_';
    if (is_word && !in_word) ++words;
    in_word = is_word;
  }
  return Value::Int(words);
}

Result<Value> UrlEncode(Vm& vm, const Value& self, const Args&) {
  if (!self.IsString()) {
    return Error{Code::kUnsupported, "urlencode takes a string here"};
  }
  HEARTH_ASSIGN(const std::string text, ToText(vm, self));
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                       c == '.' || c == '~' || c == '/';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return Value::String(std::move(out));
}

Result<Value> Escape(Vm& vm, const Value& self, const Args&) {
  if (self.is_markup()) return self;
  HEARTH_ASSIGN(const std::string text, ToText(vm, self));
  return Value::Markup(EscapeHtml(text));
}

Result<Value> ForceEscape(Vm& vm, const Value& self, const Args&) {
  HEARTH_ASSIGN(const std::string text, ToText(vm, self));
  return Value::Markup(EscapeHtml(text));
}

Result<Value> Safe(Vm& vm, const Value& self, const Args&) {
  HEARTH_ASSIGN(std::string text, ToText(vm, self));
  return Value::Markup(std::move(text));
}

Result<Value> String(Vm& vm, const Value& self, const Args&) {
  if (self.IsString()) return self;
  HEARTH_ASSIGN(std::string text, ToText(vm, self));
  return Value::String(std::move(text));
}

Result<Value> Int(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "int", {"default", "base"}));
  const Value fallback = bound[0].IsUndefined() ? Value::Int(0) : bound[0];
  HEARTH_ASSIGN(const std::int64_t base, IntArg(bound[1], 10, "int"));
  if (base < 2 || base > 36) return TypeError("int: base must be 2 to 36");
  if (self.IsUndefined()) return UndefinedError(self);
  if (self.IsIntegral()) return Value::Int(self.int_value());
  double d = 0;
  if (self.Is(Kind::kFloat)) {
    d = self.float_value();
  } else if (self.IsString()) {
    std::int64_t i = 0;
    if (ParseInt(self.text(), static_cast<int>(base), &i)) return Value::Int(i);
    if (!ParseFloat(self.text(), &d)) return fallback;
  } else {
    return fallback;
  }
  if (!std::isfinite(d)) return fallback;
  if (std::abs(d) >= 9.2e18) {
    return Error{Code::kUnsupported, "an integer does not fit into 64 bits"};
  }
  return Value::Int(static_cast<std::int64_t>(d));
}

Result<Value> Float(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "float", {"default"}));
  if (self.IsUndefined()) return UndefinedError(self);
  if (self.IsNumber()) return Value::Float(self.AsDouble());
  double d = 0;
  if (self.IsString() && ParseFloat(self.text(), &d)) return Value::Float(d);
  return bound[0].IsUndefined() ? Value::Float(0) : bound[0];
}

Result<Value> Abs(Vm& vm, const Value& self, const Args&) {
  if (self.Is(Kind::kFloat)) return Value::Float(std::abs(self.float_value()));
  if (self.IsIntegral() && self.int_value() >= 0) {
    return Value::Int(self.int_value());
  }
  return UnaryOp(vm, Op::kNegative, self);
}

Result<Value> Round(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "round", {"precision", "method"}));
  HEARTH_ASSIGN(const std::int64_t precision, IntArg(bound[0], 0, "round"));
  std::string method = "common";
  if (!bound[1].IsUndefined()) {
    HEARTH_ASSIGN(method, StringArg(bound[1], "round"));
  }
  if (self.IsUndefined()) return UndefinedError(self);
  if (!self.IsNumber()) return TypeError("round needs a number");
  if (precision < -300 || precision > 300) return self;
  const double d = self.AsDouble();
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value::Float(std::ceil(d * scale) / scale);
  if (method == "floor") return Value::Float(std::floor(d * scale) / scale);
  if (method != "common") {
    return TypeError("round: method is common, ceil or floor");
  }
  if (self.IsIntegral() && precision >= 0) return Value::Int(self.int_value());
  // Through decimal digits, so that halves go where Python sends them.
  if (precision >= 0 && std::abs(d) < 1e15) {
    char buffer[400];
    const int n = std::snprintf(
        buffer, sizeof buffer, "%.*f",
        static_cast<int>(std::min<std::int64_t>(precision, 340)), d);
    double rounded = 0;
    const bool negative = buffer[0] == '-';
    if (n > 0 &&
        ParseFloat(std::string_view(buffer + (negative ? 1 : 0)), &rounded)) {
      return Value::Float(negative ? -rounded : rounded);
    }
  }
  const double rounded = std::nearbyint(d * scale) / scale;
  if (self.IsIntegral()) return Value::Int(static_cast<std::int64_t>(rounded));
  return Value::Float(rounded);
}

Result<Value> Format(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::string format, ToText(vm, self));
  HEARTH_ASSIGN(std::string out, FormatPercent(vm, format, args));
  return Value::String(std::move(out));
}

}  // namespace

NativeFn FindTextFilter(const std::string& name) {
  static const std::unordered_map<std::string, NativeFn> kFilters = {
      {"abs", Abs},
      {"capitalize", Map<CapitalizeText>},
      {"center", Center},
      {"e", Escape},
      {"escape", Escape},
      {"float", Float},
      {"forceescape", ForceEscape},
      {"format", Format},
      {"indent", Indent},
      {"int", Int},
      {"join", Join},
      {"lower", Map<LowerText>},
      {"replace", Replace},
      {"round", Round},
      {"safe", Safe},
      {"string", String},
      {"title", Map<TitleWords>},
      {"tojson", FilterToJson},
      {"trim", Trim},
      {"truncate", Truncate},
      {"upper", Map<UpperText>},
      {"urlencode", UrlEncode},
      {"wordcount", WordCount},
  };
  const auto it = kFilters.find(name);
  return it == kFilters.end() ? nullptr : it->second;
}

}  // namespace hearth::jinja
