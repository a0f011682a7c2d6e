#include "chat/jinja/value/value.h"

#include <algorithm>
#include <cmath>

#include "chat/jinja/value/literals.h"

namespace hearth::jinja {
namespace {

int DepthOf(const std::vector<Value>& items) {
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  return deepest + 1;
}

Value MakeString(std::string text, bool markup) {
  auto object = std::make_shared<StringObject>();
  object->text = std::move(text);
  object->markup = markup;
  return Value::Of(Value::Kind::kString, std::move(object));
}

Value MakeSequence(Value::Kind kind, std::vector<Value> items) {
  auto object = std::make_shared<ListObject>();
  object->depth = DepthOf(items);
  object->items = std::move(items);
  return Value::Of(kind, std::move(object));
}

}  // namespace

Value Value::Bool(bool b) {
  Value v(Kind::kBool);
  v.int_ = b ? 1 : 0;
  return v;
}

Value Value::Int(std::int64_t i) {
  Value v(Kind::kInt);
  v.int_ = i;
  return v;
}

Value Value::BigInt(std::string digits) {
  Value v = MakeString(std::move(digits), false);
  v.kind_ = Kind::kBigInt;
  return v;
}

Value Value::Float(double d) {
  Value v(Kind::kFloat);
  v.float_ = d;
  return v;
}

Value Value::String(std::string text) {
  return MakeString(std::move(text), false);
}

Value Value::Markup(std::string text) {
  return MakeString(std::move(text), true);
}

Value Value::Undefined(std::string why) {
  Value v = MakeString(std::move(why), false);
  v.kind_ = Kind::kUndefined;
  return v;
}

Value Value::List(std::vector<Value> items) {
  return MakeSequence(Kind::kList, std::move(items));
}

Value Value::Tuple(std::vector<Value> items) {
  return MakeSequence(Kind::kTuple, std::move(items));
}

const std::string& Value::text() const { return as<StringObject>().text; }

bool Value::is_markup() const {
  return IsString() && as<StringObject>().markup;
}

const std::vector<Value>& Value::items() const {
  return as<ListObject>().items;
}

std::string Value::undefined_message() const {
  return object_ ? text() : std::string("a value is undefined");
}

const char* Value::TypeName() const {
  switch (kind_) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kBigInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return is_markup() ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kIterator:
      return as<IteratorObject>().type;
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kFunction:
      return "function";
    case Kind::kLoop:
      return "LoopContext";
  }
  return "object";
}

int Value::depth() const {
  switch (kind_) {
    case Kind::kList:
    case Kind::kTuple:
      return as<ListObject>().depth;
    case Kind::kDict:
      return as<DictObject>().depth();
    case Kind::kIterator:
      return as<IteratorObject>().depth;
    case Kind::kFunction:
      return object_ && as<FunctionObject>().native != nullptr
                 ? as<FunctionObject>().self.depth() + 1
                 : 1;
    default:
      return 0;
  }
}

bool HashKey(const Value& key, std::string* out) {
  switch (key.kind()) {
    case Value::Kind::kNone:
      *out += 'n';
      return true;
    case Value::Kind::kBool:
    case Value::Kind::kInt:
      *out += 'i' + std::to_string(key.int_value());
      return true;
    case Value::Kind::kBigInt:
      *out += 'i' + key.text();
      return true;
    case Value::Kind::kFloat: {
      const double d = key.float_value();
      if (std::floor(d) == d && std::abs(d) < 9e18) {
        *out += 'i' + std::to_string(static_cast<std::int64_t>(d));
      } else {
        *out += 'f' + FloatText(d);
      }
      return true;
    }
    case Value::Kind::kString:
      *out += 's';
      *out += key.text();
      return true;
    case Value::Kind::kTuple:
      for (const Value& item : key.items()) {
        std::string part;
        if (!HashKey(item, &part)) return false;
        *out += 't' + std::to_string(part.size()) + ':' + part;
      }
      *out += 'e';
      return true;
    default:
      return false;
  }
}

const Value* DictObject::Find(const Value& key) const {
  std::string hash;
  if (!HashKey(key, &hash)) return nullptr;
  const auto it = index_.find(hash);
  return it == index_.end() ? nullptr : &entries_[it->second].second;
}

const Value* DictObject::Find(std::string_view key) const {
  std::string hash = "s";
  hash += key;
  const auto it = index_.find(hash);
  return it == index_.end() ? nullptr : &entries_[it->second].second;
}

bool DictObject::Set(Value key, Value value) {
  std::string hash;
  if (!HashKey(key, &hash)) return false;
  depth_ = std::max({depth_, key.depth() + 1, value.depth() + 1});
  const auto [it, is_new] = index_.emplace(std::move(hash), entries_.size());
  if (is_new) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[it->second].second = std::move(value);
  }
  return true;
}

const Value* Args::FindNamed(std::string_view name) const {
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

Result<std::vector<Value>> BindArgs(const Args& args, const char* what,
                                    std::initializer_list<const char*> names,
                                    std::size_t n_required) {
  std::vector<Value> bound(names.size());
  std::vector<bool> given(names.size(), false);
  if (args.positional.size() > names.size()) {
    return {Code::kInvalidArgument, std::string(what) + "() takes at most " +
                                        std::to_string(names.size()) +
                                        " arguments"};
  }
  for (std::size_t i = 0; i < args.positional.size(); ++i) {
    bound[i] = args.positional[i];
    given[i] = true;
  }
  for (const auto& [name, value] : args.named) {
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) {
      return {Code::kInvalidArgument,
              std::string(what) + "() has no argument '" + name + "'"};
    }
    const auto i = static_cast<std::size_t>(it - names.begin());
    if (given[i]) {
      return {Code::kInvalidArgument,
              std::string(what) + "() got '" + name + "' twice"};
    }
    bound[i] = value;
    given[i] = true;
  }
  for (std::size_t i = 0; i < n_required; ++i) {
    if (!given[i]) {
      return {
          Code::kInvalidArgument,
          std::string(what) + "() lacks argument '" + names.begin()[i] + "'"};
    }
  }
  return bound;
}

}  // namespace hearth::jinja
