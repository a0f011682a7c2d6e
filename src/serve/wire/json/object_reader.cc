#include "serve/wire/json/object_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hearth::serve {
namespace {

constexpr std::size_t kNamesMax = 64;
constexpr std::size_t kNameBytesMax = 100;

std::string Plain(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  if (static_cast<double>(whole) == value) return std::to_string(whole);
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

// Nothing was asked for: null, [] and {}.
bool IsNothing(const OrderedJson& value) {
  return value.is_null() || (value.is_structured() && value.empty());
}

}  // namespace

void Ignored::Add(const std::string& name) {
  // A header's value: printable ASCII without the comma that parts the names.
  std::string clean;
  for (const char c : name.substr(0, kNameBytesMax)) {
    clean += c > ' ' && c < 0x7f && c != ',' ? c : '_';
  }
  if (std::find(names.begin(), names.end(), clean) != names.end()) return;
  if (names.size() < kNamesMax) {
    names.push_back(std::move(clean));
  } else if (!overflow) {
    overflow = true;
    names.push_back("...");
  }
}

WireError BadField(const std::string& param, const std::string& message) {
  return {.param = param, .message = "\"" + param + "\": " + message};
}

ObjectReader::ObjectReader(const OrderedJson& object, std::string path,
                           Ignored& ignored)
    : object_(object), path_(std::move(path)), ignored_(ignored) {}

std::string ObjectReader::PathOf(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

const OrderedJson* ObjectReader::Find(const char* name) {
  const auto it = object_.find(name);
  if (it == object_.end()) return nullptr;
  taken_.insert(name);
  return it->is_null() ? nullptr : &*it;
}

const OrderedJson* ObjectReader::FindObject(const char* name) {
  const OrderedJson* value = Find(name);
  if (value == nullptr || value->is_object()) return value;
  Mistyped(name, "an object");
  return nullptr;
}

const OrderedJson* ObjectReader::FindArray(const char* name) {
  const OrderedJson* value = Find(name);
  if (value == nullptr || value->is_array()) return value;
  Mistyped(name, "an array");
  return nullptr;
}

std::optional<std::string> ObjectReader::Text(const char* name) {
  const OrderedJson* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  Mistyped(name, "a string");
  return std::nullopt;
}

std::optional<bool> ObjectReader::Bool(const char* name) {
  const OrderedJson* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  Mistyped(name, "true or false");
  return std::nullopt;
}

bool ObjectReader::Bool(const char* name, bool fallback) {
  return Bool(name).value_or(fallback);
}

std::optional<double> ObjectReader::Number(const char* name, double min,
                                           double max) {
  const OrderedJson* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const double number = value->get<double>();
    if (number >= min && number <= max) return number;
  }
  Fault(name,
        "must be a number from " + Plain(min) + " to " + Plain(max) + ".");
  return std::nullopt;
}

std::optional<std::int64_t> ObjectReader::Integer(const char* name,
                                                  std::int64_t min,
                                                  std::int64_t max) {
  const OrderedJson* value = Find(name);
  if (value == nullptr) return std::nullopt;
  std::optional<std::int64_t> number;
  if (value->is_number_unsigned()) {
    const auto u = value->get<std::uint64_t>();
    if (u <= static_cast<std::uint64_t>(INT64_MAX)) {
      number = static_cast<std::int64_t>(u);
    }
  } else if (value->is_number_integer()) {
    number = value->get<std::int64_t>();
  } else if (value->is_number_float()) {
    const double d = value->get<double>();
    if (std::floor(d) == d && std::abs(d) < 9e15) {
      number = static_cast<std::int64_t>(d);
    }
  }
  if (number && *number >= min && *number <= max) return number;
  Fault(name, "must be an integer from " + std::to_string(min) + " to " +
                  std::to_string(max) + ".");
  return std::nullopt;
}

void ObjectReader::Say(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const OrderedJson* value = Find(name);
    if (value != nullptr && !IsNothing(*value)) ignored_.Add(PathOf(name));
  }
}

void ObjectReader::Take(std::initializer_list<const char*> names) {
  for (const char* name : names) taken_.insert(name);
}

void ObjectReader::Refuse(const char* name, const std::string& remedy) {
  if (Find(name) != nullptr) Fault(name, remedy);
}

void ObjectReader::Fault(const char* name, const std::string& message) {
  if (!fault_) fault_ = BadField(PathOf(name), message);
}

void ObjectReader::Mistyped(const char* name, const char* wanted) {
  Fault(name, std::string("must be ") + wanted + ".");
}

Checked ObjectReader::Check() const {
  if (fault_) return *fault_;
  return Done{};
}

Checked ObjectReader::Finish() {
  if (fault_) return *fault_;
  for (const auto& [name, value] : object_.items()) {
    if (!IsNothing(value) && taken_.find(name) == taken_.end()) {
      ignored_.Add(PathOf(name));
    }
  }
  return Done{};
}

}  // namespace hearth::serve
