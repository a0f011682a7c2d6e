// The tests behind `is`.
#include <cmath>
#include <unordered_map>

#include "chat/jinja/run/builtins.h"
#include "chat/jinja/run/operators.h"
#include "chat/jinja/value/text.h"
#include "chat/jinja/value/text_ops.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

template <bool (*kPredicate)(const Value&)>
Result<Value> Check(Vm&, const Value& self, const Args& args) {
  HEARTH_TRY(BindArgs(args, "test", {}));
  return Value::Bool(kPredicate(self));
}

bool IsTrue(const Value& v) { return v.Is(Kind::kBool) && v.bool_value(); }
bool IsFalse(const Value& v) { return v.Is(Kind::kBool) && !v.bool_value(); }
bool IsBoolean(const Value& v) { return v.Is(Kind::kBool); }
bool IsInteger(const Value& v) {
  return v.Is(Kind::kInt) || v.Is(Kind::kBigInt);
}
bool IsFloat(const Value& v) { return v.Is(Kind::kFloat); }
bool IsNumber(const Value& v) { return v.IsNumber() || v.Is(Kind::kBigInt); }
bool IsString(const Value& v) { return v.IsString(); }
bool IsMapping(const Value& v) { return v.IsDict(); }
bool IsNone(const Value& v) { return v.IsNone(); }
bool IsDefined(const Value& v) { return !v.IsUndefined(); }
bool IsUndefined(const Value& v) { return v.IsUndefined(); }
bool IsEscaped(const Value& v) { return v.is_markup(); }
bool IsCallable(const Value& v) {
  // Python's Undefined has a __call__, too.
  return v.Is(Kind::kFunction) || v.Is(Kind::kLoop) || v.IsUndefined();
}

// Has a length and elements by key: strings and dicts count.
bool IsSequence(const Value& v) {
  return v.IsString() || v.IsSequence() || v.IsDict() || v.IsUndefined() ||
         (v.Is(Kind::kIterator) && !v.as<IteratorObject>().repr.empty());
}

bool IsIterable(const Value& v) {
  return v.IsString() || v.IsSequence() || v.IsDict() || v.IsUndefined() ||
         v.Is(Kind::kIterator) || v.Is(Kind::kLoop);
}

// All letters have the case, and there is a letter.
template <bool kUpper>
Result<Value> HasCase(Vm& vm, const Value& self, const Args&) {
  HEARTH_ASSIGN(const std::string text, ToText(vm, self));
  bool has_letter = false;
  for (std::size_t pos = 0; pos < text.size();) {
    const char32_t c = DecodePoint(text, &pos);
    if (!IsCasedPoint(c)) continue;
    has_letter = true;
    if ((kUpper ? UpperPoint(c) : LowerPoint(c)) != c) {
      return Value::Bool(false);
    }
  }
  return Value::Bool(has_letter);
}

Result<Value> Remainder(Vm& vm, const Value& self, std::int64_t divisor) {
  return BinaryOp(vm, Op::kModulo, self, Value::Int(divisor));
}

template <int kRemainder>
Result<Value> Parity(Vm& vm, const Value& self, const Args& args) {
  HEARTH_TRY(BindArgs(args, "test", {}));
  if (self.IsString()) return TypeError("a string is neither odd nor even");
  HEARTH_ASSIGN(const Value rest, Remainder(vm, self, 2));
  return Value::Bool(rest.AsDouble() == kRemainder);
}

Result<Value> DivisibleBy(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "divisibleby", {"num"}, 1));
  if (self.IsString()) return TypeError("a string cannot be divided");
  HEARTH_ASSIGN(const Value rest, BinaryOp(vm, Op::kModulo, self, bound[0]));
  return Value::Bool(rest.AsDouble() == 0);
}

template <Op kOp>
Result<Value> Compare(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "test", {"other"}, 1));
  HEARTH_ASSIGN(const bool holds, CompareOp(vm, kOp, self, bound[0]));
  return Value::Bool(holds);
}

Result<Value> SameAs(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "sameas", {"other"}, 1));
  return Value::Bool(Same(self, bound[0]));
}

template <NativeFn (*kFind)(const std::string&)>
Result<Value> Known(Vm&, const Value& self, const Args&) {
  return Value::Bool(self.IsString() && kFind(self.text()) != nullptr);
}

}  // namespace

NativeFn FindTest(const std::string& name) {
  static const std::unordered_map<std::string, NativeFn> kTests = {
      {"boolean", Check<IsBoolean>},
      {"callable", Check<IsCallable>},
      {"defined", Check<IsDefined>},
      {"divisibleby", DivisibleBy},
      {"escaped", Check<IsEscaped>},
      {"even", Parity<0>},
      {"false", Check<IsFalse>},
      {"filter", Known<FindFilter>},
      {"float", Check<IsFloat>},
      {"integer", Check<IsInteger>},
      {"iterable", Check<IsIterable>},
      {"lower", HasCase<false>},
      {"mapping", Check<IsMapping>},
      {"none", Check<IsNone>},
      {"number", Check<IsNumber>},
      {"odd", Parity<1>},
      {"sameas", SameAs},
      {"sequence", Check<IsSequence>},
      {"string", Check<IsString>},
      {"test", Known<FindTest>},
      {"true", Check<IsTrue>},
      {"undefined", Check<IsUndefined>},
      {"upper", HasCase<true>},
      {"==", Compare<Op::kEqual>},
      {"eq", Compare<Op::kEqual>},
      {"equalto", Compare<Op::kEqual>},
      {"!=", Compare<Op::kNotEqual>},
      {"ne", Compare<Op::kNotEqual>},
      {">", Compare<Op::kGreater>},
      {"gt", Compare<Op::kGreater>},
      {"greaterthan", Compare<Op::kGreater>},
      {">=", Compare<Op::kGreaterEqual>},
      {"ge", Compare<Op::kGreaterEqual>},
      {"<", Compare<Op::kLess>},
      {"lt", Compare<Op::kLess>},
      {"lessthan", Compare<Op::kLess>},
      {"<=", Compare<Op::kLessEqual>},
      {"le", Compare<Op::kLessEqual>},
      {"in", Compare<Op::kIn>},
  };
  const auto it = kTests.find(name);
  return it == kTests.end() ? nullptr : it->second;
}

}  // namespace hearth::jinja
