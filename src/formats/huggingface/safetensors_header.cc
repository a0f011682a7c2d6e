#include "formats/huggingface/safetensors_header.h"

#include <algorithm>
#include <unordered_set>

#include "base/json.h"
#include "formats/describe.h"

namespace hearth {
namespace {

// Follows the parser through the few shapes that a header may have; the first
// event that does not fit ends the parse with a reason.
class HeaderEvents : public nlohmann::json_sax<Json> {
 public:
  SafetensorsHeader header;
  std::string reason;

  bool start_object(std::size_t) override {
    if (state_ == State::kStart) return Go(State::kTop);
    if (state_ == State::kEntryValue) return Go(State::kEntry);
    if (state_ == State::kMetadataValue) return Go(State::kMetadata);
    return Fail("an object where none belongs");
  }

  bool end_object() override {
    if (state_ == State::kTop) return Go(State::kEnd);
    if (state_ == State::kMetadata) return Go(State::kTop);
    if (seen_ != (kSeenType | kSeenShape | kSeenOffsets) || n_offsets_ != 2) {
      return Fail("tensor " + Quoted(header.entries.back().name) +
                  " lacks dtype, shape or data_offsets");
    }
    return Go(State::kTop);
  }

  bool key(string_t& text) override {
    switch (state_) {
      case State::kTop:
        return TopKey(text);
      case State::kMetadata:
        header.metadata.emplace_back(text, "");
        return Go(State::kMetadataText);
      default:
        return EntryKey(text);  // kEntry
    }
  }

  bool string(string_t& text) override {
    if (state_ == State::kMetadataText) {
      header.metadata.back().second = text;
      return Go(State::kMetadata);
    }
    if (state_ == State::kType) {
      header.entries.back().type = text;
      return Go(State::kEntry);
    }
    return Fail("a string where none belongs");
  }

  bool start_array(std::size_t) override {
    if (state_ == State::kShape) return Go(State::kShapeItems);
    if (state_ == State::kOffsets) return Go(State::kOffsetItems);
    return Fail("an array where none belongs");
  }
  bool end_array() override { return Go(State::kEntry); }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == State::kShapeItems) {
      header.entries.back().shape.push_back(value);
      return true;
    }
    if (state_ == State::kOffsetItems && n_offsets_ < 2) {
      header.entries.back().offsets[n_offsets_++] = value;
      return true;
    }
    return Fail("a number where none belongs");
  }

  bool number_integer(number_integer_t) override {
    return Fail("a negative number");
  }
  bool number_float(number_float_t, const string_t&) override {
    return Fail("a number that is no unsigned 64-bit integer");
  }
  bool null() override { return Fail("a null"); }
  bool boolean(bool) override { return Fail("a boolean"); }
  bool binary(binary_t&) override { return Fail("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail("not JSON at byte " + std::to_string(position));
  }

 private:
  enum class State {
    kStart,
    kTop,
    kEnd,
    kMetadataValue,
    kMetadata,
    kMetadataText,
    kEntryValue,
    kEntry,
    kType,
    kShape,
    kShapeItems,
    kOffsets,
    kOffsetItems,
  };
  static constexpr unsigned kSeenType = 1, kSeenShape = 2, kSeenOffsets = 4;

  bool Go(State state) {
    state_ = state;
    return true;
  }
  bool Fail(std::string why) {
    reason = std::move(why);
    return false;
  }

  bool TopKey(const std::string& text) {
    if (!names_.insert(text).second) {
      return Fail("the name " + Quoted(text) + " is there twice");
    }
    if (text == "__metadata__") return Go(State::kMetadataValue);
    header.entries.push_back({text, "", {}, {}});
    seen_ = 0;
    n_offsets_ = 0;
    return Go(State::kEntryValue);
  }

  bool EntryKey(const std::string& text) {
    const unsigned bit = text == "dtype"          ? kSeenType
                         : text == "shape"        ? kSeenShape
                         : text == "data_offsets" ? kSeenOffsets
                                                  : 0;
    if (bit == 0 || (seen_ & bit) != 0) {
      return Fail("tensor " + Quoted(header.entries.back().name) +
                  " has a strange or repeated member " + Quoted(text));
    }
    seen_ |= bit;
    return Go(bit == kSeenType    ? State::kType
              : bit == kSeenShape ? State::kShape
                                  : State::kOffsets);
  }

  State state_ = State::kStart;
  unsigned seen_ = 0;
  std::size_t n_offsets_ = 0;
  std::unordered_set<std::string> names_;
};

}  // namespace

Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json,
                                                 const std::string& label) {
  // A NUL byte would end the text for the JSON library and hide what follows.
  if (json.find('\0') != std::string_view::npos) {
    return {Code::kCorrupt, label + ": safetensors header: a NUL byte"};
  }
  HeaderEvents events;
  if (!Json::sax_parse(json, &events)) {
    return {Code::kCorrupt, label + ": safetensors header: " + events.reason};
  }
  return std::move(events.header);
}

std::optional<std::uint64_t> SafetensorsBits(std::string_view type) {
  static constexpr struct {
    std::string_view name;
    std::uint64_t bits;
  } kTypes[] = {{"F32", 32},    {"F16", 16},    {"BF16", 16},   {"F64", 64},
                {"I64", 64},    {"I32", 32},    {"I16", 16},    {"I8", 8},
                {"U64", 64},    {"U32", 32},    {"U16", 16},    {"U8", 8},
                {"BOOL", 8},    {"C64", 64},    {"F8_E4M3", 8}, {"F8_E5M2", 8},
                {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}};
  for (const auto& t : kTypes) {
    if (t.name == type) return t.bits;
  }
  return std::nullopt;
}

}  // namespace hearth
