#include "chat/ordered_json.h"

#include <utility>
#include <vector>

#include "chat/jinja/limits.h"

namespace hearth {
namespace {

OrderedJson BigInteger(std::string_view digits) {
  return OrderedJson::binary({digits.begin(), digits.end()});
}

// Builds the value as the parser goes along. The library's own builder reads
// integers beyond 64 bits as floating-point numbers.
class Builder final : public nlohmann::json_sax<OrderedJson> {
 public:
  OrderedJson root;
  bool too_deep = false;

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    const bool integer = text.find_first_of(".eE") == string_t::npos;
    return integer ? Put(BigInteger(text)) : Put(value);
  }
  bool string(string_t& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in text
  bool start_object(std::size_t) override {
    return Open(OrderedJson::object());
  }
  bool start_array(std::size_t) override { return Open(OrderedJson::array()); }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  // Where the value stands now. What is open keeps its place: only the
  // innermost of them grows.
  OrderedJson* Place(OrderedJson value) {
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    OrderedJson& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    OrderedJson& member = parent[key_];
    member = std::move(value);
    return &member;
  }

  bool Put(OrderedJson value) {
    too_deep = open_.size() > kDepthMax;
    if (!too_deep) Place(std::move(value));
    return !too_deep;
  }
  bool Open(OrderedJson value) {
    too_deep = open_.size() > kDepthMax;
    if (!too_deep) open_.push_back(Place(std::move(value)));
    return !too_deep;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  const std::size_t kDepthMax =
      static_cast<std::size_t>(ChatTemplateLimits().value_depth_max);
  std::vector<OrderedJson*> open_;
  std::string key_;
};

}  // namespace

Result<OrderedJson> ParseOrderedJson(std::string_view text,
                                     const std::string& what) {
  Builder builder;
  const bool parsed = OrderedJson::sax_parse(text, &builder);
  if (builder.too_deep) {
    return Error{Code::kCorrupt, what + ": JSON nests too deep"};
  }
  if (!parsed) return Error{Code::kCorrupt, what + ": not valid JSON"};
  return std::move(builder.root);
}

std::string DigitsOf(const OrderedJson& json) {
  const auto& bytes = json.get_binary();
  return {bytes.begin(), bytes.end()};
}

}  // namespace hearth
