// Every bound of the template engine. A template comes from a model file and a
// conversation from a request, so neither is trusted: whatever they contain,
// parsing and rendering end, within these sizes, with a value or an Error.
//
// Errors  a limit that is reached is kResourceFull; the message names it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth {

struct ChatTemplateLimits {
  // Parsing.
  std::size_t source_bytes_max = 1u << 20;
  // How deep expressions and statements may nest in the source. A chain of
  // operators counts, since a + b + c nests to the left.
  int nesting_max = 200;

  // Rendering.
  // Nested evaluations: expressions in statements in macro calls, and so on.
  // One level of macro recursion uses five to ten. The deepest rendering needs
  // between 1 and 2 MiB of stack, four times that under a sanitizer.
  int depth_max = 800;
  // How deep lists and dicts may nest, messages included.
  int value_depth_max = 100;
  // Evaluations, elements visited, and 256-byte pieces of text touched.
  std::uint64_t steps_max = 20'000'000;
  // What one rendering prints.
  std::size_t output_bytes_max = 64u << 20;
  // One string.
  std::size_t string_bytes_max = 64u << 20;
  // Strings and containers made while rendering, all together.
  std::size_t built_bytes_max = std::size_t{1} << 30;
  // Numbers that one range() gives. Python's sandbox has the same bound.
  std::int64_t range_max = 100'000;
};

}  // namespace hearth
