// Content of a message: a string and a list of text parts are one text, since
// clients change the form between turns and the prompt must not change with it.
#pragma once

#include <string>
#include <string_view>

#include "serve/wire/json/object_reader.h"

namespace hearth::serve {

// Between the parts of a message that somebody wrote; a model's own answer came
// in one piece and has nothing between its parts.
constexpr std::string_view kBetweenParts = "\n";

// The text of `content`, which is null, a string or an array of parts. Parts of
// the kinds that all dialects call text are taken, others refused by name.
Parsed<std::string> TextOfContent(const OrderedJson* content,
                                  const std::string& path,
                                  std::string_view between, Ignored& ignored);

// The refusal of a part or block whose `type` is no text.
WireError NoText(const std::string& path, const std::string& type);

// The type of an object at `path`; refused when it is none or has no type.
Parsed<std::string> TypeOf(const OrderedJson& object, const std::string& path);

std::string At(const std::string& path, std::size_t index);

}  // namespace hearth::serve
