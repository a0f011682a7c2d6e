// Equality, order and membership.
#include <algorithm>
#include <cmath>

#include "chat/jinja/run/operators.h"
#include "chat/jinja/run/vm.h"

namespace hearth::jinja {
namespace {

using Kind = Value::Kind;

Result<bool> EqualItems(Vm& vm, const std::vector<Value>& left,
                        const std::vector<Value>& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (Same(left[i], right[i])) continue;
    HEARTH_ASSIGN(const bool equal, Equal(vm, left[i], right[i]));
    if (!equal) return false;
  }
  return true;
}

Result<bool> EqualDicts(Vm& vm, const DictObject& left,
                        const DictObject& right) {
  if (left.size() != right.size()) return false;
  for (const auto& [key, value] : left.entries()) {
    const Value* other = right.Find(key);
    if (other == nullptr) return false;
    if (Same(value, *other)) continue;
    HEARTH_ASSIGN(const bool equal, Equal(vm, value, *other));
    if (!equal) return false;
  }
  return true;
}

bool EqualNumbers(const Value& left, const Value& right) {
  if (left.IsIntegral() && right.IsIntegral()) {
    return left.int_value() == right.int_value();
  }
  return left.AsDouble() == right.AsDouble();
}

Result<bool> ContainsItem(Vm& vm, const std::vector<Value>& items,
                          const Value& item) {
  for (const Value& candidate : items) {
    if (Same(candidate, item)) return true;
    HEARTH_ASSIGN(const bool equal, Equal(vm, candidate, item));
    if (equal) return true;
  }
  return false;
}

}  // namespace

bool Same(const Value& left, const Value& right) {
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kNone:
      return true;
    case Kind::kBool:
    case Kind::kInt:
      return left.int_value() == right.int_value();
    case Kind::kFloat:
      return false;
    default:
      return left.object() != nullptr && left.object() == right.object();
  }
}

Result<bool> Equal(Vm& vm, const Value& left, const Value& right) {
  HEARTH_TRY(vm.budget().Step());
  if (left.IsNumber() && right.IsNumber()) return EqualNumbers(left, right);
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
    case Kind::kBigInt:
      HEARTH_TRY(vm.budget().Touch(left.text().size()));
      return left.text() == right.text();
    case Kind::kList:
    case Kind::kTuple:
      return EqualItems(vm, left.items(), right.items());
    case Kind::kDict:
      return EqualDicts(vm, left.as<DictObject>(), right.as<DictObject>());
    default:
      return left.object() == right.object();
  }
}

Result<bool> Less(Vm& vm, const Value& left, const Value& right) {
  HEARTH_TRY(vm.budget().Step());
  if (left.IsUndefined()) return UndefinedError(left);
  if (right.IsUndefined()) return UndefinedError(right);
  if (left.IsNumber() && right.IsNumber()) {
    if (left.IsIntegral() && right.IsIntegral()) {
      return left.int_value() < right.int_value();
    }
    return left.AsDouble() < right.AsDouble();
  }
  if (left.IsString() && right.IsString()) {
    // The order of UTF-8 bytes is the order of code points.
    HEARTH_TRY(vm.budget().Touch(left.text().size()));
    return left.text() < right.text();
  }
  if (left.IsSequence() && left.kind() == right.kind()) {
    const std::vector<Value>& a = left.items();
    const std::vector<Value>& b = right.items();
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (Same(a[i], b[i])) continue;
      HEARTH_ASSIGN(const bool equal, Equal(vm, a[i], b[i]));
      if (!equal) return Less(vm, a[i], b[i]);
    }
    return a.size() < b.size();
  }
  return TypeError(std::string("'") + left.TypeName() + "' and '" +
                   right.TypeName() + "' have no order");
}

Result<bool> Contains(Vm& vm, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kString:
      if (!item.IsString()) {
        return TypeError(std::string("'in' on a string needs a string, not '") +
                         item.TypeName() + "'");
      }
      HEARTH_TRY(vm.budget().Touch(container.text().size()));
      return container.text().find(item.text()) != std::string::npos;
    case Kind::kList:
    case Kind::kTuple:
      return ContainsItem(vm, container.items(), item);
    case Kind::kDict: {
      std::string hash;
      if (!HashKey(item, &hash) && !item.IsUndefined()) {
        return TypeError(std::string("unhashable type: '") + item.TypeName() +
                         "'");
      }
      return container.as<DictObject>().Find(item) != nullptr;
    }
    case Kind::kIterator: {
      auto& iterator = container.as<IteratorObject>();
      if (!iterator.once) return ContainsItem(vm, iterator.items, item);
      // A search uses up the generator as far as it looks.
      while (iterator.next < iterator.items.size()) {
        const Value candidate = iterator.items[iterator.next++];
        HEARTH_ASSIGN(const bool equal, Equal(vm, candidate, item));
        if (equal) return true;
      }
      return false;
    }
    default:
      return TypeError(std::string("argument of type '") +
                       container.TypeName() + "' is not iterable");
  }
}

}  // namespace hearth::jinja
