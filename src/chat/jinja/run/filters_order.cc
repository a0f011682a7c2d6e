// Filters that order or compare elements.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "chat/jinja/run/builtins.h"
#include "chat/jinja/run/operators.h"
#include "chat/jinja/run/vm.h"
#include "chat/jinja/value/text.h"
#include "chat/jinja/value/text_ops.h"

namespace hearth::jinja {
namespace {

Value LowerKey(const Value& value) {
  return value.IsString() ? Value::String(LowerText(value.text())) : value;
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
  std::stable_sort(
      items->begin(), items->end(), [&](const Keyed& a, const Keyed& b) {
        if (failure) return false;
        Result<bool> less =
            reverse ? Less(vm, b.key, a.key) : Less(vm, a.key, b.key);
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
  HEARTH_ASSIGN(
      const std::vector<Value> bound,
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
    HEARTH_ASSIGN(const bool better,
                  kMax ? Less(vm, keyed[best].key, keyed[i].key)
                       : Less(vm, keyed[i].key, keyed[best].key));
    if (better) best = i;
  }
  return keyed[best].item;
}

}  // namespace

NativeFn FindOrderFilter(const std::string& name) {
  static const std::unordered_map<std::string, NativeFn> kFilters = {
      {"dictsort", DictSort},  {"groupby", GroupBy}, {"max", Extreme<true>},
      {"min", Extreme<false>}, {"sort", Sort},       {"unique", Unique},
  };
  const auto it = kFilters.find(name);
  return it == kFilters.end() ? nullptr : it->second;
}

}  // namespace hearth::jinja
