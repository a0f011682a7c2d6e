// A constraint that tells the metrics how long its masks take.
#pragma once

#include "hearth/constraint.h"
#include "serve/metrics/metrics.h"

namespace hearth::serve {

// `metrics` outlives the answers. Nothing for nothing.
MakeConstraint Timed(MakeConstraint make, Metrics& metrics);

}  // namespace hearth::serve
