// What is wrong with a schema, and where: `place` is a JSON pointer.
#pragma once

#include <string>

#include "hearth/result.h"

namespace hearth::grammar {

inline Error Unsupported(const std::string& place, const std::string& what) {
  return {Code::kUnsupported,
          "the schema at " + place + ": " + what + " is not supported"};
}

inline Error NoSchema(const std::string& place, const std::string& problem) {
  return {Code::kInvalidArgument, "the schema at " + place + ": " + problem};
}

}  // namespace hearth::grammar
