// Attributes, items, calls and iteration.
#include <algorithm>

#include "chat/jinja/run/builtins.h"
#include "chat/jinja/run/operators.h"
#include "chat/jinja/run/vm.h"
#include "chat/jinja/run/vm_guards.h"
#include "chat/jinja/value/text.h"

namespace hearth::jinja {

using Kind = Value::Kind;

namespace {

Value NoAttribute(const Value& object, const std::string& name) {
  return Value::Undefined(std::string("'") + object.TypeName() +
                          " object' has no attribute '" + name + "'");
}

Value BindMethod(const Value& self, NativeFn native, const std::string& name) {
  auto method = std::make_shared<FunctionObject>();
  method->native = native;
  method->self = self;
  method->name = name;
  return Value::Of(Kind::kFunction, std::move(method));
}

Result<Value> LoopCycle(Vm&, const Value& self, const Args& args) {
  if (args.positional.empty()) return TypeError("no items for cycling given");
  return args.positional[self.as<LoopObject>().index % args.positional.size()];
}

Result<Value> LoopChanged(Vm& vm, const Value& self, const Args& args) {
  auto& loop = self.as<LoopObject>();
  Value now = Value::Tuple(args.positional);
  if (now.depth() > vm.budget().limits().value_depth_max) {
    return {Code::kResourceFull, "a list or dict nests too deep"};
  }
  bool changed = true;
  if (loop.has_changed_value) {
    HEARTH_ASSIGN(const bool equal, Equal(vm, now, loop.changed_value));
    changed = !equal;
  }
  loop.has_changed_value = true;
  loop.changed_value = std::move(now);
  return Value::Bool(changed);
}

Value MacroAttribute(const Value& value, const std::string& name) {
  const auto& macro =
      static_cast<const MacroObject&>(value.as<FunctionObject>());
  if (name == "name") return Value::String(macro.name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const std::string& parameter : macro.node->parameter_names) {
      names.push_back(Value::String(parameter));
    }
    return Value::Tuple(std::move(names));
  }
  if (name == "caller") return Value::Bool(macro.node->uses_caller);
  if (name == "catch_varargs") return Value::Bool(macro.node->uses_varargs);
  if (name == "catch_kwargs") return Value::Bool(macro.node->uses_kwargs);
  return NoAttribute(value, name);
}

// An element by its index, which may count from the end.
const Value* ItemAt(const std::vector<Value>& items, const Value& key) {
  if (!key.IsIntegral()) return nullptr;
  const auto n = static_cast<std::int64_t>(items.size());
  std::int64_t i = key.int_value();
  if (i < 0) i += n;
  if (i < 0 || i >= n) return nullptr;
  return &items[static_cast<std::size_t>(i)];
}

}  // namespace

Result<Value> Vm::LoopAttribute(const Value& value, const std::string& name) {
  auto& loop = value.as<LoopObject>();
  const auto i = static_cast<std::int64_t>(loop.index);
  if (name == "index") return Value::Int(i + 1);
  if (name == "index0") return Value::Int(i);
  if (name == "first") return Value::Bool(i == 0);
  if (name == "depth") return Value::Int(loop.depth0 + 1);
  if (name == "depth0") return Value::Int(loop.depth0);
  if (name == "cycle") return BindMethod(value, LoopCycle, name);
  if (name == "changed") return BindMethod(value, LoopChanged, name);
  if (name == "previtem") {
    if (i > 0 && loop.index <= loop.taken.size()) {
      return loop.taken[loop.index - 1];
    }
    return Value::Undefined("there is no previous item");
  }
  if (name == "last" || name == "nextitem") {
    ++loop.index;
    Result<bool> more = LoopHasNext(&loop);
    --loop.index;
    if (!more.ok()) return more.error();
    if (name == "last") return Value::Bool(!more.value());
    if (more.value()) return loop.taken[loop.index + 1];
    return Value::Undefined("there is no next item");
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    HEARTH_TRY(LoopTakeAll(&loop));
    const auto n = static_cast<std::int64_t>(loop.taken.size());
    if (name == "length") return Value::Int(n);
    return Value::Int(name == "revindex" ? n - i : n - i - 1);
  }
  return NoAttribute(value, name);
}

Result<Value> Vm::GetAttribute(const Value& object, const std::string& name) {
  if (object.IsUndefined()) return UndefinedError(object);
  bool is_unsafe = false;
  if (NativeFn method = FindMethod(object, name, &is_unsafe)) {
    return BindMethod(object, method, name);
  }
  if (is_unsafe) {
    return Value::Undefined("access to attribute '" + name + "' of '" +
                            object.TypeName() + "' object is unsafe");
  }
  switch (object.kind()) {
    case Kind::kDict:
      if (const Value* value = object.as<DictObject>().Find(name)) {
        return *value;
      }
      break;
    case Kind::kNamespace:
      for (const auto& [key, value] : object.as<NamespaceObject>().attributes) {
        if (key == name) return value;
      }
      break;
    case Kind::kTuple:
      if (object.as<ListObject>().is_group) {
        if (name == "grouper") return object.items()[0];
        if (name == "list") return object.items()[1];
      }
      break;
    case Kind::kLoop:
      return LoopAttribute(object, name);
    case Kind::kFunction:
      if (object.as<FunctionObject>().native == nullptr) {
        return MacroAttribute(object, name);
      }
      break;
    default:
      break;
  }
  return NoAttribute(object, name);
}

Result<Value> Vm::GetItem(const Value& object, const Value& key) {
  switch (object.kind()) {
    case Kind::kUndefined:
      return UndefinedError(object);
    case Kind::kDict:
      if (key.IsString()) {
        HEARTH_TRY(budget_.Touch(key.text().size()));
      }
      if (const Value* value = object.as<DictObject>().Find(key)) {
        return *value;
      }
      break;
    case Kind::kList:
    case Kind::kTuple:
      if (const Value* item = ItemAt(object.items(), key)) return *item;
      break;
    case Kind::kIterator: {
      const auto& iterator = object.as<IteratorObject>();
      if (iterator.repr.empty()) break;  // only a range has positions
      if (const Value* item = ItemAt(iterator.items, key)) return *item;
      break;
    }
    case Kind::kString: {
      if (!key.IsIntegral()) break;
      const std::string& text = object.text();
      HEARTH_TRY(budget_.Touch(text.size()));
      std::int64_t i = key.int_value();
      if (i < 0) i += static_cast<std::int64_t>(CountPoints(text));
      if (i < 0 || i >= static_cast<std::int64_t>(text.size())) break;
      const std::size_t begin = PointOffset(text, static_cast<std::size_t>(i));
      if (begin >= text.size()) break;
      std::size_t end = begin;
      DecodePoint(text, &end);
      return Value::String(text.substr(begin, end - begin));
    }
    default:
      break;
  }
  if (key.IsString()) return GetAttribute(object, key.text());
  return Value::Undefined(std::string("'") + object.TypeName() +
                          " object' has no such element");
}

Result<Value> Vm::Call(const Value& callee, const Args& args) {
  if (callee.IsUndefined()) return UndefinedError(callee);
  if (callee.Is(Kind::kLoop)) return CallLoop(callee, args);
  if (!callee.Is(Kind::kFunction)) {
    return TypeError(std::string("'") + callee.TypeName() +
                     "' object is not callable");
  }
  const auto& function = callee.as<FunctionObject>();
  if (function.native == nullptr) {
    return CallMacro(static_cast<const MacroObject&>(function), args);
  }
  if (function.self.IsString()) {
    HEARTH_TRY(budget_.Touch(function.self.text().size()));
  }
  HEARTH_ASSIGN(Value result, function.native(*this, function.self, args));
  if (result.IsString()) {
    HEARTH_TRY(budget_.BuildString(result.text().size()));
  }
  return result;
}

Result<Value> Vm::CallMacro(const MacroObject& macro, const Args& args) {
  const std::shared_ptr<Scope> scope = NewScope(macro.scope);
  CaptureGuard capture(this, scope);
  HEARTH_TRY(BindMacro(macro, args, scope.get()));
  HEARTH_TRY(ExecBody(macro.node->body));
  return capture.Take();
}

Result<void> Vm::BindMacro(const MacroObject& macro, const Args& args,
                           Scope* scope) {
  const MacroNode& node = *macro.node;
  const std::size_t n = node.parameters.size();
  const auto parameter_index = [&](const std::string& name) {
    const auto& names = node.parameter_names;
    return static_cast<std::size_t>(
        std::find(names.begin(), names.end(), name) - names.begin());
  };
  std::vector<Value> more;
  for (std::size_t i = n; i < args.positional.size(); ++i) {
    more.push_back(args.positional[i]);
  }
  if (!more.empty() && !node.uses_varargs) {
    return TypeError("macro '" + node.name + "' takes at most " +
                     std::to_string(n) + " arguments");
  }
  auto rest = std::make_shared<DictObject>();
  const Value* caller = nullptr;
  std::vector<const Value*> given(n, nullptr);
  for (std::size_t i = 0; i < std::min(n, args.positional.size()); ++i) {
    given[i] = &args.positional[i];
  }
  for (const auto& [name, value] : args.named) {
    const std::size_t i = parameter_index(name);
    if (i < n && given[i] != nullptr) {
      return TypeError("macro '" + node.name + "' got '" + name + "' twice");
    }
    if (i < n) {
      given[i] = &value;
    } else if (name == "caller" && node.uses_caller) {
      caller = &value;
    } else if (node.uses_kwargs) {
      rest->Set(Value::String(name), value);
    } else {
      return TypeError("macro '" + node.name + "' has no argument '" + name +
                       "'");
    }
  }
  if (node.uses_caller) {
    scope->Set(program_.caller, caller != nullptr
                                    ? *caller
                                    : Value::Undefined("no caller defined"));
  }
  if (node.uses_kwargs) {
    scope->Set(program_.kwargs, Value::Of(Kind::kDict, std::move(rest)));
  }
  if (node.uses_varargs) {
    scope->Set(program_.varargs, Value::Tuple(std::move(more)));
  }
  // In order, because a default may use the parameters before it.
  for (std::size_t i = 0; i < n; ++i) {
    Value value;
    const std::size_t first_default = n - node.defaults.size();
    if (given[i] != nullptr) {
      value = *given[i];
    } else if (i >= first_default) {
      HEARTH_ASSIGN(value, Eval(*node.defaults[i - first_default]));
    } else {
      value = Value::Undefined("parameter '" + node.parameter_names[i] +
                               "' was not provided");
    }
    scope->Set(node.parameters[i], std::move(value));
  }
  return {};
}

Result<Value> Vm::CallLoop(const Value& value, const Args& args) {
  const auto& loop = value.as<LoopObject>();
  if (loop.outer == nullptr || !loop.statement->recursive) {
    return TypeError("only the loop of a recursive for can be called");
  }
  if (args.positional.size() != 1) {
    return TypeError("loop() takes the items of the inner loop");
  }
  CaptureGuard capture(this, loop.outer);
  HEARTH_TRY(RunLoop(*loop.statement, args.positional[0], loop.depth0 + 1));
  return capture.Take();
}

Result<Value> Vm::ApplyFilter(const std::string& name, const Value& input,
                              const Args& args) {
  const NativeFn filter = FindFilter(name);
  if (filter == nullptr) {
    return {Code::kUnsupported, "no filter named '" + name + "'"};
  }
  HEARTH_TRY(budget_.Step());
  if (input.IsString()) {
    HEARTH_TRY(budget_.Touch(input.text().size()));
  }
  HEARTH_ASSIGN(Value result, filter(*this, input, args));
  if (result.IsString()) {
    HEARTH_TRY(budget_.BuildString(result.text().size()));
  }
  return result;
}

Result<bool> Vm::ApplyTest(const std::string& name, const Value& input,
                           const Args& args) {
  const NativeFn test = FindTest(name);
  if (test == nullptr) {
    return {Code::kUnsupported, "no test named '" + name + "'"};
  }
  HEARTH_TRY(budget_.Step());
  HEARTH_ASSIGN(const Value result, test(*this, input, args));
  return Truthy(result);
}

Result<std::vector<Value>> Vm::Iterate(const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::kUndefined:
      return items;
    case Kind::kList:
    case Kind::kTuple:
      HEARTH_TRY(budget_.Step(value.items().size()));
      return value.items();
    case Kind::kDict: {
      const auto& dict = value.as<DictObject>();
      HEARTH_TRY(budget_.Step(dict.size()));
      for (const auto& [key, entry] : dict.entries()) items.push_back(key);
      return items;
    }
    case Kind::kIterator: {
      auto& iterator = value.as<IteratorObject>();
      HEARTH_TRY(budget_.Step(iterator.items.size() - iterator.next));
      items.assign(
          iterator.items.begin() + static_cast<std::ptrdiff_t>(iterator.next),
          iterator.items.end());
      if (iterator.once) iterator.next = iterator.items.size();
      return items;
    }
    case Kind::kString: {
      const std::string& text = value.text();
      HEARTH_TRY(budget_.BuildItems(CountPoints(text)));
      for (std::size_t pos = 0; pos < text.size();) {
        const std::size_t begin = pos;
        DecodePoint(text, &pos);
        items.push_back(Value::String(text.substr(begin, pos - begin)));
      }
      return items;
    }
    default:
      return TypeError(std::string("'") + value.TypeName() +
                       "' object is not iterable");
  }
}

Value Vm::Generator(std::vector<Value> items) {
  Value list = Value::List(std::move(items));
  auto iterator = std::make_shared<IteratorObject>();
  iterator->depth = list.depth();
  iterator->items = std::move(list.as<ListObject>().items);
  return Value::Of(Kind::kIterator, std::move(iterator));
}

Value Vm::NewNamespace() {
  auto ns = std::make_shared<NamespaceObject>();
  namespaces_.push_back(ns);
  return Value::Of(Kind::kNamespace, std::move(ns));
}

}  // namespace hearth::jinja
