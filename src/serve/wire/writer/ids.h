// Ids of what an answer is made of; all come from the request's.
#pragma once

#include <cstdint>
#include <string>

namespace hearth::serve {

// "call_" and 24 hex digits, or 9 letters and digits: always the same for one
// call of one request, and different for two.
std::string CallId(const std::string& request_id, int choice, int call,
                   bool short_ids);

// "rs_<request>_<index>": ResponseIdOf leads back to the response.
std::string ItemId(const char* prefix, const std::string& request_id,
                   const std::string& index);

// "2026-11-30T14:06:44Z".
std::string IsoTime(std::int64_t unix_s);

}  // namespace hearth::serve
