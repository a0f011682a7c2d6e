// Methods of list, tuple, dict and generators, and the global functions.
#include <algorithm>
#include <array>

#include "chat/jinja/run/builtins.h"
#include "chat/jinja/run/operators.h"
#include "chat/jinja/value/text_ops.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

// A view: items that print as "dict_keys([...])" and are not JSON.
Value View(const char* type, std::vector<Value> items) {
  const Value list = Value::List(std::move(items));
  auto view = std::make_shared<IteratorObject>();
  view->depth = list.depth();
  view->items = list.items();
  view->type = type;
  view->once = false;
  return Value::Of(Kind::kIterator, std::move(view));
}

Result<Value> DictItems(Vm& vm, const Value& self, const Args& args) {
  HEARTH_TRY(BindArgs(args, "items", {}));
  HEARTH_TRY(vm.budget().BuildItems(3 * self.as<DictObject>().size()));
  std::vector<Value> items;
  for (const auto& [key, value] : self.as<DictObject>().entries()) {
    items.push_back(Value::Tuple({key, value}));
  }
  return View("dict_items", std::move(items));
}

Result<Value> DictKeys(Vm& vm, const Value& self, const Args& args) {
  HEARTH_TRY(BindArgs(args, "keys", {}));
  HEARTH_ASSIGN(std::vector<Value> items, vm.Iterate(self));
  HEARTH_TRY(vm.budget().BuildItems(items.size()));
  return View("dict_keys", std::move(items));
}

Result<Value> DictValues(Vm& vm, const Value& self, const Args& args) {
  HEARTH_TRY(BindArgs(args, "values", {}));
  HEARTH_TRY(vm.budget().BuildItems(self.as<DictObject>().size()));
  std::vector<Value> items;
  for (const auto& [key, value] : self.as<DictObject>().entries()) {
    items.push_back(value);
  }
  return View("dict_values", std::move(items));
}

Result<Value> DictGet(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "get", {"key", "default"}, 1));
  std::string hash;
  if (!HashKey(bound[0], &hash) && !bound[0].IsUndefined()) {
    return TypeError(std::string("unhashable type: '") + bound[0].TypeName() +
                     "'");
  }
  if (const Value* value = self.as<DictObject>().Find(bound[0])) return *value;
  const bool given = args.positional.size() > 1 || !args.named.empty();
  return given ? bound[1] : Value::None();
}

Result<Value> Copy(Vm&, const Value& self, const Args& args) {
  HEARTH_TRY(BindArgs(args, "copy", {}));
  return self;  // immutable
}

Result<Value> SequenceIndex(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "index", {"value"}, 1));
  for (std::size_t i = 0; i < self.items().size(); ++i) {
    HEARTH_ASSIGN(const bool equal, Equal(vm, self.items()[i], bound[0]));
    if (equal) return Value::Int(static_cast<std::int64_t>(i));
  }
  return TypeError("the value is not in the list");
}

Result<Value> SequenceCount(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "count", {"value"}, 1));
  std::int64_t n = 0;
  for (const Value& item : self.items()) {
    HEARTH_ASSIGN(const bool equal, Equal(vm, item, bound[0]));
    if (equal) ++n;
  }
  return Value::Int(n);
}

Result<Value> Range(Vm& vm, const Value&, const Args& args) {
  std::array<std::int64_t, 3> bounds = {0, 0, 1};
  const std::size_t n = args.positional.size();
  if (n < 1 || n > 3 || !args.named.empty()) {
    return TypeError("range takes one to three numbers");
  }
  for (std::size_t i = 0; i < n; ++i) {
    const Value& value = args.positional[i];
    if (value.IsUndefined()) return UndefinedError(value);
    if (!value.IsIntegral()) {
      return TypeError(std::string("'") + value.TypeName() +
                       "' object cannot be interpreted as an integer");
    }
    bounds[n == 1 ? 1 : i] = value.int_value();
  }
  const auto [start, stop, step] = bounds;
  if (step == 0) return TypeError("range: the step must not be zero");
  const std::int64_t limit = vm.budget().limits().range_max;
  std::vector<Value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(items.size()) >= limit) {
      return {Code::kResourceFull,
              "range gives more than " + std::to_string(limit) + " numbers"};
    }
    items.push_back(Value::Int(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  HEARTH_TRY(vm.budget().BuildItems(items.size()));
  const Value view = View("range", std::move(items));
  std::string repr =
      "range(" + std::to_string(start) + ", " + std::to_string(stop);
  if (step != 1) repr += ", " + std::to_string(step);
  view.as<IteratorObject>().repr = repr + ")";
  return view;
}

// What dict() and namespace() start from: a dict or pairs, then named values.
Result<std::vector<std::pair<Value, Value>>> InitialEntries(Vm& vm,
                                                            const Args& args) {
  std::vector<std::pair<Value, Value>> entries;
  if (args.positional.size() > 1) return TypeError("at most one argument");
  for (const Value& source : args.positional) {
    if (source.IsUndefined()) continue;
    if (source.IsDict()) {
      entries = source.as<DictObject>().entries();
      continue;
    }
    HEARTH_ASSIGN(const std::vector<Value> pairs, vm.Iterate(source));
    for (const Value& pair : pairs) {
      HEARTH_ASSIGN(const std::vector<Value> parts, vm.Iterate(pair));
      if (parts.size() != 2) return TypeError("a dict is made of pairs");
      entries.emplace_back(parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : args.named) {
    entries.emplace_back(Value::String(name), value);
  }
  HEARTH_TRY(vm.budget().BuildItems(2 * entries.size()));
  return entries;
}

Result<Value> Dict(Vm& vm, const Value&, const Args& args) {
  HEARTH_ASSIGN(const auto entries, InitialEntries(vm, args));
  auto dict = std::make_shared<DictObject>();
  for (const auto& [key, value] : entries) {
    if (!dict->Set(key, value)) {
      return TypeError(std::string("unhashable type: '") + key.TypeName() +
                       "'");
    }
  }
  return Value::Of(Kind::kDict, std::move(dict));
}

Result<Value> Namespace(Vm& vm, const Value&, const Args& args) {
  HEARTH_ASSIGN(const auto entries, InitialEntries(vm, args));
  HEARTH_TRY(vm.budget().BuildItems(4));
  const Value ns = vm.NewNamespace();
  // Through a dict, so that a name given twice is there once.
  DictObject unique;
  for (const auto& [key, value] : entries) {
    if (!key.IsString() || !unique.Set(key, value)) {
      return TypeError("names in a namespace must be strings");
    }
  }
  for (const auto& [key, value] : unique.entries()) {
    ns.as<NamespaceObject>().attributes.emplace_back(key.text(), value);
  }
  return ns;
}

Result<Value> RaiseException(Vm& vm, const Value&, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "raise_exception", {"message"}, 1));
  HEARTH_ASSIGN(std::string message, ToText(vm, bound[0]));
  return Error{Code::kInvalidArgument, std::move(message)};
}

Result<Value> StrftimeNow(Vm& vm, const Value&, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "strftime_now", {"format"}, 1));
  HEARTH_ASSIGN(const std::string format, StringArg(bound[0], "strftime_now"));
  HEARTH_ASSIGN(std::string text,
                FormatTime(format, vm.now().time_since_epoch().count()));
  return Value::String(std::move(text));
}

bool OneOf(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

NativeFn FindMethod(const Value& self, const std::string& name,
                    bool* is_unsafe) {
  switch (self.kind()) {
    case Kind::kString:
      return FindStringMethod(name);
    case Kind::kDict:
      *is_unsafe =
          OneOf(name, {"clear", "pop", "popitem", "setdefault", "update"});
      if (name == "items") return DictItems;
      if (name == "keys") return DictKeys;
      if (name == "values") return DictValues;
      if (name == "get") return DictGet;
      if (name == "copy") return Copy;
      return nullptr;
    case Kind::kList:
      *is_unsafe = OneOf(name, {"append", "clear", "pop", "reverse", "insert",
                                "sort", "extend", "remove"});
      if (name == "copy") return Copy;
      [[fallthrough]];
    case Kind::kTuple:
      if (name == "index") return SequenceIndex;
      if (name == "count") return SequenceCount;
      return nullptr;
    default:
      return nullptr;
  }
}

Value FindGlobal(const std::string& name) {
  NativeFn native = nullptr;
  if (name == "range") native = Range;
  if (name == "dict") native = Dict;
  if (name == "namespace") native = Namespace;
  if (name == "raise_exception") native = RaiseException;
  if (name == "strftime_now") native = StrftimeNow;
  if (native == nullptr) return Value();
  auto function = std::make_shared<FunctionObject>();
  function->native = native;
  function->name = name;
  return Value::Of(Kind::kFunction, std::move(function));
}

}  // namespace hearth::jinja
