// The arithmetic of a forward pass, on plain spans: no allocation, no threads,
// no I/O, no errors. Sizes are the caller's duty.
//
// One numerics on every CPU: each function below gives the same bits on every
// instruction set (scalar, AVX2, AVX-512, VNNI), for one row and for many, and
// however rows, columns or query rows were split into calls. The rules that
// make it so (docs/kernels.md has them in full):
//   - dot products with float weights run over 16 virtual lanes (element k goes
//     to lane k % 16, in rising k, one fused multiply-add each) and end in one
//     fixed tree; kInOut weights and attention sum each output in rising order;
//   - integer dot products are exact, and their float sum runs block by block;
//   - exp, erfc, silu and the gelus are our own polynomials, not the C
//     library's.
// Equal up to the payload of a NaN. The floating-point environment is the
// default one: round to nearest, subnormals kept.
// Which numerics this is: kernels/numerics.h, part of every model identity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hearth/result.h"
#include "kernels/numerics.h"
#include "tensor/half.h"
#include "tensor/kv_format.h"
#include "tensor/weight_matrix.h"

namespace hearth {

// One value head's tokens for Kernels::delta_update, in order.
struct DeltaTokens {
  int n;
  const float *q, *k;      // [key_dim], the first token's
  std::int64_t qk_stride;  // floats from one token's to the next's
  const float* v;          // [value_dim]
  std::int64_t v_stride;
  const float *decay, *rate;  // one number of a token
  std::int64_t gate_stride;
  float* out;  // [value_dim]
  std::int64_t out_stride;
};

// One head's tokens for Kernels::ssm_update, in order.
struct SsmTokens {
  int n;
  const float* x;         // [head_dim], the first token's, times its time step
  std::int64_t x_stride;  // floats from one token's to the next's
  const float *write, *read;  // [n_state]
  std::int64_t state_stride;
  const float* decay;  // one number of a token
  std::int64_t decay_stride;
  float* out;  // [head_dim]
  std::int64_t out_stride;
};

struct Kernels {
  std::string_view isa;  // "scalar", "avx2", "avx512", ...

  // --- Linear layers -------------------------------------------------------
  // Activations are prepared once per matrix input and shared by all threads:
  // float formats keep float rows; block formats quantise each row to int8 in
  // groups of 32 (scale = absmax / 127, round to nearest even; a NaN makes its
  // group's scale NaN). The bytes are the same on every instruction set.
  // Bytes that pack_row writes for one row of n_in values; a multiple of 64.
  std::size_t (*packed_row_bytes)(DType weight, std::int64_t n_in);
  // x: [n_in]; packed: packed_row_bytes, 64-byte aligned.
  void (*pack_row)(DType weight, const float* x, std::int64_t n_in,
                   std::byte* packed);
  // y[r * y_stride + n] = sum_k W[n, k] x[r, k] (+ bias[n] when bias != null)
  // for r in [0, n_rows) and n in [n_begin, n_end). packed rows lie
  // packed_row_bytes apart. `scratch`: matmul_scratch_bytes, 64-byte aligned,
  // one per thread. n_begin and n_end are multiples of kMatmulColumns, but for
  // n_end == n_out. Block formats need n_in in whole blocks. Reads no
  // weight byte outside the matrix, though it may prefetch there.
  void (*matmul)(const WeightMatrix& w, const std::byte* packed, int n_rows,
                 std::int64_t n_begin, std::int64_t n_end, const float* bias,
                 float* y, std::int64_t y_stride, std::byte* scratch);
  // Never less for more rows, so the largest batch's scratch serves all; 0 for
  // the few rows of a decode step.
  std::size_t (*matmul_scratch_bytes)(const WeightMatrix& w, int n_rows);
  // out[0..n_in) = row `row` of a kOutIn matrix as float (embedding look-up).
  void (*dequantize_row)(const WeightMatrix& w, std::int64_t row, float* out);

  // --- Elementwise, over n values; out may be x -----------------------------
  void (*rms_norm)(const float* x, const float* weight, float eps,
                   std::int64_t n, float* out);
  void (*layer_norm)(const float* x, const float* weight, const float* bias,
                     float eps, std::int64_t n, float* out);
  void (*add)(const float* x, std::int64_t n, float* accumulator);
  void (*silu_mul)(const float* gate, const float* up, std::int64_t n,
                   float* out);  // silu(g) * u
  void (*silu)(const float* x, std::int64_t n, float* out);
  void (*sigmoid_mul)(const float* gate, std::int64_t n,
                      float* x);  // x * sigmoid(gate)
  void (*relu_squared)(const float* x, std::int64_t n, float* out);
  void (*gelu_erf)(const float* x, std::int64_t n, float* out);  // exact form
  void (*gelu_tanh)(const float* x, std::int64_t n, float* out);
  void (*softcap)(float cap, std::int64_t n, float* x);  // cap * tanh(x / cap)
  // Whether none is a NaN or an infinity.
  bool (*all_finite)(const float* x, std::int64_t n);
  // Rotates one head in place. cos, sin: [rotary_dim / 2]. Pairs are (i, i +
  // rotary_dim / 2), or (2i, 2i + 1) when interleaved.
  void (*rope)(float* head, int rotary_dim, const float* cos, const float* sin,
               bool interleaved);

  // --- Recurrent layers -----------------------------------------------------
  // out[c] = sum over t of taps[t][c] inputs[t][c], in rising t. taps:
  // [n_taps][n]; inputs: n_taps rows of n; out is none of them.
  void (*conv_row)(const float* taps, int n_taps, const float* const* inputs,
                   std::int64_t n, float* out);
  // The gated delta rule, token by token: S = decay S; d = rate (v - S^T k); S
  // += k d^T; out = S^T q. Each column's sums run over key_dim in rising order.
  // before, after: S, [key_dim][value_dim]; they may be the same.
  void (*delta_update)(const float* before, float* after, int key_dim,
                       int value_dim, const DeltaTokens& tokens);

  // A selective state space, token by token: S = decay S + write x^T; out = S^T
  // read, whose sums run over n_state in rising order. before, after: S,
  // [n_state][head_dim]; they may be the same.
  void (*ssm_update)(const float* before, float* after, int n_state,
                     int head_dim, const SsmTokens& tokens);

  // --- KV tiles -------------------------------------------------------------
  // Writes one token's key and value (head_dim floats each) of one head into
  // slot `slot` of a tile. Rounds to nearest even. REQUIRES: not quantised.
  void (*store_key)(KvFormat format, const float* key, int head_dim,
                    std::byte* keys, int stride, int slot);
  void (*store_value)(KvFormat format, const float* value, int head_dim,
                      std::byte* values, int slot);

  // Writes n_rows rows of n floats as one full block's rows in `format`, with
  // their scales and zeros (KvParamBytes) when it is quantised: keys are
  // head_dim rows of block_tokens, values block_tokens rows of head_dim. A
  // quantised number is within half a scale of the float; a row with NaN or
  // beyond float16's range gets a NaN scale.
  void (*seal_rows)(KvFormat format, const float* x, int n_rows, int n,
                    std::byte* rows, std::byte* params);

  // The keys of a tile as values, [n_tokens][head_dim] floats: of a layer whose
  // values are a part of its keys. code * scale + zero, one fma, when they are
  // quantised.
  void (*keys_as_values)(const KvTile& tile, int head_dim, float* values);

  // --- Attention ------------------------------------------------------------
  // Folds one tile into the running softmax of n_rows query rows that share a
  // KV head (all query heads of the group, and several positions).
  //   q      [n_rows][head_dim], already scaled
  //   begin[r], visible[r]: the row sees tokens [begin, visible) of the tile;
  //           visible may be <= begin (the row skips the tile), never above
  //           the tile's n_tokens
  //   softcap above 0: scores become softcap * tanh(score / softcap)
  //   state  per row: running maximum, running sum; and acc [n_rows][head_dim].
  //           Starts as -infinity, 0 and zeros.
  // The result for a row depends on nothing but the row, the tiles in order and
  // the tokens that it sees: other slots may hold anything, NaN too. Slots up
  // to `stride` are read. Rows run in groups of up to eight that share each
  // load, so neighbours should see about the same tokens: order rows by
  // position, then by head.
  void (*attend_tile)(const float* q, int n_rows, int head_dim,
                      const KvTile& tile, const int* begin, const int* visible,
                      float softcap, float* max, float* sum, float* acc,
                      std::byte* scratch);
  std::size_t (*attend_scratch_bytes)(int head_dim, int stride);
  // Folds the state b into a (both of one row): used at fixed token positions,
  // so that long contexts may be split over threads.
  void (*merge_attention)(float* max_a, float* sum_a, float* acc_a, float max_b,
                          float sum_b, const float* acc_b, int head_dim);
  // out = acc / sum.
  void (*finish_attention)(float sum, const float* acc, int head_dim,
                           float* out);

  // Index of the first largest value.
  std::int64_t (*argmax)(const float* x, std::int64_t n);
};

// Threads split matmul columns at multiples of this.
inline constexpr std::int64_t kMatmulColumns = 16;

// The best table for this CPU, or the one that HEARTH_ISA in the environment
// names: scalar, avx2, avx512 or avx512vnni; on AArch64 scalar, neon or
// neondot. A program calls CheckIsaChoice first, so that a name that is none is
// refused and not passed over here.
const Kernels& ActiveKernels();
// kInvalidArgument when HEARTH_ISA names a table that this CPU or this program
// does not have.
Result<void> CheckIsaChoice();
// The table of that name; of none, the best.
Result<const Kernels*> KernelsNamed(std::string_view isa);
// Every table this CPU can run, scalar first. For tests and benches.
std::span<const Kernels* const> AvailableKernels();

}  // namespace hearth
