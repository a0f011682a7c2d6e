// The values that templates compute with, as Python has them.
//
// A Value is small and copies by sharing. Everything but a namespace, a loop
// and a generator is immutable once made, as the sandbox of the reference
// wants it; so lists and dicts cannot contain themselves, and their depth is
// known when they are made.
//
// Strings are UTF-8 (text.h). Integers have 64 bits; larger ones that a
// conversation brings along can be printed and compared, and computing with
// them is an Error, never a wrong number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hearth/result.h"

namespace hearth::jinja {

class Vm;
class Value;
struct Args;

// What every native function, filter, test and method looks like. `self` is
// the filtered or tested value, or the receiver of a method.
using NativeFn = Result<Value> (*)(Vm& vm, const Value& self, const Args& args);

struct Object {
  virtual ~Object() = default;
};

class Value {
 public:
  enum class Kind : std::uint8_t {
    kUndefined,  // a missing name; prints as nothing, fails when used
    kNone,
    kBool,
    kInt,
    kBigInt,  // beyond 64 bits: its digits as a text
    kFloat,
    kString,
    kList,
    kTuple,
    kDict,
    kIterator,  // generators, dict views, ranges
    kNamespace,
    kFunction,
    kLoop,
  };

  Value() = default;
  static Value None() { return Value(Kind::kNone); }
  static Value Bool(bool b);
  static Value Int(std::int64_t i);
  // `digits`: decimal, with a minus where it is negative, beyond 64 bits.
  static Value BigInt(std::string digits);
  static Value Float(double d);
  static Value String(std::string text);
  // A string that |safe or |escape has marked as HTML.
  static Value Markup(std::string text);
  // `why` becomes the message when the value is used.
  static Value Undefined(std::string why);
  static Value List(std::vector<Value> items);
  static Value Tuple(std::vector<Value> items);
  static Value Of(Kind kind, std::shared_ptr<Object> object) {
    Value v(kind);
    v.object_ = std::move(object);
    return v;
  }

  Kind kind() const { return kind_; }
  bool Is(Kind kind) const { return kind_ == kind; }
  bool IsUndefined() const { return kind_ == Kind::kUndefined; }
  bool IsNone() const { return kind_ == Kind::kNone; }
  bool IsString() const { return kind_ == Kind::kString; }
  bool IsDict() const { return kind_ == Kind::kDict; }
  bool IsSequence() const {
    return kind_ == Kind::kList || kind_ == Kind::kTuple;
  }
  // Bool and int: what Python's int operations take.
  bool IsIntegral() const {
    return kind_ == Kind::kInt || kind_ == Kind::kBool;
  }
  bool IsNumber() const { return IsIntegral() || kind_ == Kind::kFloat; }

  // REQUIRES the matching kind.
  bool bool_value() const { return int_ != 0; }
  std::int64_t int_value() const { return int_; }
  double float_value() const { return float_; }
  double AsDouble() const {
    return kind_ == Kind::kFloat ? float_ : static_cast<double>(int_);
  }
  const std::string& text() const;
  bool is_markup() const;
  const std::vector<Value>& items() const;  // list or tuple
  std::string undefined_message() const;

  template <typename T>
  T& as() const {
    return static_cast<T&>(*object_);
  }
  const Object* object() const { return object_.get(); }
  const std::shared_ptr<Object>& shared() const { return object_; }

  // Python's name of the type: "str", "NoneType".
  const char* TypeName() const;
  // How many containers nest in this value; 0 for a scalar.
  int depth() const;

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::kUndefined;
  union {
    std::int64_t int_ = 0;
    double float_;
  };
  std::shared_ptr<Object> object_;
};

struct StringObject : Object {
  std::string text;
  bool markup = false;
};

struct ListObject : Object {
  std::vector<Value> items;
  int depth = 1;
  bool is_group = false;  // made by |groupby: has .grouper and .list
};

// Keys keep the order of insertion; 1, 1.0 and true are the same key.
class DictObject : public Object {
 public:
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
  // Replaces the value of a key that is there. False when the key is of a kind
  // that cannot be a key.
  bool Set(Value key, Value value);
  const std::vector<std::pair<Value, Value>>& entries() const {
    return entries_;
  }
  std::size_t size() const { return entries_.size(); }
  int depth() const { return depth_; }

 private:
  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_map<std::string, std::size_t> index_;
  int depth_ = 1;
};

// False for a list, a dict or another kind that Python cannot hash. The text
// is equal for equal keys.
bool HashKey(const Value& key, std::string* out);

struct IteratorObject : Object {
  std::vector<Value> items;
  std::size_t next = 0;  // generators only: the first item not yet taken
  const char* type = "generator";
  bool once = true;  // a generator: no length, empty after one use
  std::string repr;  // of a range
  int depth = 1;
};

// Mutable; may come to contain itself. The Vm breaks such cycles at the end.
struct NamespaceObject : Object {
  std::vector<std::pair<std::string, Value>> attributes;
};

struct FunctionObject : Object {
  NativeFn native = nullptr;
  Value self;  // the receiver of a method
  std::string name;
};

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  const Value* FindNamed(std::string_view name) const;
};

// The arguments in the order of `names`, each Undefined when not given.
// `what` is the callee's name in messages.
Result<std::vector<Value>> BindArgs(const Args& args, const char* what,
                                    std::initializer_list<const char*> names,
                                    std::size_t n_required = 0);

}  // namespace hearth::jinja
