#include "chat/jinja/value/json_writer.h"

#include <algorithm>
#include <cmath>

#include "chat/jinja/run/operators.h"
#include "chat/jinja/run/vm.h"
#include "chat/jinja/value/literals.h"
#include "chat/jinja/value/text.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

void AppendEscape(char32_t unit, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  *out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) {
    *out += kHex[(unit >> shift) & 0xF];
  }
}

void AppendString(std::string_view s, bool ensure_ascii, std::string* out) {
  *out += '"';
  for (std::size_t pos = 0; pos < s.size();) {
    const char32_t c = DecodePoint(s, &pos);
    switch (c) {
      case '"':
        *out += "\\\"";
        continue;
      case '\\':
        *out += "\\\\";
        continue;
      case '\n':
        *out += "\\n";
        continue;
      case '\r':
        *out += "\\r";
        continue;
      case '\t':
        *out += "\\t";
        continue;
      case '\b':
        *out += "\\b";
        continue;
      case '\f':
        *out += "\\f";
        continue;
      default:
        break;
    }
    if (c < 0x20 || (ensure_ascii && c >= 0x7F && c < 0x10000)) {
      AppendEscape(c, out);
    } else if (ensure_ascii && c >= 0x10000) {
      AppendEscape(0xD800 + ((c - 0x10000) >> 10), out);
      AppendEscape(0xDC00 + ((c - 0x10000) & 0x3FF), out);
    } else {
      AppendPoint(c, out);
    }
  }
  *out += '"';
}

class Writer {
 public:
  Writer(Vm& vm, const JsonStyle& style, std::string* out)
      : vm_(vm), style_(style), out_(out) {}

  Result<void> Write(const Value& value) {
    HEARTH_TRY(vm_.budget().Step());
    if (out_->size() > vm_.budget().limits().string_bytes_max) {
      return vm_.budget().BuildString(out_->size());
    }
    if (const auto scalar = Scalar(value)) {
      *out_ += *scalar;
      return {};
    }
    switch (value.kind()) {
      case Kind::kString:
        HEARTH_TRY(vm_.budget().Touch(value.text().size()));
        AppendString(value.text(), style_.ensure_ascii, out_);
        return {};
      case Kind::kList:
      case Kind::kTuple:
        return WriteList(value.items());
      case Kind::kDict:
        return WriteDict(value.as<DictObject>());
      default:
        break;
    }
    return TypeError(std::string("Object of type ") + value.TypeName() +
                     " is not JSON serializable");
  }

 private:
  // None, booleans and numbers.
  static std::optional<std::string> Scalar(const Value& value) {
    switch (value.kind()) {
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return value.bool_value() ? "true" : "false";
      case Kind::kInt:
        return std::to_string(value.int_value());
      case Kind::kBigInt:
        return value.text();
      case Kind::kFloat: {
        const double d = value.float_value();
        if (std::isnan(d)) return "NaN";
        if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
        return FloatText(d);
      }
      default:
        return std::nullopt;
    }
  }

  void Separate(bool first) {
    if (!first) *out_ += style_.item_separator;
    NewLine();
  }

  void NewLine() {
    if (!style_.indent) return;
    *out_ += '\n';
    for (int i = 0; i < level_; ++i) *out_ += *style_.indent;
  }

  Result<void> WriteList(const std::vector<Value>& items) {
    if (items.empty()) {
      *out_ += "[]";
      return {};
    }
    *out_ += '[';
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      Separate(i == 0);
      HEARTH_TRY(Write(items[i]));
    }
    --level_;
    NewLine();
    *out_ += ']';
    return {};
  }

  Result<void> WriteKey(const Value& key) {
    if (key.IsString()) {
      AppendString(key.text(), style_.ensure_ascii, out_);
    } else if (const auto scalar = Scalar(key)) {
      *out_ += '"' + *scalar + '"';
    } else {
      return TypeError(std::string("a JSON key cannot be of type ") +
                       key.TypeName());
    }
    return {};
  }

  Result<void> WriteDict(const DictObject& dict) {
    if (dict.size() == 0) {
      *out_ += "{}";
      return {};
    }
    std::vector<const std::pair<Value, Value>*> entries;
    HEARTH_TRY(vm_.budget().Step(dict.size()));
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      HEARTH_TRY(Sort(&entries));
    }
    *out_ += '{';
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Separate(i == 0);
      HEARTH_TRY(WriteKey(entries[i]->first));
      *out_ += style_.key_separator;
      HEARTH_TRY(Write(entries[i]->second));
    }
    --level_;
    NewLine();
    *out_ += '}';
    return {};
  }

  Result<void> Sort(std::vector<const std::pair<Value, Value>*>* entries) {
    std::optional<Error> failure;
    std::stable_sort(entries->begin(), entries->end(),
                     [&](const auto* a, const auto* b) {
                       if (failure) return false;
                       Result<bool> less = Less(vm_, a->first, b->first);
                       if (!less.ok()) failure = less.error();
                       return less.ok() && less.value();
                     });
    if (failure) return *failure;
    return {};
  }

  Vm& vm_;
  const JsonStyle& style_;
  std::string* out_;
  int level_ = 0;
};

}  // namespace

Result<void> WriteJson(Vm& vm, const Value& value, const JsonStyle& style,
                       std::string* out) {
  return Writer(vm, style, out).Write(value);
}

Result<Value> FilterToJson(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(
      const std::vector<Value> bound,
      BindArgs(args, "tojson",
               {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = Truthy(bound[0]);
  style.sort_keys = Truthy(bound[3]);
  const Value& indent = bound[1];
  if (indent.IsIntegral()) {
    const std::int64_t width =
        std::clamp<std::int64_t>(indent.int_value(), 0, 64);
    style.indent = std::string(static_cast<std::size_t>(width), ' ');
  } else if (indent.IsString()) {
    style.indent = indent.text();
  } else if (!indent.IsNone() && !indent.IsUndefined()) {
    return TypeError("tojson: indent must be a number or a string");
  }
  if (style.indent) {
    style.item_separator = ",";
    if (style.indent->size() > 64) {
      return TypeError("tojson: indent is wider than 64");
    }
  }
  const Value& separators = bound[2];
  if (separators.IsSequence() && separators.items().size() == 2 &&
      separators.items()[0].IsString() && separators.items()[1].IsString()) {
    style.item_separator = separators.items()[0].text();
    style.key_separator = separators.items()[1].text();
  } else if (!separators.IsNone() && !separators.IsUndefined()) {
    return TypeError("tojson: separators must be two strings");
  }
  std::string out;
  HEARTH_TRY(WriteJson(vm, self, style, &out));
  return Value::String(std::move(out));
}

}  // namespace hearth::jinja
