// Methods of str.
#include <algorithm>
#include <unordered_map>

#include "chat/jinja/run/builtins.h"
#include "chat/jinja/run/operators.h"
#include "chat/jinja/value/text.h"
#include "chat/jinja/value/text_ops.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

Value Like(const Value& self, std::string text) {
  return self.is_markup() ? Value::Markup(std::move(text))
                          : Value::String(std::move(text));
}

template <std::string (*kFunction)(std::string_view)>
Result<Value> Map(Vm&, const Value& self, const Args& args) {
  HEARTH_TRY(BindArgs(args, "method", {}));
  return Like(self, kFunction(self.text()));
}

std::string SwapCase(std::string_view s) {
  std::string out;
  for (std::size_t pos = 0; pos < s.size();) {
    const char32_t c = DecodePoint(s, &pos);
    const char32_t upper = UpperPoint(c);
    AppendPoint(upper != c ? upper : LowerPoint(c), &out);
  }
  return out;
}

template <bool kLeft, bool kRight>
Result<Value> Strip(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "strip", {"chars"}));
  if (bound[0].IsUndefined() || bound[0].IsNone()) {
    return Like(self, std::string(StripText(self.text(), {}, kLeft, kRight)));
  }
  HEARTH_ASSIGN(const std::string chars, StringArg(bound[0], "strip"));
  if (chars.empty()) return self;
  return Like(self, std::string(StripText(self.text(), chars, kLeft, kRight)));
}

// Words between runs of whitespace; at most `limit` splits, from the right
// for rsplit.
std::vector<std::string> SplitSpace(std::string_view s, std::size_t limit,
                                    bool from_right) {
  std::vector<std::string> parts;
  s = StripText(s, {}, !from_right, from_right);
  while (!s.empty() && parts.size() < limit) {
    std::size_t cut = from_right ? 0 : s.size();
    std::size_t cut_end = 0;
    for (std::size_t pos = 0; pos < s.size();) {
      const std::size_t begin = pos;
      if (!IsSpacePoint(DecodePoint(s, &pos))) continue;
      cut = begin;
      cut_end = pos;
      if (!from_right) break;
    }
    if (from_right) {
      parts.emplace_back(s.substr(cut_end));
      s = cut_end == 0 ? std::string_view() : s.substr(0, cut);
    } else {
      parts.emplace_back(s.substr(0, cut));
      s = s.substr(cut);
    }
    s = StripText(s, {}, !from_right, from_right);
  }
  if (!s.empty()) parts.emplace_back(s);
  return parts;
}

std::vector<std::string> SplitOn(std::string_view s, const std::string& by,
                                 std::size_t limit, bool from_right) {
  std::vector<std::string> parts;
  while (parts.size() < limit) {
    const std::size_t hit = from_right ? s.rfind(by) : s.find(by);
    if (hit == std::string_view::npos) break;
    if (from_right) {
      parts.emplace_back(s.substr(hit + by.size()));
      s = s.substr(0, hit);
    } else {
      parts.emplace_back(s.substr(0, hit));
      s = s.substr(hit + by.size());
    }
  }
  parts.emplace_back(s);
  return parts;
}

Result<Value> ToList(Vm& vm, std::vector<std::string> parts) {
  HEARTH_TRY(vm.budget().BuildItems(parts.size()));
  std::vector<Value> items;
  items.reserve(parts.size());
  for (std::string& part : parts)
    items.push_back(Value::String(std::move(part)));
  return Value::List(std::move(items));
}

template <bool kFromRight>
Result<Value> Split(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "split", {"sep", "maxsplit"}));
  HEARTH_ASSIGN(const std::int64_t count, IntArg(bound[1], -1, "split"));
  const std::size_t limit =
      count < 0 ? SIZE_MAX : static_cast<std::size_t>(count);
  std::vector<std::string> parts;
  if (bound[0].IsUndefined() || bound[0].IsNone()) {
    // The search from the right looks at the whole rest for each word.
    if (kFromRight) {
      HEARTH_TRY(vm.budget().Step(std::min(limit, self.text().size()) *
                                  (self.text().size() / 64)));
    }
    parts = SplitSpace(self.text(), limit, kFromRight);
  } else {
    HEARTH_ASSIGN(const std::string by, StringArg(bound[0], "split"));
    if (by.empty()) return TypeError("empty separator");
    parts = SplitOn(self.text(), by, limit, kFromRight);
  }
  if (kFromRight) std::reverse(parts.begin(), parts.end());
  return ToList(vm, std::move(parts));
}

Result<Value> SplitLinesMethod(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "splitlines", {"keepends"}));
  return ToList(vm, SplitLines(self.text(), Truthy(bound[0])));
}

template <bool kFromRight>
Result<Value> Partition(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "partition", {"sep"}, 1));
  HEARTH_ASSIGN(const std::string by, StringArg(bound[0], "partition"));
  if (by.empty()) return TypeError("empty separator");
  const std::string& text = self.text();
  const std::size_t hit = kFromRight ? text.rfind(by) : text.find(by);
  const Value empty = Value::String("");
  if (hit == std::string::npos) {
    return kFromRight ? Value::Tuple({empty, empty, self})
                      : Value::Tuple({self, empty, empty});
  }
  return Value::Tuple({Value::String(text.substr(0, hit)), bound[0],
                       Value::String(text.substr(hit + by.size()))});
}

// The part of `text` between two code point positions, as str.find has them.
Result<std::string_view> Window(const std::string& text, const Value& start,
                                const Value& end, std::size_t* begin_point) {
  const std::size_t n = CountPoints(text);
  const auto place = [n](std::int64_t i) {
    const auto size = static_cast<std::int64_t>(n);
    if (i < 0) i = std::max<std::int64_t>(i + size, 0);
    return static_cast<std::size_t>(std::min(i, size));
  };
  HEARTH_ASSIGN(const std::int64_t first, IntArg(start, 0, "a position"));
  HEARTH_ASSIGN(const std::int64_t last,
                IntArg(end, static_cast<std::int64_t>(n), "a position"));
  *begin_point = place(first);
  const std::size_t begin = PointOffset(text, *begin_point);
  const std::size_t stop = std::max(begin, PointOffset(text, place(last)));
  return std::string_view(text).substr(begin, stop - begin);
}

template <bool kFromRight, bool kMustFind>
Result<Value> Find(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "find", {"sub", "start", "end"}, 1));
  HEARTH_ASSIGN(const std::string sub, StringArg(bound[0], "find"));
  std::size_t begin_point = 0;
  HEARTH_ASSIGN(const std::string_view window,
                Window(self.text(), bound[1], bound[2], &begin_point));
  const std::size_t hit = kFromRight ? window.rfind(sub) : window.find(sub);
  if (hit == std::string_view::npos) {
    if (kMustFind) return TypeError("substring not found");
    return Value::Int(-1);
  }
  return Value::Int(static_cast<std::int64_t>(
      begin_point + CountPoints(window.substr(0, hit))));
}

Result<Value> Count(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "count", {"sub", "start", "end"}, 1));
  HEARTH_ASSIGN(const std::string sub, StringArg(bound[0], "count"));
  std::size_t begin_point = 0;
  HEARTH_ASSIGN(const std::string_view window,
                Window(self.text(), bound[1], bound[2], &begin_point));
  if (sub.empty()) {
    return Value::Int(static_cast<std::int64_t>(CountPoints(window) + 1));
  }
  std::int64_t n = 0;
  for (std::size_t at = window.find(sub); at != std::string_view::npos;
       at = window.find(sub, at + sub.size())) {
    ++n;
  }
  return Value::Int(n);
}

// startswith and endswith: one string or a tuple of them.
template <bool kEnd>
Result<Value> Affix(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "startswith", {"affix", "start", "end"}, 1));
  std::size_t begin_point = 0;
  HEARTH_ASSIGN(const std::string_view window,
                Window(self.text(), bound[1], bound[2], &begin_point));
  std::vector<Value> choices = {bound[0]};
  if (bound[0].Is(Kind::kTuple)) choices = bound[0].items();
  for (const Value& choice : choices) {
    HEARTH_ASSIGN(const std::string affix, StringArg(choice, "startswith"));
    if (kEnd ? window.ends_with(affix) : window.starts_with(affix)) {
      return Value::Bool(true);
    }
  }
  return Value::Bool(false);
}

template <bool kEnd>
Result<Value> RemoveAffix(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "removeprefix", {"affix"}, 1));
  HEARTH_ASSIGN(const std::string affix, StringArg(bound[0], "removeprefix"));
  const std::string& text = self.text();
  if (kEnd ? !text.ends_with(affix) : !text.starts_with(affix)) return self;
  return Like(self, kEnd ? text.substr(0, text.size() - affix.size())
                         : text.substr(affix.size()));
}

Result<Value> Replace(Vm& vm, const Value& self, const Args& args) {
  // str.replace takes its arguments by position only.
  if (!args.named.empty()) {
    return TypeError("str.replace() takes no keyword arguments");
  }
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "replace", {"old", "new", "count"}, 2));
  HEARTH_ASSIGN(const std::string from, StringArg(bound[0], "replace"));
  HEARTH_ASSIGN(const std::string to, StringArg(bound[1], "replace"));
  HEARTH_ASSIGN(const std::int64_t count, IntArg(bound[2], -1, "replace"));
  HEARTH_ASSIGN(std::string out, ReplaceText(vm, self.text(), from, to, count));
  return Like(self, std::move(out));
}

Result<Value> Join(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "join", {"iterable"}, 1));
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(bound[0]));
  std::vector<std::string> parts;
  for (const Value& item : items) {
    HEARTH_ASSIGN(std::string part, StringArg(item, "join"));
    HEARTH_TRY(vm.budget().BuildString(part.size()));
    parts.push_back(std::move(part));
  }
  HEARTH_ASSIGN(std::string out, JoinTexts(vm, parts, self.text()));
  return Like(self, std::move(out));
}

template <char kAlign>
Result<Value> Pad(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "ljust", {"width", "fillchar"}, 1));
  HEARTH_ASSIGN(const std::int64_t width, IntArg(bound[0], 0, "ljust"));
  std::string fill = " ";
  if (!bound[1].IsUndefined()) {
    HEARTH_ASSIGN(fill, StringArg(bound[1], "ljust"));
    if (CountPoints(fill) != 1) {
      return TypeError("the fill character must be one character");
    }
  }
  HEARTH_ASSIGN(std::string out, PadText(vm, self.text(), width, fill, kAlign));
  return Like(self, std::move(out));
}

Result<Value> ZFill(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "zfill", {"width"}, 1));
  HEARTH_ASSIGN(const std::int64_t width, IntArg(bound[0], 0, "zfill"));
  const std::string& text = self.text();
  const bool sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  HEARTH_ASSIGN(
      const std::string digits,
      PadText(vm, text.substr(sign ? 1 : 0), width - (sign ? 1 : 0), "0", '>'));
  return Value::String((sign ? text.substr(0, 1) : std::string()) + digits);
}

Result<Value> Format(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(std::string out, FormatBraces(vm, self.text(), args));
  return Value::String(std::move(out));
}

bool IsAlnumPoint(char32_t c) { return IsAlphaPoint(c) || IsNumericPoint(c); }
bool IsAsciiPoint(char32_t c) { return c < 0x80; }

// Every character is in the class; an empty string only when `kEmpty`.
template <bool (*kClass)(char32_t), bool kEmpty = false>
Result<Value> All(Vm&, const Value& self, const Args&) {
  const std::string& text = self.text();
  for (std::size_t pos = 0; pos < text.size();) {
    if (!kClass(DecodePoint(text, &pos))) return Value::Bool(false);
  }
  return Value::Bool(kEmpty || !text.empty());
}

template <bool kUpper>
Result<Value> IsCase(Vm& vm, const Value& self, const Args& args) {
  return FindTest(kUpper ? "upper" : "lower")(vm, self, args);
}

Result<Value> IsTitle(Vm&, const Value& self, const Args&) {
  const std::string& text = self.text();
  return Value::Bool(TitleText(text) == text &&
                     UpperText(text) != LowerText(text));
}

Result<Value> IsIdentifier(Vm&, const Value& self, const Args&) {
  const std::string& text = self.text();
  for (std::size_t pos = 0; pos < text.size();) {
    const bool first = pos == 0;
    const char32_t c = DecodePoint(text, &pos);
    if (!(IsAlphaPoint(c) || c == '_' || (!first && IsDigitPoint(c)))) {
      return Value::Bool(false);
    }
  }
  return Value::Bool(!text.empty());
}

}  // namespace

NativeFn FindStringMethod(const std::string& name) {
  static const std::unordered_map<std::string, NativeFn> kMethods = {
      {"capitalize", Map<CapitalizeText>},
      {"casefold", Map<LowerText>},
      {"center", Pad<'^'>},
      {"count", Count},
      {"endswith", Affix<true>},
      {"find", Find<false, false>},
      {"format", Format},
      {"index", Find<false, true>},
      {"isalnum", All<IsAlnumPoint>},
      {"isalpha", All<IsAlphaPoint>},
      {"isascii", All<IsAsciiPoint, true>},
      {"isdecimal", All<IsDigitPoint>},
      {"isdigit", All<IsDigitPoint>},
      {"isidentifier", IsIdentifier},
      {"islower", IsCase<false>},
      {"isnumeric", All<IsNumericPoint>},
      {"isprintable", All<IsPrintablePoint, true>},
      {"isspace", All<IsSpacePoint>},
      {"istitle", IsTitle},
      {"isupper", IsCase<true>},
      {"join", Join},
      {"ljust", Pad<'<'>},
      {"lower", Map<LowerText>},
      {"lstrip", Strip<true, false>},
      {"partition", Partition<false>},
      {"removeprefix", RemoveAffix<false>},
      {"removesuffix", RemoveAffix<true>},
      {"replace", Replace},
      {"rfind", Find<true, false>},
      {"rindex", Find<true, true>},
      {"rjust", Pad<'>'>},
      {"rpartition", Partition<true>},
      {"rsplit", Split<true>},
      {"rstrip", Strip<false, true>},
      {"split", Split<false>},
      {"splitlines", SplitLinesMethod},
      {"startswith", Affix<false>},
      {"strip", Strip<true, true>},
      {"swapcase", Map<SwapCase>},
      {"title", Map<TitleText>},
      {"upper", Map<UpperText>},
      {"zfill", ZFill},
  };
  const auto it = kMethods.find(name);
  return it == kMethods.end() ? nullptr : it->second;
}

}  // namespace hearth::jinja
