// Figures of an answer in the forms that several dialects share.
#pragma once

#include "serve/wire/answer.h"
#include "serve/wire/json/body_json.h"

namespace hearth::serve {

// The `hearth` object of an answer's last event.
OrderedJson HearthObject(const WireRequest& request, const Usage& usage,
                         const Figures& figures);
// llama-server's `timings`.
OrderedJson TimingsObject(const Usage& usage, const Figures& figures);
// `usage` of chat and completions.
OrderedJson ChatUsage(const Usage& usage);
OrderedJson ProgressObject(const Usage& usage, int processed, int total,
                           double elapsed_ms);

}  // namespace hearth::serve
