// str() and repr().
#include "chat/jinja/run/operators.h"
#include "chat/jinja/run/vm.h"
#include "chat/jinja/value/json_writer.h"
#include "chat/jinja/value/literals.h"
#include "chat/jinja/value/text.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

void AppendHex(char32_t value, int digits, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (int i = digits - 1; i >= 0; --i) {
    *out += kHex[(value >> (4 * i)) & 0xF];
  }
}

// Single quotes, unless the text has some and no double ones.
void AppendQuoted(std::string_view s, std::string* out) {
  const bool has_single = s.find('\'') != std::string_view::npos;
  const bool has_double = s.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  *out += quote;
  for (std::size_t pos = 0; pos < s.size();) {
    const char32_t c = DecodePoint(s, &pos);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      *out += '\\';
      *out += static_cast<char>(c);
    } else if (c == '\n') {
      *out += "\\n";
    } else if (c == '\r') {
      *out += "\\r";
    } else if (c == '\t') {
      *out += "\\t";
    } else if (IsPrintablePoint(c)) {
      AppendPoint(c, out);
    } else if (c < 0x100) {
      *out += "\\x";
      AppendHex(c, 2, out);
    } else if (c < 0x10000) {
      *out += "\\u";
      AppendHex(c, 4, out);
    } else {
      *out += "\\U";
      AppendHex(c, 8, out);
    }
  }
  *out += quote;
}

Result<void> AppendItems(Vm& vm, const std::vector<Value>& items,
                         std::string* out) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) *out += ", ";
    HEARTH_TRY(AppendRepr(vm, items[i], out));
  }
  return {};
}

Result<void> AppendDict(Vm& vm, const DictObject& dict, std::string* out) {
  *out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) *out += ", ";
    first = false;
    HEARTH_TRY(AppendRepr(vm, key, out));
    *out += ": ";
    HEARTH_TRY(AppendRepr(vm, value, out));
  }
  *out += '}';
  return {};
}

Result<void> AppendIterator(Vm& vm, const IteratorObject& iterator,
                            std::string* out) {
  if (iterator.once) {
    *out += "<generator object>";
  } else if (!iterator.repr.empty()) {
    *out += iterator.repr;
  } else {
    *out += std::string(iterator.type) + "([";
    HEARTH_TRY(AppendItems(vm, iterator.items, out));
    *out += "])";
  }
  return {};
}

}  // namespace

Result<void> AppendRepr(Vm& vm, const Value& value, std::string* out) {
  HEARTH_TRY(vm.budget().Step());
  if (out->size() > vm.budget().limits().string_bytes_max) {
    return vm.budget().BuildString(out->size());
  }
  switch (value.kind()) {
    case Kind::kUndefined:
      *out += "Undefined";
      return {};
    case Kind::kNone:
      *out += "None";
      return {};
    case Kind::kBool:
      *out += value.bool_value() ? "True" : "False";
      return {};
    case Kind::kInt:
      *out += std::to_string(value.int_value());
      return {};
    case Kind::kBigInt:
      *out += value.text();
      return {};
    case Kind::kFloat:
      *out += FloatText(value.float_value());
      return {};
    case Kind::kString:
      HEARTH_TRY(vm.budget().Touch(value.text().size()));
      if (value.is_markup()) *out += "Markup(";
      AppendQuoted(value.text(), out);
      if (value.is_markup()) *out += ')';
      return {};
    case Kind::kList:
      *out += '[';
      HEARTH_TRY(AppendItems(vm, value.items(), out));
      *out += ']';
      return {};
    case Kind::kTuple:
      *out += '(';
      HEARTH_TRY(AppendItems(vm, value.items(), out));
      *out += value.items().size() == 1 ? ",)" : ")";
      return {};
    case Kind::kDict:
      return AppendDict(vm, value.as<DictObject>(), out);
    case Kind::kIterator:
      return AppendIterator(vm, value.as<IteratorObject>(), out);
    // Python would print what these hold, or an address.
    case Kind::kNamespace:
      *out += "<Namespace>";
      return {};
    case Kind::kFunction:
      *out += "<function " + value.as<FunctionObject>().name + ">";
      return {};
    case Kind::kLoop:
      *out += "<LoopContext>";
      return {};
  }
  return {};
}

Result<std::string> ToText(Vm& vm, const Value& value) {
  std::string out;
  if (value.IsString()) return value.text();
  if (value.IsUndefined()) return out;
  HEARTH_TRY(AppendRepr(vm, value, &out));
  return out;
}

}  // namespace hearth::jinja
