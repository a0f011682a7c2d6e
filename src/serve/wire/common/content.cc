#include "serve/wire/common/content.h"

#include <array>

namespace hearth::serve {
namespace {

bool IsText(std::string_view type) {
  return type == "text" || type == "input_text" || type == "output_text";
}

Parsed<std::string> TextOfPart(const OrderedJson& part, const std::string& path,
                               Ignored& ignored) {
  if (part.is_string()) return part.get<std::string>();
  HEARTH_ASSIGN(const std::string type, TypeOf(part, path));
  const bool refusal = type == "refusal";
  if (!IsText(type) && !refusal) return NoText(path, type);
  ObjectReader reader(part, path, ignored);
  reader.Take({"type"});
  const auto text = reader.Text(refusal ? "refusal" : "text");
  if (!text) reader.Fault(refusal ? "refusal" : "text", "is missing.");
  HEARTH_TRY(reader.Finish());
  return *text;
}

}  // namespace

std::string At(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

WireError NoText(const std::string& path, const std::string& type) {
  return BadField(path, "content of type \"" + type +
                            "\" cannot be read: hearth takes text alone. Send "
                            "what it holds as a text part.");
}

Parsed<std::string> TypeOf(const OrderedJson& object, const std::string& path) {
  if (!object.is_object()) return BadField(path, "must be an object.");
  const auto it = object.find("type");
  if (it == object.end() || !it->is_string()) {
    return BadField(path + ".type", "must be a string.");
  }
  return it->get<std::string>();
}

Parsed<std::string> TextOfContent(const OrderedJson* content,
                                  const std::string& path,
                                  std::string_view between, Ignored& ignored) {
  if (content == nullptr) return std::string();
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) {
    return BadField(path, "must be a string or an array of text parts.");
  }
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i) {
    HEARTH_ASSIGN(const std::string part,
                  TextOfPart((*content)[i], At(path, i), ignored));
    if (i > 0) text += between;
    text += part;
  }
  return text;
}

}  // namespace hearth::serve
