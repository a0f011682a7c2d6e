// Reads what a model's files recommend for sampling.
#pragma once

#include <string>

#include "base/json.h"
#include "hearth/result.h"
#include "hearth/sampling_defaults.h"

namespace hearth {

class GgufFile;

// Of generation_config.json. An explicit "do_sample": false means greedy, as
// for its own library. Ids outside `vocab_size` are left out. kCorrupt, naming
// the member, for a value of another kind or outside its range.
Result<SamplingDefaults> ReadGenerationConfig(const Json& json,
                                              const std::string& label,
                                              int vocab_size);

// Of general.sampling.temp, .top_k, .top_p, .min_p, .penalty_repeat and
// .penalty_last_n. kCorrupt as above, naming the key.
Result<SamplingDefaults> ReadGgufSampling(const GgufFile& file);

}  // namespace hearth
