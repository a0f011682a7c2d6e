// What the writer of /v1/messages reads of its request.
#pragma once

#include "base/hash.h"
#include "serve/wire/request.h"

namespace hearth::serve {

struct MessagesNotes : DialectNotes {
  bool omit_thinking = false;  // the signature carries the text
  bool diagnose = false;
  Digest system = {}, tools = {};
};

}  // namespace hearth::serve
