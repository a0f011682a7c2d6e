// The kernel bodies, in the order in which they build on each other.

// clang-format off
#include "kernels/generic/math.inl"
#include "kernels/generic/formats.inl"
#include "kernels/generic/pack.inl"
#include "kernels/generic/prefetch.inl"
#include "kernels/generic/block_formats.inl"
#include "kernels/generic/k_formats.inl"
#include "kernels/generic/matmul_int8.inl"
#include "kernels/generic/matmul_float.inl"
#include "kernels/generic/matmul_columns.inl"
#include "kernels/generic/rows.inl"
#include "kernels/generic/kv_store.inl"
#include "kernels/generic/kv_seal.inl"
#include "kernels/generic/kv_fold.inl"
#include "kernels/generic/online_softmax.inl"
#include "kernels/generic/attention.inl"
#include "kernels/generic/table.inl"
// clang-format on
