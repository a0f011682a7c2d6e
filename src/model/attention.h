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

// One layer's attention in one step.
struct AttentionCall {
  const KvPort& kv;  // holds the layer's new keys and values
  int kv_layer;
  const float* q;  // [n_rows][n_heads * head_dim], rows q_stride apart; after
                   // RoPE, row t at position kv.n_tokens() + t
  std::int64_t q_stride;
  int n_rows;
  int window;          // LayerKind::window
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
  // Segments [first, end) that hold something for a row set.
  struct Segments {
    int first, end;
    int count() const { return end - first; }
  };

  std::size_t StateFloats(int n_rows) const;
  State StateAt(float* memory, int n_rows) const;
  Segments SegmentsOf(const AttentionCall& call, const RowSet& rows) const;
  void GatherQueries(const AttentionCall& call, const RowSet& rows,
                     float* gathered) const;
  void AttendSegment(const AttentionCall& call, const RowSet& rows, int segment,
                     const float* q, Work& work, State state);
  void Merge(State into, State from, int n_rows) const;
  void Finish(const AttentionCall& call, State state, const RowSet& rows) const;
  void RunWhole(const AttentionCall& call, const RowSet& rows, Work& work);
  void RunSplit(const AttentionCall& call, Segments segments);
  int segment_tokens(const KvPort& kv) const;

  const ModelConfig& config_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  int group_;  // query heads per KV head
  std::vector<float> zeros_;  // [head_dim], a sink's value
  std::vector<Work> work_;
  AlignedBuffer partial_;
};

}  // namespace hearth
