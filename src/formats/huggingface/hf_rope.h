// The rotary settings of config.json.
#pragma once

#include <string>

#include "base/json.h"
#include "hearth/result.h"
#include "model/config.h"

namespace hearth {

// Reads one object of rope settings (null: there is none) and builds `rope`,
// whose rotary_dim is set. `theta`: the base unless `settings` has its own.
// `json`: the whole of config.json, where some models keep the contexts.
// kUnsupported for types that hearth does not know.
Result<void> ReadHfRope(const Json& json, const Json* settings, double theta,
                        RopeConfig& rope, const std::string& label);

// The same from rope_parameters (transformers 5) or from rope_theta and
// rope_scaling. Sets rotary_dim, too: of head_dim, or of a part of it where the
// family allows one.
Result<void> ReadHfRopeSettings(const Json& json, int head_dim,
                                bool partial_rotary, RopeConfig& rope,
                                const std::string& label);

}  // namespace hearth
