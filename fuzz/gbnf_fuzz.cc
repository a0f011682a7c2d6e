// A grammar from outside and a text: before the NUL byte the grammar, behind it
// what a matcher tries.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "grammar/text/gbnf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\0');
  const auto grammar = hearth::grammar::GrammarFromGbnf(input.substr(0, cut));
  if (!grammar.ok() || cut == std::string_view::npos) return 0;
  hearth::grammar::Matcher matcher(*grammar);
  for (const char c : input.substr(cut + 1)) {
    if (!matcher.Accept({&c, 1})) break;
    matcher.CanEnd();
  }
  return 0;
}
