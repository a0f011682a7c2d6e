// Attention of new tokens over a KV cache's tiles.
//
// Exactness  a row's result is built from fixed segments of kSegmentTokens
//            positions, each an online softmax over the tiles in order, merged
//            in order. So it depends neither on how the prompt was cut into
//            steps nor on the number of threads.
// Windows    tiles that no row of a task sees are not touched: their bytes may
//            be anything.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "model/kv_port.h"
#include "model/linear.h"

namespace hearth {

// Query rows, [n_rows][n_heads * head_dim], after RoPE.
struct QueryRows {
  const float* data;
  std::int64_t stride;  // floats from one row to the next
};

// One layer's attention in one step.
struct AttentionCall {
  const KvPort& kv;  // holds the layer's new keys and values
  int kv_layer;
  QueryRows q;
  QueryRows q_sink;  // the same, rotated for the sink tokens; unused without
  int n_rows;
  int first_position;  // of row 0; the step's own tokens end with the last row
  LayerSight sight;
  const float* sinks;  // [n_heads], or null
  float* out;          // [n_rows][n_heads * head_dim]
};

class Attention {
 public:
  Attention(const ModelConfig& config, ThreadPool& pool);

  void Run(const AttentionCall& call);

 private:
  // Query rows that one task works on: all heads of a KV group at positions
  // [t_begin, t_end) of this step.
  struct RowSet {
    int kv_head, t_begin, t_end;
    int n_rows(int group) const { return (t_end - t_begin) * group; }
  };
  // Their queries, gathered: [rows][head_dim].
  struct Queries {
    float* q;
    float* q_sink;  // null without sink tokens
  };
  // Token positions [begin, end) that one row sees; see AttendBlock.
  enum class Part : std::uint8_t { kSinks, kWindow };
  // Per-thread memory.
  struct Work {
    AlignedBuffer floats;
    AlignedBuffer kernel;
    std::vector<int> begin, visible;
  };
  // Running softmax of some rows.
  struct State {
    float* max;  // [rows]
    float* sum;  // [rows]
    float* acc;  // [rows][head_dim]
  };
  // Segments that hold something for a row set: [0, n_sink) and [first, end).
  struct Segments {
    int n_sink, first, end;
    int count() const { return n_sink + end - first; }
    int At(int i) const { return i < n_sink ? i : first + i - n_sink; }
  };

  std::size_t StateFloats(int n_rows) const;
  State StateAt(float* memory, int n_rows) const;
  Segments SegmentsOf(const AttentionCall& call, const RowSet& rows) const;
  std::size_t QueryFloats(const AttentionCall& call, int n_rows) const;
  Queries GatherQueries(const AttentionCall& call, const RowSet& rows,
                        float* memory) const;
  void AttendSegment(const AttentionCall& call, const RowSet& rows, int segment,
                     const Queries& queries, Work& work, State state);
  void AttendBlock(const AttentionCall& call, const RowSet& rows, int block,
                   Part part, const float* q, Work& work, State state);
  void Merge(State into, State from, int n_rows) const;
  void Finish(const AttentionCall& call, State state, const RowSet& rows) const;
  void RunWhole(const AttentionCall& call, const RowSet& rows, Work& work);
  void RunSplit(const AttentionCall& call, Segments segments);
  int segment_tokens(const KvPort& kv) const;

  const ModelConfig& config_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  int group_;                 // query heads per KV head
  std::vector<float> zeros_;  // [head_dim], a sink's value
  std::vector<Work> work_;
  AlignedBuffer partial_;
};

}  // namespace hearth
