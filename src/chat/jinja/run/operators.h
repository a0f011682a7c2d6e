// Python's operators and the two ways it writes values: str() and repr().
//
// Errors  kInvalidArgument where Python raises TypeError and the like;
//         kUnsupported where Python would go beyond 64-bit integers.
#pragma once

#include <string>

#include "chat/jinja/parse/ast.h"
#include "chat/jinja/value/value.h"
#include "hearth/result.h"

namespace hearth::jinja {

bool Truthy(const Value& value);

// The Error for using an undefined value.
Error UndefinedError(const Value& value);
Error TypeError(std::string message);

Result<Value> BinaryOp(Vm& vm, Op op, const Value& left, const Value& right);
Result<Value> UnaryOp(Vm& vm, Op op, const Value& value);
Result<bool> CompareOp(Vm& vm, Op op, const Value& left, const Value& right);
Result<bool> Equal(Vm& vm, const Value& left, const Value& right);
Result<bool> Less(Vm& vm, const Value& left, const Value& right);
Result<bool> Contains(Vm& vm, const Value& container, const Value& item);
// Python's `is`, as far as a template can tell.
bool Same(const Value& left, const Value& right);

// start, stop and step as Python resolves them for a sequence of `size`;
// each may be None. Gives the indices in order.
Result<std::vector<std::size_t>> SliceIndices(const Value& start,
                                              const Value& stop,
                                              const Value& step,
                                              std::size_t size);

// str(value) and repr(value).
Result<std::string> ToText(Vm& vm, const Value& value);
Result<void> AppendRepr(Vm& vm, const Value& value, std::string* out);

// "%s and %d" % values.
Result<std::string> FormatPercent(Vm& vm, const std::string& format,
                                  const Args& args);
// "{} and {name}".format(values).
Result<std::string> FormatBraces(Vm& vm, const std::string& format,
                                 const Args& args);

}  // namespace hearth::jinja
