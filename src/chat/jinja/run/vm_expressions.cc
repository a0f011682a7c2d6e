#include "chat/jinja/run/operators.h"
#include "chat/jinja/run/vm.h"
#include "chat/jinja/value/text.h"

namespace hearth::jinja {

using Kind = Value::Kind;

Result<Value> Vm::Eval(const Expr& expr) {
  Result<void> paid = budget_.Step();
  if (!paid.ok()) return Locate(paid.error(), expr.line);
  if (depth_ >= budget_.limits().depth_max) {
    return Locate({Code::kResourceFull, "the template recurses too deep"},
                  expr.line);
  }
  ++depth_;
  Result<Value> value = EvalKind(expr);
  --depth_;
  if (!value.ok()) return Locate(value.error(), expr.line);
  if (value->depth() > budget_.limits().value_depth_max) {
    return Locate({Code::kResourceFull, "a list or dict nests too deep"},
                  expr.line);
  }
  return value;
}

Result<Value> Vm::EvalKind(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kConst:
      return expr.constant;
    case ExprKind::kName:
      return EvalName(expr);
    case ExprKind::kList:
    case ExprKind::kTuple:
      return EvalItems(expr);
    case ExprKind::kDict:
      return EvalDict(expr);
    case ExprKind::kAttribute:
      return EvalAttribute(expr);
    case ExprKind::kItem:
      return EvalItem(expr);
    case ExprKind::kSlice:
      return TypeError("a slice stands alone");
    case ExprKind::kCall:
      return EvalCall(expr, nullptr);
    case ExprKind::kFilter:
      return EvalFilter(expr);
    case ExprKind::kTest:
      return EvalTest(expr);
    case ExprKind::kUnary:
      return EvalUnary(expr);
    case ExprKind::kBinary:
      return EvalBinary(expr);
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return EvalLogic(expr);
    case ExprKind::kConcat:
      return EvalConcat(expr);
    case ExprKind::kCompare:
      return EvalCompare(expr);
    case ExprKind::kConditional:
      return EvalConditional(expr);
  }
  return Value();
}

Result<Value> Vm::EvalName(const Expr& expr) {
  const Value* value = scope_->Find(expr.symbol);
  if (value != nullptr) return *value;
  return globals_[static_cast<std::size_t>(expr.symbol)];
}

Result<Value> Vm::EvalItems(const Expr& expr) {
  HEARTH_TRY(budget_.BuildItems(expr.args.size()));
  std::vector<Value> items;
  items.reserve(expr.args.size());
  for (const ExprPtr& arg : expr.args) {
    HEARTH_ASSIGN(Value item, Eval(*arg));
    items.push_back(std::move(item));
  }
  return expr.kind == ExprKind::kList ? Value::List(std::move(items))
                                      : Value::Tuple(std::move(items));
}

Result<Value> Vm::EvalDict(const Expr& expr) {
  HEARTH_TRY(budget_.BuildItems(expr.args.size()));
  auto dict = std::make_shared<DictObject>();
  for (std::size_t i = 0; i + 1 < expr.args.size(); i += 2) {
    HEARTH_ASSIGN(Value key, Eval(*expr.args[i]));
    HEARTH_ASSIGN(Value value, Eval(*expr.args[i + 1]));
    const char* type = key.TypeName();
    if (key.IsString()) {
      HEARTH_TRY(budget_.BuildString(key.text().size()));
    }
    if (!dict->Set(std::move(key), std::move(value))) {
      return TypeError(std::string("unhashable type: '") + type + "'");
    }
  }
  return Value::Of(Kind::kDict, std::move(dict));
}

Result<Value> Vm::EvalAttribute(const Expr& expr) {
  HEARTH_ASSIGN(const Value object, Eval(*expr.target));
  return GetAttribute(object, expr.name);
}

Result<Value> Vm::EvalItem(const Expr& expr) {
  HEARTH_ASSIGN(const Value object, Eval(*expr.target));
  if (expr.args[0]->kind == ExprKind::kSlice) {
    return EvalSlice(object, *expr.args[0]);
  }
  HEARTH_ASSIGN(const Value key, Eval(*expr.args[0]));
  return GetItem(object, key);
}

Result<Value> Vm::EvalSlice(const Value& object, const Expr& slice) {
  Value bounds[3] = {Value::None(), Value::None(), Value::None()};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!slice.args[i]) continue;
    HEARTH_ASSIGN(bounds[i], Eval(*slice.args[i]));
  }
  if (object.IsUndefined()) return UndefinedError(object);
  if (object.IsString()) {
    HEARTH_TRY(budget_.BuildString(object.text().size()));
    const std::u32string points = ToPoints(object.text());
    HEARTH_ASSIGN(const std::vector<std::size_t> indices,
                  SliceIndices(bounds[0], bounds[1], bounds[2], points.size()));
    std::string out;
    for (const std::size_t i : indices) AppendPoint(points[i], &out);
    return object.is_markup() ? Value::Markup(std::move(out))
                              : Value::String(std::move(out));
  }
  const bool is_view =
      object.Is(Kind::kIterator) && !object.as<IteratorObject>().repr.empty();
  if (!object.IsSequence() && !is_view) {
    return TypeError(std::string("'") + object.TypeName() +
                     "' object is not subscriptable");
  }
  const std::vector<Value>& items =
      is_view ? object.as<IteratorObject>().items : object.items();
  HEARTH_ASSIGN(const std::vector<std::size_t> indices,
                SliceIndices(bounds[0], bounds[1], bounds[2], items.size()));
  HEARTH_TRY(budget_.BuildItems(indices.size()));
  std::vector<Value> out;
  out.reserve(indices.size());
  for (const std::size_t i : indices) out.push_back(items[i]);
  return object.Is(Kind::kTuple) ? Value::Tuple(std::move(out))
                                 : Value::List(std::move(out));
}

Result<Args> Vm::EvalArgs(const Expr& expr) {
  Args args;
  for (const ExprPtr& arg : expr.args) {
    HEARTH_ASSIGN(Value value, Eval(*arg));
    args.positional.push_back(std::move(value));
  }
  for (const auto& [name, arg] : expr.named) {
    HEARTH_ASSIGN(Value value, Eval(*arg));
    args.named.emplace_back(name, std::move(value));
  }
  if (expr.star) {
    HEARTH_ASSIGN(const Value more, Eval(*expr.star));
    HEARTH_ASSIGN(std::vector<Value> items, Iterate(more));
    HEARTH_TRY(budget_.BuildItems(items.size()));
    for (Value& item : items) args.positional.push_back(std::move(item));
  }
  if (expr.star_star) {
    HEARTH_ASSIGN(const Value more, Eval(*expr.star_star));
    if (!more.IsDict()) return TypeError("the argument behind ** is no dict");
    HEARTH_TRY(budget_.BuildItems(more.as<DictObject>().size()));
    for (const auto& [key, value] : more.as<DictObject>().entries()) {
      if (!key.IsString()) return TypeError("argument names must be strings");
      args.named.emplace_back(key.text(), value);
    }
  }
  return args;
}

Result<Value> Vm::EvalCall(const Expr& expr, const Value* caller) {
  HEARTH_ASSIGN(const Value callee, Eval(*expr.target));
  HEARTH_ASSIGN(Args args, EvalArgs(expr));
  if (caller != nullptr) args.named.emplace_back("caller", *caller);
  return Call(callee, args);
}

Result<Value> Vm::EvalFilter(const Expr& expr) {
  Value input = block_input_;
  if (expr.target) {
    HEARTH_ASSIGN(input, Eval(*expr.target));
  }
  HEARTH_ASSIGN(const Args args, EvalArgs(expr));
  return ApplyFilter(expr.name, input, args);
}

Result<Value> Vm::EvalTest(const Expr& expr) {
  HEARTH_ASSIGN(const Value input, Eval(*expr.target));
  HEARTH_ASSIGN(const Args args, EvalArgs(expr));
  HEARTH_ASSIGN(const bool passes, ApplyTest(expr.name, input, args));
  return Value::Bool(passes);
}

Result<Value> Vm::EvalUnary(const Expr& expr) {
  HEARTH_ASSIGN(const Value value, Eval(*expr.args[0]));
  return UnaryOp(*this, expr.op, value);
}

Result<Value> Vm::EvalBinary(const Expr& expr) {
  HEARTH_ASSIGN(const Value left, Eval(*expr.args[0]));
  HEARTH_ASSIGN(const Value right, Eval(*expr.args[1]));
  return BinaryOp(*this, expr.op, left, right);
}

Result<Value> Vm::EvalLogic(const Expr& expr) {
  HEARTH_ASSIGN(Value left, Eval(*expr.args[0]));
  const bool decides = Truthy(left) == (expr.kind == ExprKind::kOr);
  if (decides) return left;
  return Eval(*expr.args[1]);
}

Result<Value> Vm::EvalConcat(const Expr& expr) {
  std::string out;
  for (const ExprPtr& arg : expr.args) {
    HEARTH_ASSIGN(const Value value, Eval(*arg));
    if (value.IsString()) {
      out += value.text();
    } else {
      HEARTH_ASSIGN(const std::string text, ToText(*this, value));
      out += text;
    }
    if (out.size() > budget_.limits().string_bytes_max) break;
  }
  HEARTH_TRY(budget_.BuildString(out.size()));
  return Value::String(std::move(out));
}

Result<Value> Vm::EvalCompare(const Expr& expr) {
  HEARTH_ASSIGN(Value left, Eval(*expr.args[0]));
  for (std::size_t i = 0; i < expr.ops.size(); ++i) {
    HEARTH_ASSIGN(Value right, Eval(*expr.args[i + 1]));
    HEARTH_ASSIGN(const bool holds, CompareOp(*this, expr.ops[i], left, right));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Result<Value> Vm::EvalConditional(const Expr& expr) {
  HEARTH_ASSIGN(const Value condition, Eval(*expr.args[1]));
  if (Truthy(condition)) return Eval(*expr.args[0]);
  if (expr.args[2]) return Eval(*expr.args[2]);
  return Value::Undefined(
      "the inline if-expression has no else and its condition is false");
}

}  // namespace hearth::jinja
