// Keys and values in a device's memory: blocks at their addresses, with the
// bytes that they have on disk; writing them, and sealing what is full.
#pragma once

#include "cuda/kernels/rows.h"

namespace hearth::gpu {

// Numbered as tensor/kv_format.h, which a GPU's compiler need not read.
enum class Kv : std::uint8_t {
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
  kInt8 = 3,
  kInt4 = 4
};

HEARTH_GPU constexpr bool IsQuantised(Kv format) {
  return format == Kv::kInt8 || format == Kv::kInt4;
}
HEARTH_GPU std::int64_t RowBytes(Kv format, std::int64_t n) {
  switch (format) {
    case Kv::kF32:
      return 4 * n;
    case Kv::kInt8:
      return n;
    case Kv::kInt4:
      return (n + 15) / 16 * 8;
    default:
      return 2 * n;
  }
}

// Where one layer's tiles lie in a block; offsets from the block's start.
struct KvPlace {
  Kv key_format, value_format;
  std::int64_t layer;  // offset of the layer, that of the fields below included
  std::int64_t keys, key_step;  // head 0's tile, and from head to head
  std::int64_t values, value_step;
  std::int64_t key_params, value_params;  // from a tile's start
};

// One sequence's share of a step.
struct StepPart {
  int first_row, n_rows;
  int first_position;
  int own_first;   // the block that own[0] is
  int table, own;  // where its addresses start
};

// An address of `own` with this bit is of one layer's bytes, not of a block's.
inline constexpr std::uint64_t kOneLayer = 1;

struct KvStep {
  const StepPart* parts;
  const int* part_of_row;       // [n_rows]
  const std::uint64_t* tables;  // block addresses; 0: let go of
  const std::uint64_t* own;     // of blocks that the step fills, in floats
  int block_tokens;
  int quantises;
};

HEARTH_GPU std::uint8_t* OwnLayer(const KvStep& step, const StepPart& part,
                                  int block, const KvPlace& place) {
  const std::uint64_t at = step.own[part.own + block - part.own_first];
  std::uint8_t* bytes =
      reinterpret_cast<std::uint8_t*>(at & ~std::uint64_t{kOneLayer});
  return (at & kOneLayer) != 0 ? bytes : bytes + place.layer;
}

struct WriteKvArgs {
  KvStep step;
  KvPlace place;  // of what is written: floats when the sequence quantises
  RopeArgs rope;  // of queries and keys together
  bool turns;     // else they are as they should be
  float* qkv;     // of row 0
  std::int64_t stride;
  int n_heads, n_kv_heads, head_dim;
};
inline constexpr int kWriteThreads = 64;

HEARTH_GPU void PutKv(Kv format, std::uint8_t* row, std::int64_t i, float x) {
  switch (format) {
    case Kv::kF16:
      reinterpret_cast<std::uint16_t*>(row)[i] = FloatToHalf(x);
      break;
    case Kv::kBF16:
      reinterpret_cast<std::uint16_t*>(row)[i] = FloatToBf16(x);
      break;
    default:
      reinterpret_cast<float*>(row)[i] = x;
      break;
  }
}

// Queries and keys are turned in place; keys and values go to the sequence's
// blocks. grid: (query heads, KV heads, KV heads again for values; rows).
HEARTH_GPU void WriteKv(const Block& block, const WriteKvArgs& a) {
  block.Await();
  const int row = static_cast<int>(block.y());
  const int head = static_cast<int>(block.x());
  float* at = a.qkv + row * a.stride + std::int64_t{head} * a.head_dim;
  const bool value = head >= a.n_heads + a.n_kv_heads;
  if (a.turns && !value) TurnHead(block, a.rope, row, head, at, at);
  if (head < a.n_heads) return;
  block.Sync();
  const KvStep& step = a.step;
  const StepPart& part = step.parts[step.part_of_row[row]];
  const int position = part.first_position + row - part.first_row;
  const int b = position / step.block_tokens;
  const int slot = position % step.block_tokens;
  std::uint8_t* layer =
      step.quantises
          ? OwnLayer(step, part, b, a.place)
          : reinterpret_cast<std::uint8_t*>(step.tables[part.table + b]) +
                a.place.layer;
  const std::int64_t kv_head = head - a.n_heads - (value ? a.n_kv_heads : 0);
  if (value) {
    std::uint8_t* values =
        layer + a.place.values + kv_head * a.place.value_step;
    ForItems(block, a.head_dim, [&](std::int64_t d) {
      PutKv(a.place.value_format, values, std::int64_t{slot} * a.head_dim + d,
            at[d]);
    });
  } else {
    std::uint8_t* keys = layer + a.place.keys + kv_head * a.place.key_step;
    ForItems(block, a.head_dim, [&](std::int64_t d) {
      PutKv(a.place.key_format, keys, d * step.block_tokens + slot, at[d]);
    });
  }
}

// --- Sealing -----------------------------------------------------------------
struct SealArgs {
  KvStep step;
  KvPlace from, to;   // of floats, and of full blocks
  const int* sealed;  // [n_sealed][2]: part and block
  int head_dim;
};
inline constexpr int kSealThreads = 128;

// The largest float16 <= x, or the smallest >= x where x >= 0.
HEARTH_GPU std::uint16_t HalfBelow(float x) {
  std::uint16_t h = FloatToHalf(x);
  if (HalfToFloat(h) > x) {
    if ((h & 0x7fff) == 0) {
      h = 0x8001;
    } else {
      h = static_cast<std::uint16_t>(h + ((h & 0x8000) != 0 ? 1 : -1));
    }
  }
  return h;
}
HEARTH_GPU std::uint16_t HalfAbove(float x) {
  const std::uint16_t h = FloatToHalf(x);
  return HalfToFloat(h) < x ? static_cast<std::uint16_t>(h + 1) : h;
}

// One row of n floats as codes of 0..levels; see generic/kv_seal.inl.
HEARTH_GPU void SealRow(Kv format, const float* x, int n, std::uint8_t* out,
                        std::uint8_t* scale_out, std::uint8_t* zero_out) {
  if (!IsQuantised(format)) {
    for (int i = 0; i < n; ++i) PutKv(format, out, i, x[i]);
    return;
  }
  const float levels = format == Kv::kInt8 ? 255.0f : 15.0f;
  float low = x[0], high = x[0];
  bool nan = false;
  for (int i = 0; i < n; ++i) {
    low = Min(low, x[i]);
    high = Max(high, x[i]);
    nan = nan || x[i] != x[i];
  }
  // The sign of a zero as the CPU's lanes leave it.
  const float smallest = -(0.0f - low);
  const std::uint16_t zero = HalfBelow(smallest);
  std::uint16_t scale = HalfAbove(Div(high - HalfToFloat(zero), levels));
  const bool finite =
      !nan && (zero & 0x7c00) != 0x7c00 && (scale & 0x7c00) != 0x7c00;
  if (!finite) scale = 0x7e00;
  *reinterpret_cast<std::uint16_t*>(scale_out) = scale;
  *reinterpret_cast<std::uint16_t*>(zero_out) = zero;
  const float step = HalfToFloat(scale);
  const float inverse = finite && step > 0.0f ? Div(1.0f, step) : 0.0f;
  const float offset = finite ? HalfToFloat(zero) : 0.0f;
  const auto code = [&](int i) {
    if (i >= n) return 0u;
    const float bounded = Min(Max((x[i] - offset) * inverse, 0.0f), levels);
    return AsBits(bounded + 0x1.8p23f) & 0xffu;
  };
  if (format == Kv::kInt8) {
    for (int i = 0; i < n; ++i) out[i] = static_cast<std::uint8_t>(code(i));
  } else {
    for (int i = 0; i < (n + 15) / 16 * 16; i += 2) {
      out[i / 2] =
          static_cast<std::uint8_t>((code(i) & 15) | (code(i + 1) & 15) << 4);
    }
  }
}

// Each thread one row. grid: (KV heads, n_sealed).
HEARTH_GPU void Seal(const Block& block, const SealArgs& a) {
  block.Await();
  const KvStep& step = a.step;
  const StepPart& part = step.parts[a.sealed[2 * block.y()]];
  const int b = a.sealed[2 * block.y() + 1];
  const std::int64_t head = block.x();
  const std::uint8_t* from = OwnLayer(step, part, b, a.from);
  std::uint8_t* to =
      reinterpret_cast<std::uint8_t*>(step.tables[part.table + b]) + a.to.layer;
  const int n = step.block_tokens, d = a.head_dim;
  ForItems(block, d + n, [&](std::int64_t i) {
    const bool key = i < d;
    const std::int64_t row = key ? i : i - d;
    const int size = key ? n : d, n_rows = key ? d : n;
    const Kv format = key ? a.to.key_format : a.to.value_format;
    const std::uint8_t* in =
        from + (key ? a.from.keys + head * a.from.key_step
                    : a.from.values + head * a.from.value_step);
    std::uint8_t* tile = to + (key ? a.to.keys + head * a.to.key_step
                                   : a.to.values + head * a.to.value_step);
    std::uint8_t* params = tile + (key ? a.to.key_params : a.to.value_params);
    SealRow(format, reinterpret_cast<const float*>(in) + row * size, size,
            tile + row * RowBytes(format, size), params + 2 * row,
            params + 2 * (n_rows + row));
  });
}

}  // namespace hearth::gpu
