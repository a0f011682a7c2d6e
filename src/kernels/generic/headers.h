// Everything that the kernel bodies and the vector types use. An isa_*.cc
// includes this before it opens its target region; nothing may be included
// inside the region but vec/ and generic/.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "kernels/generic/tile_rows.h"
#include "kernels/isa_tables.h"
#include "kernels/target_region.h"
#include "tensor/codebook/spelled_block.h"
#include "tensor/dequantize.h"
#include "tensor/dtype.h"
#include "tensor/half.h"
#include "tensor/kv_format.h"
#include "tensor/weight_matrix.h"
