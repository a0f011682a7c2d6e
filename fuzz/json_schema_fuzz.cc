// A JSON Schema from outside and a text: before the NUL byte the schema, behind
// it what a matcher tries. A text that is taken whole must be JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "grammar/schema/json_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\0');
  const auto schema = hearth::ParseJson(input.substr(0, cut), "the schema");
  if (!schema.ok()) return 0;
  for (const bool lenient : {false, true}) {
    const auto made = hearth::grammar::GrammarFromJsonSchema(
        *schema, {.lenient = lenient, .open_objects = lenient});
    if (!made.ok() || cut == std::string_view::npos) continue;
    const std::string_view text = input.substr(cut + 1);
    hearth::grammar::Matcher matcher(made->grammar);
    if (!matcher.Accept(text) || !matcher.CanEnd()) continue;
    if (hearth::Json::parse(text, nullptr, false).is_discarded()) std::abort();
  }
  return 0;
}
