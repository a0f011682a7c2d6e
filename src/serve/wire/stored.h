// What is kept of answers, so that later requests can name them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"

namespace hearth::serve {

// A response of /v1/responses. The conversation before it is that of
// `previous_id` (empty: none), then its own input, then its output.
struct StoredResponse {
  std::string id = {};
  std::string space = {};  // whose: the name space of the caller's key
  std::int64_t created_s = 0;
  std::string previous_id = {};
  std::string input_json = {};     // array of items, ids included
  std::string response_json = {};  // the final object
};

// The prompt of an answer of /v1/messages.
struct StoredPrompt {
  std::string id = {};  // the message's
  std::string space = {};
  std::int64_t created_s = 0;
  std::string model = {};
  Digest system = {}, tools = {};
  std::vector<std::int32_t> ids = {};
};

}  // namespace hearth::serve
