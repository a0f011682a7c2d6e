// Filters over lists and dicts.
#include <algorithm>
#include <unordered_map>

#include "chat/jinja/run/builtins.h"
#include "chat/jinja/run/operators.h"
#include "chat/jinja/value/text.h"
#include "chat/jinja/value/text_ops.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

// select, reject, selectattr, rejectattr.
Result<Value> Pick(Vm& vm, const Value& self, const Args& args, bool keep,
                   bool by_attribute) {
  Args rest = args;
  Value attribute;
  if (by_attribute) {
    if (rest.positional.empty()) {
      return TypeError("selectattr needs the name of an attribute");
    }
    attribute = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  std::string test;
  if (!rest.positional.empty()) {
    HEARTH_ASSIGN(test, StringArg(rest.positional[0], "the name of a test"));
    rest.positional.erase(rest.positional.begin());
  }
  // The reference does not look into what counts as false, so none is fine.
  if (!Truthy(self)) return vm.Generator({});
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  HEARTH_TRY(vm.budget().BuildItems(items.size()));
  std::vector<Value> picked;
  for (const Value& item : items) {
    Value subject = item;
    if (by_attribute) {
      HEARTH_ASSIGN(subject, AttributePath(vm, item, attribute));
    }
    bool passes = Truthy(subject);
    if (!test.empty()) {
      HEARTH_ASSIGN(passes, vm.ApplyTest(test, subject, rest));
    }
    if (passes == keep) picked.push_back(item);
  }
  return vm.Generator(std::move(picked));
}

template <bool kKeep, bool kByAttribute>
Result<Value> PickFilter(Vm& vm, const Value& self, const Args& args) {
  return Pick(vm, self, args, kKeep, kByAttribute);
}

Result<Value> MapFilter(Vm& vm, const Value& self, const Args& args) {
  if (!Truthy(self)) return vm.Generator({});
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  HEARTH_TRY(vm.budget().BuildItems(items.size()));
  std::vector<Value> mapped;
  mapped.reserve(items.size());
  const Value* attribute = args.FindNamed("attribute");
  if (args.positional.empty() && attribute != nullptr) {
    const Value* fallback = args.FindNamed("default");
    for (const Value& item : items) {
      HEARTH_ASSIGN(Value value, AttributePath(vm, item, *attribute));
      if (value.IsUndefined() && fallback != nullptr) value = *fallback;
      mapped.push_back(std::move(value));
    }
    return vm.Generator(std::move(mapped));
  }
  if (args.positional.empty()) return TypeError("map needs a filter's name");
  HEARTH_ASSIGN(const std::string filter,
                StringArg(args.positional[0], "the name of a filter"));
  Args rest = args;
  rest.positional.erase(rest.positional.begin());
  for (const Value& item : items) {
    HEARTH_ASSIGN(Value value, vm.ApplyFilter(filter, item, rest));
    mapped.push_back(std::move(value));
  }
  return vm.Generator(std::move(mapped));
}

Result<Value> Sum(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "sum", {"attribute", "start"}));
  Value total = bound[1].IsUndefined() ? Value::Int(0) : bound[1];
  if (total.IsString()) return TypeError("sum cannot add strings");
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  for (const Value& item : items) {
    Value value = item;
    if (IsGiven(bound[0])) {
      HEARTH_ASSIGN(value, AttributePath(vm, item, bound[0]));
    }
    HEARTH_ASSIGN(total, BinaryOp(vm, Op::kAdd, total, value));
  }
  return total;
}

Result<Value> Batch(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "batch", {"linecount", "fill_with"}, 1));
  HEARTH_ASSIGN(const std::int64_t size, IntArg(bound[0], 0, "batch"));
  if (size < 1) return TypeError("batch needs a positive size");
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  HEARTH_TRY(vm.budget().BuildItems(2 * items.size()));
  std::vector<Value> batches;
  std::vector<Value> batch;
  for (std::size_t i = 0; i < items.size(); ++i) {
    batch.push_back(items[i]);
    if (static_cast<std::int64_t>(batch.size()) < size &&
        i + 1 < items.size()) {
      continue;
    }
    if (IsGiven(bound[1])) {
      HEARTH_TRY(vm.budget().BuildItems(static_cast<std::size_t>(size)));
      batch.resize(static_cast<std::size_t>(size), bound[1]);
    }
    batches.push_back(Value::List(std::exchange(batch, {})));
  }
  return vm.Generator(std::move(batches));
}

Result<Value> Slice(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "slice", {"slices", "fill_with"}, 1));
  HEARTH_ASSIGN(const std::int64_t n, IntArg(bound[0], 0, "slice"));
  if (n < 1) return TypeError("slice needs a positive count");
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  const auto count = static_cast<std::size_t>(n);
  HEARTH_TRY(vm.budget().BuildItems(items.size()));
  HEARTH_TRY(vm.budget().BuildItems(count));
  const std::size_t each = items.size() / count;
  const std::size_t larger = items.size() % count;
  std::vector<Value> slices;
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t take = each + (i < larger ? 1 : 0);
    std::vector<Value> part(
        items.begin() + static_cast<std::ptrdiff_t>(next),
        items.begin() + static_cast<std::ptrdiff_t>(next + take));
    next += take;
    if (IsGiven(bound[1]) && i >= larger && larger > 0) {
      part.push_back(bound[1]);
    }
    slices.push_back(Value::List(std::move(part)));
  }
  return vm.Generator(std::move(slices));
}

Result<Value> First(Vm& vm, const Value& self, const Args&) {
  if (self.Is(Kind::kIterator) && self.as<IteratorObject>().once) {
    auto& generator = self.as<IteratorObject>();
    if (generator.next < generator.items.size()) {
      return generator.items[generator.next++];
    }
    return Value::Undefined("no first item, the sequence was empty");
  }
  if (self.IsString() && !self.text().empty()) {
    return vm.GetItem(self, Value::Int(0));
  }
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  if (!items.empty()) return items[0];
  return Value::Undefined("no first item, the sequence was empty");
}

Result<Value> Last(Vm& vm, const Value& self, const Args&) {
  if (self.Is(Kind::kIterator) && self.as<IteratorObject>().once) {
    return TypeError("'generator' object is not reversible");
  }
  if (self.IsString() && !self.text().empty()) {
    return vm.GetItem(self, Value::Int(-1));
  }
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  if (!items.empty()) return items.back();
  return Value::Undefined("no last item, the sequence was empty");
}

Result<Value> Length(Vm&, const Value& self, const Args&) {
  std::size_t n = 0;
  switch (self.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kString:
      n = CountPoints(self.text());
      break;
    case Kind::kList:
    case Kind::kTuple:
      n = self.items().size();
      break;
    case Kind::kDict:
      n = self.as<DictObject>().size();
      break;
    case Kind::kIterator:
      if (!self.as<IteratorObject>().once) {
        n = self.as<IteratorObject>().items.size();
        break;
      }
      [[fallthrough]];
    default:
      return TypeError(std::string("object of type '") + self.TypeName() +
                       "' has no length");
  }
  return Value::Int(static_cast<std::int64_t>(n));
}

Result<Value> List(Vm& vm, const Value& self, const Args&) {
  HEARTH_ASSIGN(std::vector<Value> items, vm.Iterate(self));
  HEARTH_TRY(vm.budget().BuildItems(items.size()));
  return Value::List(std::move(items));
}

Result<Value> Reverse(Vm& vm, const Value& self, const Args&) {
  if (self.IsString()) {
    std::u32string points = ToPoints(self.text());
    std::reverse(points.begin(), points.end());
    return Value::String(FromPoints(points));
  }
  if (self.IsUndefined()) return UndefinedError(self);
  HEARTH_ASSIGN(std::vector<Value> items, vm.Iterate(self));
  HEARTH_TRY(vm.budget().BuildItems(items.size()));
  std::reverse(items.begin(), items.end());
  return vm.Generator(std::move(items));
}

Result<Value> DictItems(Vm& vm, const Value& self, const Args&) {
  std::vector<Value> items;
  if (self.IsUndefined()) return vm.Generator(std::move(items));
  if (!self.IsDict()) return TypeError("the filter 'items' needs a dict");
  HEARTH_TRY(vm.budget().BuildItems(3 * self.as<DictObject>().size()));
  for (const auto& [key, value] : self.as<DictObject>().entries()) {
    items.push_back(Value::Tuple({key, value}));
  }
  return vm.Generator(std::move(items));
}

Result<Value> Default(Vm&, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "default", {"default_value", "boolean"}));
  const bool replaces =
      self.IsUndefined() || (Truthy(bound[1]) && !Truthy(self));
  if (!replaces) return self;
  const bool given =
      !args.positional.empty() || args.FindNamed("default_value") != nullptr;
  return given ? bound[0] : Value::String("");
}

Result<Value> Attr(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "attr", {"name"}, 1));
  HEARTH_ASSIGN(const std::string name, StringArg(bound[0], "attr"));
  // Unlike the dot, this filter does not look into dicts.
  if (self.IsDict()) {
    bool is_unsafe = false;
    if (FindMethod(self, name, &is_unsafe) == nullptr && !is_unsafe) {
      return Value::Undefined("a dict has no attribute '" + name + "'");
    }
  }
  return vm.GetAttribute(self, name);
}

}  // namespace

Result<Value> AttributePath(Vm& vm, const Value& item, const Value& path) {
  if (!path.IsString()) return vm.GetItem(item, path);
  Value value = item;
  const std::string& text = path.text();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t dot = std::min(text.find('.', begin), text.size());
    const std::string part = text.substr(begin, dot - begin);
    const bool is_index =
        !part.empty() && part.size() < 10 &&
        part.find_first_not_of("0123456789") == std::string::npos;
    HEARTH_ASSIGN(value,
                  vm.GetItem(value, is_index ? Value::Int(std::stoi(part))
                                             : Value::String(part)));
    begin = dot + 1;
  }
  return value;
}

NativeFn FindListFilter(const std::string& name) {
  static const std::unordered_map<std::string, NativeFn> kFilters = {
      {"attr", Attr},
      {"batch", Batch},
      {"count", Length},
      {"d", Default},
      {"default", Default},
      {"first", First},
      {"items", DictItems},
      {"last", Last},
      {"length", Length},
      {"list", List},
      {"map", MapFilter},
      {"reject", PickFilter<false, false>},
      {"rejectattr", PickFilter<false, true>},
      {"reverse", Reverse},
      {"select", PickFilter<true, false>},
      {"selectattr", PickFilter<true, true>},
      {"slice", Slice},
      {"sum", Sum},
  };
  const auto it = kFilters.find(name);
  return it == kFilters.end() ? nullptr : it->second;
}

NativeFn FindFilter(const std::string& name) {
  const NativeFn text_filter = FindTextFilter(name);
  if (text_filter != nullptr) return text_filter;
  const NativeFn list_filter = FindListFilter(name);
  return list_filter != nullptr ? list_filter : FindOrderFilter(name);
}

}  // namespace hearth::jinja
