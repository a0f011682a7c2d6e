// y = W x of weights that are read as exact floats, in the order of
// generic/matmul_float.inl (rows of W contiguous: sixteen lanes along k and one
// tree) and of generic/matmul_columns.inl (kInOut: one chain over k).
#pragma once

#include "cuda/kernels/matmul_few.h"

namespace hearth::gpu {

inline constexpr int kFloatThreads = 128;
inline constexpr int kFloatOutputs = 16;  // of a block, kOutIn
inline constexpr int kFloatRows = 4;      // rows of a block

template <Codes kCodes>
HEARTH_GPU float LoadFloat(const std::uint8_t* data, std::int64_t i) {
  if (kCodes == Codes::kF32) return reinterpret_cast<const float*>(data)[i];
  const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(data)[i];
  return kCodes == Codes::kF16 ? HalfToFloat(bits) : Bf16ToFloat(bits);
}

// Eight threads an output, two neighbouring lanes each.
template <Codes kCodes>
HEARTH_GPU void FloatLanes(const Block& block, const MatmulArgs& a,
                           const MatmulCall& call, std::int64_t first_output,
                           int first_row) {
  const Matrix& w = call.w;
  const int n_rows =
      a.n_rows - first_row < kFloatRows ? a.n_rows - first_row : kFloatRows;
  float* lanes = reinterpret_cast<float*>(block.shared());
  block.ForThreads([&](int thread) {
    const std::int64_t output = first_output + thread / 8;
    if (output >= w.n_out) return;
    const int lane = thread % 8 * 2;
    float acc[kFloatRows][2] = {};
    const std::int64_t first = output * w.n_in;
    HEARTH_GPU_UNROLL_BY(4)
    for (std::int64_t k = lane; k < w.n_in - 1; k += 16) {
      const float w0 = LoadFloat<kCodes>(w.codes, first + k);
      const float w1 = LoadFloat<kCodes>(w.codes, first + k + 1);
      HEARTH_GPU_UNROLL
      for (int r = 0; r < kFloatRows; ++r) {
        if (r >= n_rows) break;
        const float* x = a.floats + (first_row + r) * a.floats_stride + k;
        acc[r][0] = Fma(x[0], w0, acc[r][0]);
        acc[r][1] = Fma(x[1], w1, acc[r][1]);
      }
    }
    // The last sixteen are padded with zeros, which are added, too.
    const std::int64_t k = w.n_in / 16 * 16 + lane;
    if (w.n_in % 16 != 0 && k + 1 >= w.n_in) {
      const bool live = k + 1 == w.n_in;
      const float weight = live ? LoadFloat<kCodes>(w.codes, first + k) : 0.0f;
      HEARTH_GPU_UNROLL
      for (int r = 0; r < kFloatRows; ++r) {
        const float x = live && r < n_rows
                            ? a.floats[(first_row + r) * a.floats_stride + k]
                            : 0.0f;
        acc[r][0] = Fma(x, weight, acc[r][0]);
        acc[r][1] = Fma(0.0f, 0.0f, acc[r][1]);
      }
    }
    HEARTH_GPU_UNROLL
    for (int r = 0; r < kFloatRows; ++r) {
      float* out = lanes + (thread / 8 * kFloatRows + r) * 17 + lane;
      out[0] = acc[r][0];
      out[1] = acc[r][1];
    }
  });
  block.Sync();
  block.ForThreads([&](int thread) {
    const std::int64_t output = first_output + thread / kFloatRows;
    const int r = thread % kFloatRows;
    if (thread >= kFloatOutputs * kFloatRows || output >= w.n_out ||
        r >= n_rows) {
      return;
    }
    float mine[16];
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 16; ++i) mine[i] = lanes[thread * 17 + i];
    const float sum = ReduceLanes(mine);
    call.y[(first_row + r) * call.y_stride + output] =
        call.bias != nullptr ? sum + call.bias[output] : sum;
  });
}

// One thread an output.
template <Codes kCodes>
HEARTH_GPU void FloatColumns(const Block& block, const MatmulArgs& a,
                             const MatmulCall& call, std::int64_t first_output,
                             int first_row) {
  const Matrix& w = call.w;
  const int n_rows =
      a.n_rows - first_row < kFloatRows ? a.n_rows - first_row : kFloatRows;
  block.ForThreads([&](int thread) {
    const std::int64_t output = first_output + thread;
    if (thread >= kFloatOutputs || output >= w.n_out) return;
    float acc[kFloatRows] = {};
    HEARTH_GPU_UNROLL_BY(8)
    for (std::int64_t k = 0; k < w.n_in; ++k) {
      const float weight = LoadFloat<kCodes>(w.codes, k * w.n_out + output);
      HEARTH_GPU_UNROLL
      for (int r = 0; r < kFloatRows; ++r) {
        if (r >= n_rows) break;
        acc[r] = Fma(a.floats[(first_row + r) * a.floats_stride + k], weight,
                     acc[r]);
      }
    }
    for (int r = 0; r < n_rows; ++r) {
      call.y[(first_row + r) * call.y_stride + output] =
          call.bias != nullptr ? acc[r] + call.bias[output] : acc[r];
    }
  });
}

template <Codes kCodes>
HEARTH_GPU void FloatOutputs(const Block& block, const MatmulArgs& a,
                             const MatmulCall& call, std::int64_t first_output,
                             int first_row) {
  if (call.w.in_out) {
    FloatColumns<kCodes>(block, a, call, first_output, first_row);
  } else {
    FloatLanes<kCodes>(block, a, call, first_output, first_row);
  }
}

// grid: (outputs of all calls / kFloatOutputs, rows / kFloatRows), each call
// rounded up. shared: kFloatSharedBytes.
HEARTH_GPU void MatmulFloat(const Block& block, const MatmulArgs& a) {
  block.Await();
  const int index = CallOf(a, block.x());
  const MatmulCall& call = a.calls[index];
  const std::int64_t first_output =
      std::int64_t{block.x() - a.first_block[index]} * kFloatOutputs;
  const int first_row = static_cast<int>(block.y()) * kFloatRows;
  switch (call.w.codes_kind) {
    case Codes::kF16:
      FloatOutputs<Codes::kF16>(block, a, call, first_output, first_row);
      break;
    case Codes::kBF16:
      FloatOutputs<Codes::kBF16>(block, a, call, first_output, first_row);
      break;
    default:
      FloatOutputs<Codes::kF32>(block, a, call, first_output, first_row);
      break;
  }
}
inline constexpr int kFloatSharedBytes = kFloatOutputs * kFloatRows * 17 * 4;

}  // namespace hearth::gpu
