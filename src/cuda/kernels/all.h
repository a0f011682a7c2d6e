// Every kernel's source.
#pragma once

#include "cuda/kernels/attend_rows.h"
#include "cuda/kernels/kv.h"
#include "cuda/kernels/matmul_few.h"
#include "cuda/kernels/matmul_float.h"
#include "cuda/kernels/matmul_many.h"
#include "cuda/kernels/norm_row.h"
#include "cuda/kernels/pack.h"
#include "cuda/kernels/repack.h"
#include "cuda/kernels/rows.h"
