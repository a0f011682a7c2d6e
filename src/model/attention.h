// Attention of new tokens over a KV cache's tiles.
//
// Exactness  a row's result is built from fixed segments of kSegmentTokens
//            positions, each an online softmax over the tiles in order, merged
//            in order. So it depends neither on how the prompt was cut into
//            steps nor on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "model/kv_port.h"
#include "model/linear.h"

namespace hearth {

class Attention {
 public:
  Attention(const ModelConfig& config, ThreadPool& pool);

  // q: [n_rows][n_heads * head_dim], after RoPE, row t at position
  // kv.n_tokens() + t. out: the same shape. The layer's new keys and values
  // must have been written.
  void Run(const KvPort& kv, int kv_layer, const float* q, int n_rows,
           float* out);

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
    std::vector<int> visible;
  };
  // Running softmax of some rows.
  struct State {
    float* max;  // [rows]
    float* sum;  // [rows]
    float* acc;  // [rows][head_dim]
  };

  std::size_t StateFloats(int n_rows) const;
  State StateAt(float* memory, int n_rows) const;
  void GatherQueries(const float* q, const RowSet& rows, float* gathered) const;
  void AttendSegment(const KvPort& kv, int kv_layer, const RowSet& rows,
                     int segment, const float* q, Work& work, State state);
  void Merge(State into, State from, int n_rows) const;
  void Finish(State state, const RowSet& rows, float* out) const;
  void RunWhole(const KvPort& kv, int kv_layer, const RowSet& rows,
                int n_segments, const float* q, float* out, Work& work);
  void RunSplit(const KvPort& kv, int kv_layer, int n_rows, int n_segments,
                const float* q, float* out);
  int segment_tokens(const KvPort& kv) const;

  const ModelConfig& config_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  int group_;  // query heads per KV head
  std::vector<Work> work_;
  AlignedBuffer partial_;
};

}  // namespace hearth
