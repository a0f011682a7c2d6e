// Filters over lists and dicts.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "chat/builtins.h"
#include "chat/operators.h"
#include "chat/text.h"
#include "chat/text_ops.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

bool IsGiven(const Value& value) {
  return !value.IsUndefined() && !value.IsNone();
}

Value LowerKey(const Value& value) {
  return value.IsString() ? Value::String(LowerText(value.text())) : value;
}

// A dotted path of names and indices: "details.priority", "0.name".
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

// What items are ordered by: one attribute, or several with commas between.
Result<Value> SortKey(Vm& vm, const Value& item, const Value& attribute,
                      bool ignore_case) {
  std::vector<Value> keys;
  if (!IsGiven(attribute)) {
    keys.push_back(item);
  } else if (!attribute.IsString()) {
    HEARTH_ASSIGN(Value key, vm.GetItem(item, attribute));
    keys.push_back(std::move(key));
  } else {
    const std::string& text = attribute.text();
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      HEARTH_ASSIGN(
          Value key,
          AttributePath(vm, item,
                        Value::String(text.substr(begin, comma - begin))));
      keys.push_back(std::move(key));
      begin = comma + 1;
    }
  }
  if (ignore_case) {
    for (Value& key : keys) key = LowerKey(key);
  }
  return Value::List(std::move(keys));
}

struct Keyed {
  Value key;
  Value item;
};

Result<void> SortKeyed(Vm& vm, std::vector<Keyed>* items, bool reverse) {
  std::optional<Error> failure;
  std::stable_sort(items->begin(), items->end(),
                   [&](const Keyed& a, const Keyed& b) {
                     if (failure) return false;
                     Result<bool> less = reverse ? Less(vm, b.key, a.key)
                                                 : Less(vm, a.key, b.key);
                     if (!less.ok()) failure = less.error();
                     return less.ok() && less.value();
                   });
  if (failure) return *failure;
  return {};
}

Result<std::vector<Keyed>> KeyItems(Vm& vm, const std::vector<Value>& items,
                                    const Value& attribute, bool ignore_case) {
  HEARTH_TRY(vm.budget().BuildItems(items.size()));
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const Value& item : items) {
    HEARTH_ASSIGN(Value key, SortKey(vm, item, attribute, ignore_case));
    keyed.push_back({std::move(key), item});
  }
  return keyed;
}

Value Items(std::vector<Keyed> keyed) {
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (Keyed& k : keyed) items.push_back(std::move(k.item));
  return Value::List(std::move(items));
}

Result<Value> Sort(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(
      const std::vector<Value> bound,
      BindArgs(args, "sort", {"reverse", "case_sensitive", "attribute"}));
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  HEARTH_ASSIGN(std::vector<Keyed> keyed,
                KeyItems(vm, items, bound[2], !Truthy(bound[1])));
  HEARTH_TRY(SortKeyed(vm, &keyed, Truthy(bound[0])));
  return Items(std::move(keyed));
}

Result<Value> DictSort(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "dictsort", {"case_sensitive", "by", "reverse"}));
  if (self.IsUndefined()) return UndefinedError(self);
  if (!self.IsDict()) return TypeError("dictsort needs a dict");
  std::size_t position = 0;
  if (!bound[1].IsUndefined()) {
    HEARTH_ASSIGN(const std::string by, StringArg(bound[1], "dictsort"));
    if (by != "key" && by != "value") {
      return TypeError("dictsort: by is 'key' or 'value'");
    }
    position = by == "value" ? 1 : 0;
  }
  std::vector<Keyed> keyed;
  HEARTH_TRY(vm.budget().BuildItems(3 * self.as<DictObject>().size()));
  for (const auto& [key, value] : self.as<DictObject>().entries()) {
    const Value& by = position == 0 ? key : value;
    keyed.push_back(
        {Truthy(bound[0]) ? by : LowerKey(by), Value::Tuple({key, value})});
  }
  HEARTH_TRY(SortKeyed(vm, &keyed, Truthy(bound[2])));
  return Items(std::move(keyed));
}

Result<Value> GroupBy(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(
      const std::vector<Value> bound,
      BindArgs(args, "groupby", {"attribute", "default", "case_sensitive"}, 1));
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  const bool ignore_case = !Truthy(bound[2]);
  HEARTH_TRY(vm.budget().BuildItems(items.size()));
  std::vector<Keyed> keyed;
  for (const Value& item : items) {
    HEARTH_ASSIGN(Value key, AttributePath(vm, item, bound[0]));
    if (key.IsUndefined() && !bound[1].IsUndefined()) key = bound[1];
    keyed.push_back({std::move(key), item});
  }
  std::vector<Keyed> folded = keyed;
  for (std::size_t i = 0; i < folded.size(); ++i) {
    if (ignore_case) folded[i].key = LowerKey(folded[i].key);
    folded[i].item = Value::Tuple({keyed[i].key, keyed[i].item});
  }
  HEARTH_TRY(SortKeyed(vm, &folded, false));
  std::vector<Value> groups;
  for (std::size_t i = 0; i < folded.size();) {
    const Value key = folded[i].key;
    const Value shown = folded[i].item.items()[0];
    std::vector<Value> members;
    for (; i < folded.size(); ++i) {
      HEARTH_ASSIGN(const bool equal, Equal(vm, key, folded[i].key));
      if (!equal) break;
      members.push_back(folded[i].item.items()[1]);
    }
    Value group = Value::Tuple({shown, Value::List(std::move(members))});
    group.as<ListObject>().is_group = true;
    groups.push_back(std::move(group));
  }
  return Value::List(std::move(groups));
}

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

Result<Value> Unique(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "unique", {"case_sensitive", "attribute"}));
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  HEARTH_TRY(vm.budget().BuildItems(items.size()));
  DictObject seen;
  std::vector<Value> kept;
  for (const Value& item : items) {
    Value key = item;
    if (IsGiven(bound[1])) {
      HEARTH_ASSIGN(key, AttributePath(vm, item, bound[1]));
    }
    if (!Truthy(bound[0])) key = LowerKey(key);
    if (seen.Find(key) != nullptr) continue;
    if (!seen.Set(key, Value::None())) {
      return TypeError(std::string("unhashable type: '") + key.TypeName() +
                       "'");
    }
    kept.push_back(item);
  }
  return vm.Generator(std::move(kept));
}

// max and min.
template <bool kMax>
Result<Value> Extreme(Vm& vm, const Value& self, const Args& args) {
  HEARTH_ASSIGN(const std::vector<Value> bound,
                BindArgs(args, "max", {"case_sensitive", "attribute"}));
  HEARTH_ASSIGN(const std::vector<Value> items, vm.Iterate(self));
  if (items.empty()) return Value::Undefined("no item in an empty sequence");
  HEARTH_ASSIGN(const std::vector<Keyed> keyed,
                KeyItems(vm, items, bound[1], !Truthy(bound[0])));
  std::size_t best = 0;
  for (std::size_t i = 1; i < keyed.size(); ++i) {
    HEARTH_ASSIGN(const bool better, kMax
                                         ? Less(vm, keyed[best].key, keyed[i].key)
                                         : Less(vm, keyed[i].key, keyed[best].key));
    if (better) best = i;
  }
  return keyed[best].item;
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
    if (static_cast<std::int64_t>(batch.size()) < size && i + 1 < items.size()) {
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
    case Kind::kUndefined: break;
    case Kind::kString: n = CountPoints(self.text()); break;
    case Kind::kList:
    case Kind::kTuple: n = self.items().size(); break;
    case Kind::kDict: n = self.as<DictObject>().size(); break;
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
  const bool given = !args.positional.empty() ||
                     args.FindNamed("default_value") != nullptr;
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

NativeFn FindListFilter(const std::string& name) {
  static const std::unordered_map<std::string, NativeFn> kFilters = {
      {"attr", Attr},
      {"batch", Batch},
      {"count", Length},
      {"d", Default},
      {"default", Default},
      {"dictsort", DictSort},
      {"first", First},
      {"groupby", GroupBy},
      {"items", DictItems},
      {"last", Last},
      {"length", Length},
      {"list", List},
      {"map", MapFilter},
      {"max", Extreme<true>},
      {"min", Extreme<false>},
      {"reject", PickFilter<false, false>},
      {"rejectattr", PickFilter<false, true>},
      {"reverse", Reverse},
      {"select", PickFilter<true, false>},
      {"selectattr", PickFilter<true, true>},
      {"slice", Slice},
      {"sort", Sort},
      {"sum", Sum},
      {"unique", Unique},
  };
  const auto it = kFilters.find(name);
  return it == kFilters.end() ? nullptr : it->second;
}

NativeFn FindFilter(const std::string& name) {
  const NativeFn text_filter = FindTextFilter(name);
  return text_filter != nullptr ? text_filter : FindListFilter(name);
}

}  // namespace hearth::jinja
