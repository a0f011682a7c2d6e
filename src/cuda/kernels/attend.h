// Attention over blocks of keys and values, in the order of
// generic/attention.inl and model/cpu/attention.cc: segments of tokens, each an
// online softmax over its tiles, merged in order.
//
// A block of threads has up to kRows query rows of one KV head and walks
// through segments; inside one, all scores are made before all weights and all
// weighted values, since only the maximum and the sums depend on what came
// before. A tile with sink tokens is passed twice, once for those and once for
// the others, as the CPU does.
#pragma once

#include "cuda/kernels/kv.h"

namespace hearth::gpu {

inline constexpr int kAttendThreads = 512;

// Neighbouring positions of one part.
struct RowTask {
  int part;
  int begin, end;  // rows of the part
};

struct AttendArgs {
  KvStep step;
  KvPlace place;      // of full blocks
  KvPlace own_place;  // of floats, where the sequence quantises
  const RowTask* tasks;
  // Query heads in all, those of one KV head in a block of threads (`group`),
  // and how many such shares a KV head's queries have. block.y is the share.
  int n_heads, group, shares, head_dim;
  int window, sink_tokens;
  int segment_tokens;
  float scale, softcap;
  const float* q;
  std::int64_t q_stride;
  const float* q_sink;
  std::int64_t sink_stride;
  const float* sinks;  // [n_heads] or null: tokens of value zero
  float* out;          // [n_rows][n_heads * head_dim]
  // One segment a block (block.z) and its state here, to be merged:
  // [task][share][segment][kRows][head_dim + 2]; or null: all segments, to
  // `out`.
  float* states;
  int n_segments;
  // Tiles of values that lie in shared memory before they are wanted, and the
  // bytes of one there; 0 tiles: they are read where they are.
  int ring_tiles, ring_bytes;
};

// Which segments hold something for a task; see Attention::SegmentsOf.
struct Segments {
  int n_sink, first, end;
  HEARTH_GPU int count() const { return n_sink + end - first; }
  HEARTH_GPU int At(int i) const { return i < n_sink ? i : first + i - n_sink; }
};

HEARTH_GPU int WindowStart(int position, int window) {
  if (window <= 0) return 0;
  return position - window + 1 > 0 ? position - window + 1 : 0;
}
HEARTH_GPU int Least(int a, int b) { return a < b ? a : b; }
HEARTH_GPU int Most(int a, int b) { return a > b ? a : b; }

HEARTH_GPU Segments SegmentsOf(const AttendArgs& a, const StepPart& part,
                               const RowTask& task) {
  const int n = a.segment_tokens;
  const int last = part.first_position + task.end - 1;
  const int first = WindowStart(part.first_position + task.begin, a.window) / n;
  return {Least((a.sink_tokens + n - 1) / n, first), first, last / n + 1};
}

// What one block of threads knows of its task.
struct TaskView {
  const StepPart* part;
  int begin, n_rows;  // query rows: positions times group
  int first_position, last_position;
  int head;        // KV head
  int first_head;  // the first query head
  int row0;        // of q, the first position's
};

// Tokens [begin, end) of the sequence that a row sees in a pass of a tile.
struct Sight {
  int begin, end;
};
HEARTH_GPU Sight SightOf(const AttendArgs& a, int position, int tile,
                         bool sinks) {
  const int base = tile * a.step.block_tokens;
  int begin = base;
  int end = Least(position + 1, base + a.step.block_tokens);
  if (sinks) {
    end = Least(end, a.sink_tokens);
  } else {
    begin = Most(begin, Most(a.sink_tokens, WindowStart(position, a.window)));
  }
  return {begin, end};
}

// A tile's bytes as one thread reads them.
struct TileView {
  Kv key_format, value_format;
  const std::uint8_t *keys, *values;
  const std::uint8_t *key_params, *value_params;
};

// Bytes in front of the views, and of the ring.
HEARTH_GPU constexpr int AttendViewsAt(int rows, int head_dim,
                                       int segment_tokens, int tiles,
                                       int passes) {
  const int floats = 3 * head_dim + segment_tokens + tiles + 4 * passes + 5;
  return (4 * rows * floats + 15) / 16 * 16;
}
HEARTH_GPU constexpr int AttendRingAt(int rows, int head_dim,
                                      int segment_tokens, int tiles,
                                      int passes) {
  const int views = tiles * static_cast<int>(sizeof(TileView));
  return AttendViewsAt(rows, head_dim, segment_tokens, tiles, passes) +
         (views + 15) / 16 * 16;
}

// Shared memory of a block; kRows rows of everything but the last two.
template <int kRows>
struct AttendMemory {
  float* q;        // [head_dim][kRows], scaled
  float* q_sink;   // the same
  float* p;        // [segment_tokens][kRows]: scores, then weights
  float* acc;      // [head_dim][kRows]: all segments so far
  float* start;    // [tiles][kRows]: what the keys' zeros add to scores
  float* maximum;  // [passes][kRows]: of a tile, then what weights are against
  float* scale;    // [passes][kRows]
  float* total;    // [passes][kRows]
  float* offset;   // [passes][kRows]: what the values' zeros add
  float* max;      // [kRows]: of all segments so far
  float* sum;
  float* scale_a;  // [kRows]: how the newest segment is merged
  float* scale_b;
  int* mode;           // [kRows]
  TileView* views;     // [tiles]: of the segment
  std::uint8_t* ring;  // [ring_tiles][ring_bytes]

  HEARTH_GPU AttendMemory(std::byte* shared, int head_dim, int segment_tokens,
                          int tiles, int passes) {
    float* at = reinterpret_cast<float*>(shared);
    const auto take = [&](int n) {
      float* taken = at;
      at += n * kRows;
      return taken;
    };
    q = take(head_dim);
    q_sink = take(head_dim);
    p = take(segment_tokens);
    acc = take(head_dim);
    start = take(tiles);
    maximum = take(passes);
    scale = take(passes);
    total = take(passes);
    offset = take(passes);
    max = take(1);
    sum = take(1);
    scale_a = take(1);
    scale_b = take(1);
    mode = reinterpret_cast<int*>(take(1));
    views = reinterpret_cast<TileView*>(
        shared + AttendViewsAt(kRows, head_dim, segment_tokens, tiles, passes));
    ring = reinterpret_cast<std::uint8_t*>(
        shared + AttendRingAt(kRows, head_dim, segment_tokens, tiles, passes));
  }
};
enum MergeMode : int { kSkip, kTake, kBlend };

HEARTH_GPU TileView TileOf(const AttendArgs& a, const TaskView& task,
                           int tile) {
  // The newest block of a quantised sequence is seen as it was written; tasks
  // do not reach over a block's end there.
  const bool own =
      a.step.quantises != 0 && task.last_position / a.step.block_tokens == tile;
  const KvPlace& place = own ? a.own_place : a.place;
  const std::uint8_t* layer =
      own ? OwnLayer(a.step, *task.part, tile, place)
          : reinterpret_cast<const std::uint8_t*>(
                a.step.tables[task.part->table + tile]) +
                place.layer;
  TileView view;
  view.key_format = place.key_format;
  view.value_format = place.value_format;
  view.keys = layer + place.keys + task.head * place.key_step;
  view.values = layer + place.values + task.head * place.value_step;
  view.key_params = view.keys + place.key_params;
  view.value_params = view.values + place.value_params;
  return view;
}

HEARTH_GPU float KvNumber(Kv format, const std::uint8_t* row, std::int64_t i) {
  switch (format) {
    case Kv::kF16:
      return HalfToFloat(reinterpret_cast<const std::uint16_t*>(row)[i]);
    case Kv::kBF16:
      return Bf16ToFloat(reinterpret_cast<const std::uint16_t*>(row)[i]);
    case Kv::kInt8:
      return static_cast<float>(row[i]);
    case Kv::kInt4:
      return static_cast<float>((row[i / 2] >> (i % 2 * 4)) & 15);
    default:
      return reinterpret_cast<const float*>(row)[i];
  }
}
HEARTH_GPU float Param(const std::uint8_t* params, std::int64_t i) {
  return HalfToFloat(reinterpret_cast<const std::uint16_t*>(params)[i]);
}

}  // namespace hearth::gpu
