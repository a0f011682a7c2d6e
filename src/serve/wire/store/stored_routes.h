// What is asked of the response store by name, and why a prompt's cache was
// missed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "serve/wire/request.h"
#include "serve/wire/stored.h"

namespace hearth::serve {

struct StoredReply {
  int status = 200;
  std::string body = {};
};

// GET and DELETE /v1/responses/{id}, GET .../input_items, POST .../cancel.
// Nothing for another path or method. `request_id`: for refusals.
std::optional<StoredReply> AskStore(std::string_view method,
                                    std::string_view path, ResponseStore* store,
                                    const std::string& space,
                                    std::int64_t now_s,
                                    const std::string& request_id);

// The prompt of a message, for later requests' diagnostics.
StoredPrompt PromptRecord(const WireRequest& request, const std::string& id,
                          const std::string& served_model,
                          std::span<const std::int32_t> ids,
                          std::int64_t now_s);

// diagnostics.cache_miss_reason as JSON: how this prompt differs from that of
// `request.compare_with`; empty when it was not asked for, or extends it.
std::string WhyMissed(const WireRequest& request,
                      const std::string& served_model,
                      std::span<const std::int32_t> ids,
                      const ResponseStore* store, std::int64_t now_s);

}  // namespace hearth::serve
