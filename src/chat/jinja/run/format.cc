// The two ways of Python to put values into a format string, as far as
// templates use them: %s %r %d %i %f %e %g %x %o %c with flags, width and
// precision, and {}, {0}, {name} with a plain format specification.
#include <algorithm>
#include <cstdio>

#include "chat/jinja/run/operators.h"
#include "chat/jinja/run/vm.h"
#include "chat/jinja/value/text.h"
#include "chat/jinja/value/text_ops.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

constexpr std::int64_t kWidthMax = 100'000;
constexpr std::int64_t kPrecisionMax = 300;

struct Spec {
  char fill = ' ';
  char align = '\0';  // '<', '>', '^', or by type
  bool plus = false;
  bool blank = false;
  bool alternate = false;
  bool zero = false;
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = '\0';
};

// Digits at `*pos`; -1 for none, a large number when there are too many.
std::int64_t ReadCount(std::string_view s, std::size_t* pos) {
  std::int64_t n = -1;
  for (; *pos < s.size() && s[*pos] >= '0' && s[*pos] <= '9'; ++*pos) {
    n = std::min<std::int64_t>(
        std::max<std::int64_t>(n, 0) * 10 + (s[*pos] - '0'), INT32_MAX);
  }
  return n;
}

Result<void> CheckSpec(const Spec& spec) {
  if (spec.width > kWidthMax || spec.precision > kPrecisionMax) {
    return {Code::kResourceFull, "a format has too large a width"};
  }
  return {};
}

Result<std::string> IntDigits(std::int64_t value, char type, bool alternate) {
  const bool negative = value < 0;
  auto magnitude = static_cast<std::uint64_t>(value);
  if (negative) magnitude = 0 - magnitude;
  const unsigned base = type == 'x' || type == 'X' ? 16
                        : type == 'o'              ? 8
                        : type == 'b'              ? 2
                                                   : 10;
  std::string digits;
  do {
    const char* all = type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    digits.insert(digits.begin(), all[magnitude % base]);
    magnitude /= base;
  } while (magnitude > 0);
  if (alternate && base != 10) digits = std::string("0") + type + digits;
  return (negative ? "-" : "") + digits;
}

Result<std::string> NumberText(const Value& value, const Spec& spec) {
  if (value.IsUndefined()) return UndefinedError(value);
  if (!value.IsNumber()) {
    return TypeError(std::string("format '") + spec.type +
                     "' needs a number, not '" + value.TypeName() + "'");
  }
  std::string text;
  if (std::string_view("dixXob").find(spec.type) != std::string_view::npos) {
    if (value.Is(Kind::kFloat) && !(std::abs(value.float_value()) < 9.2e18)) {
      return TypeError("the number is no 64-bit integer");
    }
    const std::int64_t i = value.Is(Kind::kFloat)
                               ? static_cast<std::int64_t>(value.float_value())
                               : value.int_value();
    HEARTH_ASSIGN(text, IntDigits(i, spec.type, spec.alternate));
  } else {
    const int precision =
        spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
    char buffer[800];
    const char format[] = {'%', '.', '*', spec.type == '%' ? 'f' : spec.type,
                           '\0'};
    const double d = value.AsDouble() * (spec.type == '%' ? 100 : 1);
    std::snprintf(buffer, sizeof buffer, format, precision, d);
    text = buffer;
    if (spec.type == '%') text += '%';
  }
  if (text[0] != '-' && (spec.plus || spec.blank)) {
    text.insert(text.begin(), spec.plus ? '+' : ' ');
  }
  return text;
}

Result<std::string> Pad(Vm& vm, std::string text, const Spec& spec,
                        bool is_number) {
  if (spec.zero && is_number && spec.align == '\0') {
    const bool sign = !text.empty() && !(text[0] >= '0' && text[0] <= '9');
    HEARTH_ASSIGN(const std::string digits,
                  PadText(vm, text.substr(sign ? 1 : 0),
                          spec.width - (sign ? 1 : 0), "0", '>'));
    return (sign ? text.substr(0, 1) : std::string()) + digits;
  }
  const char align = spec.align != '\0' ? spec.align : is_number ? '>' : '<';
  if (align == '^') {
    // Unlike str.center, a format puts the odd one right.
    const auto length = static_cast<std::int64_t>(CountPoints(text));
    const std::int64_t left =
        std::max<std::int64_t>(spec.width - length, 0) / 2;
    text.insert(0, static_cast<std::size_t>(left), spec.fill);
    return PadText(vm, text, spec.width, std::string(1, spec.fill), '<');
  }
  return PadText(vm, text, spec.width, std::string(1, spec.fill), align);
}

bool IsNumberType(char type) {
  return type != '\0' &&
         std::string_view("dixXobfFeEgG%").find(type) != std::string_view::npos;
}

std::string Clip(const std::string& text, std::int64_t precision) {
  if (precision < 0) return text;
  return text.substr(0, PointOffset(text, static_cast<std::size_t>(precision)));
}

// One directive of a % format, from behind the '%'.
Result<Spec> ReadPercent(std::string_view format, std::size_t* pos) {
  Spec spec;
  for (; *pos < format.size(); ++*pos) {
    const char c = format[*pos];
    if (c == '-')
      spec.align = '<';
    else if (c == '+')
      spec.plus = true;
    else if (c == ' ')
      spec.blank = true;
    else if (c == '#')
      spec.alternate = true;
    else if (c == '0')
      spec.zero = true;
    else
      break;
  }
  spec.width = std::max<std::int64_t>(ReadCount(format, pos), 0);
  if (*pos < format.size() && format[*pos] == '.') {
    ++*pos;
    spec.precision = std::max<std::int64_t>(ReadCount(format, pos), 0);
  }
  if (*pos >= format.size()) return TypeError("incomplete format");
  spec.type = format[(*pos)++];
  HEARTH_TRY(CheckSpec(spec));
  return spec;
}

Result<std::string> PercentValue(Vm& vm, Spec spec, const Value& value) {
  if (spec.type == 's' || spec.type == 'r') {
    std::string text;
    if (spec.type == 's') {
      HEARTH_ASSIGN(text, ToText(vm, value));
    } else {
      HEARTH_TRY(AppendRepr(vm, value, &text));
    }
    if (spec.align == '\0') spec.align = '>';
    return Pad(vm, Clip(text, spec.precision), spec, false);
  }
  if (spec.type == 'c') {
    if (value.IsString() && CountPoints(value.text()) == 1) {
      return value.text();
    }
    if (!value.IsIntegral() || value.int_value() < 0 ||
        value.int_value() > 0x10FFFF) {
      return TypeError("%c needs a character");
    }
    std::string text;
    AppendPoint(static_cast<char32_t>(value.int_value()), &text);
    return text;
  }
  if (!IsNumberType(spec.type) || spec.type == 'b') {
    return TypeError(std::string("unsupported format character '") + spec.type +
                     "'");
  }
  HEARTH_ASSIGN(std::string text, NumberText(value, spec));
  return Pad(vm, std::move(text), spec, true);
}

// [[fill]align][sign][#][0][width][.precision][type]
Result<Spec> ReadBraceSpec(std::string_view s) {
  Spec spec;
  std::size_t pos = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^'; };
  if (s.size() > 1 && is_align(s[1])) {
    spec.fill = s[0];
    spec.align = s[1];
    pos = 2;
  } else if (!s.empty() && is_align(s[0])) {
    spec.align = s[0];
    pos = 1;
  }
  const auto skip = [&](char c) {
    if (pos >= s.size() || s[pos] != c) return false;
    ++pos;
    return true;
  };
  spec.plus = skip('+');
  if (!spec.plus) skip('-');
  spec.blank = skip(' ');
  spec.alternate = skip('#');
  spec.zero = skip('0');
  spec.width = std::max<std::int64_t>(ReadCount(s, &pos), 0);
  if (skip('.')) spec.precision = ReadCount(s, &pos);
  if (pos < s.size()) spec.type = s[pos++];
  const bool known = spec.type == '\0' || spec.type == 's' ||
                     (IsNumberType(spec.type) && spec.type != 'i');
  if (pos != s.size() || !known) {
    return Error{Code::kUnsupported,
                 "format specification '" + std::string(s.substr(0, 40)) + "'"};
  }
  HEARTH_TRY(CheckSpec(spec));
  return spec;
}

// The value that "{field}" names.
Result<Value> BraceValue(Vm& vm, std::string_view field, const Args& args,
                         std::size_t* next) {
  const std::size_t cut = std::min(field.find('.'), field.size());
  const std::string head(field.substr(0, cut));
  std::string_view rest = field.substr(cut);
  if (field.find('[') != std::string_view::npos) {
    return Error{Code::kUnsupported, "format fields with '[' "};
  }
  Value value;
  if (head.empty() ||
      head.find_first_not_of("0123456789") == std::string::npos) {
    std::size_t pos = 0;
    const std::size_t index =
        head.empty() ? (*next)++
                     : static_cast<std::size_t>(ReadCount(head, &pos));
    if (index >= args.positional.size()) {
      return TypeError("format: too few arguments");
    }
    value = args.positional[index];
  } else {
    const Value* named = args.FindNamed(head);
    if (named == nullptr)
      return TypeError("format: no argument '" + head + "'");
    value = *named;
  }
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    HEARTH_ASSIGN(value,
                  vm.GetAttribute(value, std::string(rest.substr(0, dot))));
    rest = rest.substr(dot);
  }
  return value;
}

Result<std::string> BraceText(Vm& vm, std::string_view field, const Args& args,
                              std::size_t* next) {
  const std::size_t colon = std::min(field.find(':'), field.size());
  std::string_view name = field.substr(0, colon);
  const bool repr = name.ends_with("!r");
  if (repr || name.ends_with("!s")) name.remove_suffix(2);
  HEARTH_ASSIGN(const Value value, BraceValue(vm, name, args, next));
  HEARTH_ASSIGN(const Spec spec,
                ReadBraceSpec(colon < field.size() ? field.substr(colon + 1)
                                                   : std::string_view()));
  if (IsNumberType(spec.type)) {
    HEARTH_ASSIGN(std::string text, NumberText(value, spec));
    return Pad(vm, std::move(text), spec, true);
  }
  std::string text;
  if (repr) {
    HEARTH_TRY(AppendRepr(vm, value, &text));
  } else {
    HEARTH_ASSIGN(text, ToText(vm, value));
  }
  const bool is_number = value.IsNumber() && !value.Is(Kind::kBool) && !repr;
  if (!is_number) text = Clip(text, spec.precision);
  return Pad(vm, std::move(text), spec, is_number);
}

}  // namespace

Result<std::string> FormatPercent(Vm& vm, const std::string& format,
                                  const Args& args) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t pos = 0; pos < format.size();) {
    const char c = format[pos++];
    if (c != '%') {
      out += c;
      continue;
    }
    if (pos < format.size() && format[pos] == '%') {
      out += '%';
      ++pos;
      continue;
    }
    Value value;
    if (pos < format.size() && format[pos] == '(') {
      const std::size_t close = format.find(')', pos);
      if (close == std::string::npos) return TypeError("incomplete format");
      const std::string name = format.substr(pos + 1, close - pos - 1);
      pos = close + 1;
      if (const Value* named = args.FindNamed(name)) {
        value = *named;
      } else if (args.positional.size() == 1 && args.positional[0].IsDict()) {
        const Value* entry = args.positional[0].as<DictObject>().Find(name);
        if (entry == nullptr) return TypeError("format: no key '" + name + "'");
        value = *entry;
        next = 1;
      } else {
        return TypeError("format requires a mapping");
      }
    } else {
      if (next >= args.positional.size()) {
        return TypeError("not enough arguments for format string");
      }
      value = args.positional[next++];
    }
    HEARTH_ASSIGN(const Spec spec, ReadPercent(format, &pos));
    HEARTH_ASSIGN(const std::string text, PercentValue(vm, spec, value));
    out += text;
    HEARTH_TRY(vm.budget().BuildString(text.size()));
    if (out.size() > vm.budget().limits().string_bytes_max) {
      HEARTH_TRY(vm.budget().BuildString(out.size()));
    }
  }
  const bool dict_given =
      args.positional.size() == 1 && args.positional[0].IsDict();
  if (next < args.positional.size() && !dict_given) {
    return TypeError("not all arguments converted during string formatting");
  }
  return out;
}

Result<std::string> FormatBraces(Vm& vm, const std::string& format,
                                 const Args& args) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t pos = 0; pos < format.size();) {
    const char c = format[pos++];
    const bool doubled = pos < format.size() && format[pos] == c;
    if (c != '{' && c != '}') {
      out += c;
    } else if (doubled) {
      out += c;
      ++pos;
    } else if (c == '}') {
      return TypeError("single '}' in format string");
    } else {
      const std::size_t close = format.find('}', pos);
      if (close == std::string::npos) {
        return TypeError("expected '}' before the end of the format string");
      }
      const std::string_view field(format.data() + pos, close - pos);
      HEARTH_ASSIGN(const std::string text, BraceText(vm, field, args, &next));
      out += text;
      HEARTH_TRY(vm.budget().BuildString(text.size()));
      if (out.size() > vm.budget().limits().string_bytes_max) {
        HEARTH_TRY(vm.budget().BuildString(out.size()));
      }
      pos = close + 1;
    }
  }
  return out;
}

}  // namespace hearth::jinja
