// The names that templates find without being given them.
#pragma once

#include <string>

#include "chat/jinja/value/value.h"
#include "hearth/result.h"

namespace hearth::jinja {

// range, dict, namespace, raise_exception, strftime_now; Undefined for
// another name.
Value FindGlobal(const std::string& name);

// nullptr for an unknown name.
NativeFn FindFilter(const std::string& name);
NativeFn FindTextFilter(const std::string& name);
NativeFn FindListFilter(const std::string& name);
NativeFn FindOrderFilter(const std::string& name);

// Neither undefined nor none.
inline bool IsGiven(const Value& value) {
  return !value.IsUndefined() && !value.IsNone();
}

// The attribute of `item` that a filter argument names: a dotted path of names
// and indices ("details.priority", "0.name"), or an index.
Result<Value> AttributePath(Vm& vm, const Value& item, const Value& path);

// A test gives a bool Value.
NativeFn FindTest(const std::string& name);

// The method `name` of `self`'s type; nullptr when it has none. `*is_unsafe`
// is set for the methods that the sandbox refuses because they would change
// the object.
NativeFn FindMethod(const Value& self, const std::string& name,
                    bool* is_unsafe);
NativeFn FindStringMethod(const std::string& name);

// datetime.strftime.
Result<std::string> FormatTime(const std::string& format,
                               std::int64_t local_seconds);

}  // namespace hearth::jinja
