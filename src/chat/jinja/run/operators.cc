#include "chat/jinja/run/operators.h"

#include <algorithm>
#include <cmath>

#include "chat/jinja/run/vm.h"
#include "chat/jinja/value/text.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

const char* OpText(Op op) {
  switch (op) {
    case Op::kAdd:
      return "+";
    case Op::kSubtract:
      return "-";
    case Op::kMultiply:
      return "*";
    case Op::kDivide:
      return "/";
    case Op::kFloorDivide:
      return "//";
    case Op::kModulo:
      return "%";
    case Op::kPower:
      return "**";
    case Op::kLess:
      return "<";
    case Op::kLessEqual:
      return "<=";
    case Op::kGreater:
      return ">";
    case Op::kGreaterEqual:
      return ">=";
    default:
      return "?";
  }
}

Error BadOperands(Op op, const Value& left, const Value& right) {
  return TypeError(std::string("unsupported operand types for ") + OpText(op) +
                   ": '" + left.TypeName() + "' and '" + right.TypeName() +
                   "'");
}

Error TooLarge() {
  return {Code::kUnsupported, "an integer does not fit into 64 bits"};
}

Result<Value> IntPower(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0)
      return TypeError("zero cannot be raised to a negative power");
    return Value::Float(
        std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      return TooLarge();
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      return TooLarge();
    }
  }
  return Value::Int(result);
}

Result<Value> IntOp(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Op::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Op::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Op::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Op::kPower:
      return IntPower(a, b);
    default:
      if (b == 0) return TypeError("division by zero");
      if (op == Op::kDivide) {
        return Value::Float(static_cast<double>(a) / static_cast<double>(b));
      }
      if (a == INT64_MIN && b == -1) {
        if (op == Op::kModulo) return Value::Int(0);
        return TooLarge();
      }
      // Python rounds down and gives the remainder the divisor's sign.
      const std::int64_t remainder = a % b;
      const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
      result = op == Op::kModulo ? (adjust ? remainder + b : remainder)
                                 : a / b - (adjust ? 1 : 0);
  }
  if (overflow) return TooLarge();
  return Value::Int(result);
}

Result<Value> FloatOp(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return Value::Float(a + b);
    case Op::kSubtract:
      return Value::Float(a - b);
    case Op::kMultiply:
      return Value::Float(a * b);
    case Op::kPower: {
      if (a == 0 && b < 0) {
        return TypeError("zero cannot be raised to a negative power");
      }
      const double result = std::pow(a, b);
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
        return {Code::kUnsupported, "complex numbers are not supported"};
      }
      return Value::Float(result);
    }
    default:
      break;
  }
  if (b == 0) return TypeError("division by zero");
  if (op == Op::kDivide) return Value::Float(a / b);
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (op == Op::kModulo) return Value::Float(remainder);
  double whole = std::floor(quotient);
  if (quotient - whole > 0.5) whole += 1;
  if (quotient == 0) whole = std::copysign(0.0, a / b);
  return Value::Float(whole);
}

Result<Value> Repeat(Vm& vm, const Value& value, std::int64_t times) {
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  if (value.IsString()) {
    const std::string& text = value.text();
    if (text.empty() || n == 0) return Value::String("");
    const std::size_t limit = vm.budget().limits().string_bytes_max;
    HEARTH_TRY(vm.budget().BuildString(
        n > limit / text.size() ? limit + 1 : n * text.size()));
    std::string out;
    out.reserve(n * text.size());
    for (std::size_t i = 0; i < n; ++i) out += text;
    return value.is_markup() ? Value::Markup(std::move(out))
                             : Value::String(std::move(out));
  }
  const std::vector<Value>& items = value.items();
  if (items.empty() || n == 0)
    return Value::Of(value.kind(), Value::List({}).shared());
  const std::size_t limit = vm.budget().limits().built_bytes_max;
  HEARTH_TRY(vm.budget().BuildItems(
      n > limit / items.size() ? limit : n * items.size()));
  std::vector<Value> out;
  out.reserve(n * items.size());
  for (std::size_t i = 0; i < n; ++i) {
    out.insert(out.end(), items.begin(), items.end());
  }
  return value.Is(Kind::kTuple) ? Value::Tuple(std::move(out))
                                : Value::List(std::move(out));
}

Result<Value> JoinTexts(Vm& vm, const Value& left, const Value& right) {
  const bool markup = left.is_markup() || right.is_markup();
  if (!markup) {
    HEARTH_TRY(
        vm.budget().BuildString(left.text().size() + right.text().size()));
    return Value::String(left.text() + right.text());
  }
  std::string out = left.is_markup() ? left.text() : EscapeHtml(left.text());
  out += right.is_markup() ? right.text() : EscapeHtml(right.text());
  HEARTH_TRY(vm.budget().BuildString(out.size()));
  return Value::Markup(std::move(out));
}

Result<Value> Add(Vm& vm, const Value& left, const Value& right) {
  if (left.IsString() && right.IsString()) return JoinTexts(vm, left, right);
  if (left.IsSequence() && left.kind() == right.kind()) {
    HEARTH_TRY(
        vm.budget().BuildItems(left.items().size() + right.items().size()));
    std::vector<Value> items = left.items();
    items.insert(items.end(), right.items().begin(), right.items().end());
    return left.Is(Kind::kList) ? Value::List(std::move(items))
                                : Value::Tuple(std::move(items));
  }
  return BadOperands(Op::kAdd, left, right);
}

}  // namespace

bool Truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.int_value() != 0;
    case Kind::kFloat:
      return value.float_value() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.items().empty();
    case Kind::kDict:
      return value.as<DictObject>().size() > 0;
    case Kind::kIterator: {
      const auto& iterator = value.as<IteratorObject>();
      return iterator.once || !iterator.items.empty();
    }
    default:
      return true;
  }
}

Error UndefinedError(const Value& value) {
  return {Code::kInvalidArgument, value.undefined_message()};
}

Error TypeError(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

Result<Value> BinaryOp(Vm& vm, Op op, const Value& left, const Value& right) {
  if (op == Op::kModulo && left.IsString()) {
    Args args;
    if (right.Is(Kind::kTuple)) {
      args.positional = right.items();
    } else {
      args.positional.push_back(right);
    }
    HEARTH_ASSIGN(std::string text, FormatPercent(vm, left.text(), args));
    return Value::String(std::move(text));
  }
  if (left.IsUndefined()) return UndefinedError(left);
  if (right.IsUndefined()) return UndefinedError(right);
  if (left.IsNumber() && right.IsNumber()) {
    if (left.IsIntegral() && right.IsIntegral()) {
      return IntOp(op, left.int_value(), right.int_value());
    }
    return FloatOp(op, left.AsDouble(), right.AsDouble());
  }
  if (op == Op::kAdd) return Add(vm, left, right);
  if (op == Op::kMultiply) {
    const auto repeats = [](const Value& a, const Value& b) {
      return (a.IsString() || a.IsSequence()) && b.IsIntegral();
    };
    if (repeats(left, right)) return Repeat(vm, left, right.int_value());
    if (repeats(right, left)) return Repeat(vm, right, left.int_value());
  }
  return BadOperands(op, left, right);
}

Result<Value> UnaryOp(Vm&, Op op, const Value& value) {
  if (op == Op::kNot) return Value::Bool(!Truthy(value));
  if (value.IsUndefined()) return UndefinedError(value);
  if (value.Is(Kind::kFloat)) {
    return op == Op::kNegative ? Value::Float(-value.float_value()) : value;
  }
  if (!value.IsIntegral()) {
    return TypeError(std::string("bad operand type for a sign: '") +
                     value.TypeName() + "'");
  }
  if (op == Op::kPositive) return Value::Int(value.int_value());
  if (value.int_value() == INT64_MIN) return TooLarge();
  return Value::Int(-value.int_value());
}

Result<bool> CompareOp(Vm& vm, Op op, const Value& left, const Value& right) {
  switch (op) {
    case Op::kEqual:
      return Equal(vm, left, right);
    case Op::kNotEqual: {
      HEARTH_ASSIGN(const bool equal, Equal(vm, left, right));
      return !equal;
    }
    case Op::kIn:
      return Contains(vm, right, left);
    case Op::kNotIn: {
      HEARTH_ASSIGN(const bool found, Contains(vm, right, left));
      return !found;
    }
    default:
      break;
  }
  if (left.IsUndefined()) return UndefinedError(left);
  if (right.IsUndefined()) return UndefinedError(right);
  const bool swapped = op == Op::kGreater || op == Op::kLessEqual;
  const bool negated = op == Op::kGreaterEqual || op == Op::kLessEqual;
  if (left.IsNumber() && right.IsNumber() &&
      (std::isnan(left.AsDouble()) || std::isnan(right.AsDouble()))) {
    return false;
  }
  Result<bool> less = swapped ? Less(vm, right, left) : Less(vm, left, right);
  if (!less.ok()) {
    if (less.error().code != Code::kInvalidArgument) return less;
    return BadOperands(op, left, right);
  }
  return less.value() != negated;
}

Result<std::vector<std::size_t>> SliceIndices(const Value& start,
                                              const Value& stop,
                                              const Value& step,
                                              std::size_t size) {
  for (const Value* bound : {&start, &stop, &step}) {
    if (!bound->IsNone() && !bound->IsIntegral()) {
      return TypeError("slice indices must be integers or none");
    }
  }
  const auto n = static_cast<std::int64_t>(size);
  const std::int64_t by = step.IsNone() ? 1 : step.int_value();
  if (by == 0) return TypeError("a slice step must not be zero");
  const std::int64_t low = by > 0 ? 0 : -1;
  const std::int64_t high = by > 0 ? n : n - 1;
  const auto clamp = [&](const Value& bound, std::int64_t fallback) {
    if (bound.IsNone()) return fallback;
    std::int64_t i = bound.int_value();
    if (i < 0) i = i < -n ? low : i + n;
    return std::clamp(i, low, std::max(low, high));
  };
  std::int64_t i = clamp(start, by > 0 ? low : high);
  const std::int64_t end = clamp(stop, by > 0 ? high : low);
  std::vector<std::size_t> indices;
  while (by > 0 ? i < end : i > end) {
    indices.push_back(static_cast<std::size_t>(i));
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  return indices;
}

}  // namespace hearth::jinja
