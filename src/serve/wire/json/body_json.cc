#include "serve/wire/json/body_json.h"

#include <cmath>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hearth::serve {
namespace {

using Number = OrderedJson::number_integer_t;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The code unit of "\uXXXX" at `at`, or -1.
int UnitAt(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') {
    return -1;
  }
  int unit = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const int digit = HexDigit(text[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

bool IsHigh(int unit) { return unit >= 0xd800 && unit <= 0xdbff; }
bool IsLow(int unit) { return unit >= 0xdc00 && unit <= 0xdfff; }

// Backslashes are in strings alone, so no other syntax needs to be known.
std::string WithoutHalfSurrogates(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    if (out[i] != '\\') continue;
    const int unit = UnitAt(out, i);
    if (unit < 0) {
      ++i;  // the escaped character
    } else if (IsHigh(unit) && IsLow(UnitAt(out, i + 6))) {
      i += 11;
    } else {
      if (IsHigh(unit) || IsLow(unit)) out.replace(i + 2, 4, "fffd");
      i += 5;
    }
  }
  return out;
}

// Builds the value and stops at the first limit. The library's own builder
// searches an object at each member, which a hostile body makes quadratic.
class Builder : public nlohmann::json_sax<OrderedJson> {
 public:
  explicit Builder(OrderedJson& root) : root_(root) {}
  const std::string& fault() const { return fault_; }

  bool null() override { return Put(nullptr) != nullptr; }
  bool boolean(bool value) override { return Put(value) != nullptr; }
  bool number_integer(number_integer_t value) override {
    return Put(value) != nullptr;
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Put(value) != nullptr;
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Put(value) != nullptr;
  }
  bool string(string_t& value) override {
    return Put(std::move(value)) != nullptr;
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    return Open(Put(OrderedJson::object()));
  }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override {
    return Open(Put(OrderedJson::array()));
  }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    if (!level.names.insert(name).second) {
      return Refuse("the member \"" + name + "\" comes twice in one object");
    }
    if (level.names.size() > kJsonMembersMax) {
      return Refuse("an object has more than " +
                    std::to_string(kJsonMembersMax) + " members");
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Refuse("not valid JSON in UTF-8 at byte " +
                  std::to_string(position));
  }

 private:
  struct Level {
    OrderedJson* value;
    std::unordered_set<std::string> names;
  };

  OrderedJson* Put(OrderedJson value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    OrderedJson& parent = *levels_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    auto& object = parent.get_ref<OrderedJson::object_t&>();
    std::vector<std::pair<const std::string, OrderedJson>>& members = object;
    members.emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }
  // A pointer into a parent stays good: while its child grows it does not.
  bool Open(OrderedJson* value) {
    if (levels_.size() >= static_cast<std::size_t>(kJsonDepthMax)) {
      return Refuse("nests deeper than " + std::to_string(kJsonDepthMax));
    }
    levels_.push_back({value, {}});
    return true;
  }
  bool Close() {
    levels_.pop_back();
    return true;
  }
  bool Refuse(std::string fault) {
    if (fault_.empty()) fault_ = std::move(fault);
    return false;
  }

  OrderedJson& root_;
  std::vector<Level> levels_;
  std::string key_;
  std::string fault_;
};

}  // namespace

Parsed<OrderedJson> ParseBodyJson(std::string_view text,
                                  const std::string& param) {
  const auto refuse = [&](const std::string& fault) {
    return WireError{.param = param,
                     .message = (param.empty() ? "The request's body"
                                               : "\"" + param + "\"") +
                                " cannot be read: " + fault + "."};
  };
  // The parser would take a NUL byte for the end of the text.
  if (text.find('\0') != std::string_view::npos) return refuse("a NUL byte");
  OrderedJson value;
  Builder builder(value);
  const bool ok =
      text.find("\\u") == std::string_view::npos
          ? OrderedJson::sax_parse(text, &builder)
          : OrderedJson::sax_parse(WithoutHalfSurrogates(text), &builder);
  if (!ok) return refuse(builder.fault());
  return value;
}

std::string Dump(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace hearth::serve
