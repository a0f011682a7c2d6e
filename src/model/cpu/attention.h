// Attention of a step's new tokens, each sequence's over its own KV cache.
//
// Exactness  a row's result is built from fixed segments of kSegmentTokens
//            positions, each an online softmax over the tiles in order, merged
//            in order. So it depends neither on how the prompt was cut into
//            steps, nor on what else is in the step, nor on the number of
//            threads.
// Windows    tiles that no row of a task sees are not touched: their bytes may
//            be anything.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/aligned_buffer.h"
#include "model/kv_port.h"
#include "model/layer_plan.h"

namespace hearth {

// Query rows, [n_rows][n_heads * head_dim], after RoPE.
struct QueryRows {
  const float* data;
  std::int64_t stride;  // floats from one row to the next
};

// One sequence's rows of a step; see PartRows.
struct AttentionPart {
  const HostKvPort* kv;  // holds the layer's new keys and values
  int first_row, n_rows;
  int first_position;
};

// One layer's attention in one step.
struct AttentionCall {
  const LayerPlan& layer;
  std::span<const AttentionPart> parts;
  QueryRows q;
  QueryRows q_sink;  // the same, rotated for the sink tokens; unused without
  float* out;        // [n_rows][n_heads * head_dim]
};

class Attention {
 public:
  // Both must outlive the object.
  Attention(const ModelConfig& config, ThreadPool& pool);

  // Takes the memory for Run on any of the layers with these parts, or with
  // the last row alone of any of them.
  Result<void> Reserve(std::span<const LayerPlan> layers,
                       std::span<const AttentionPart> parts);
  // REQUIRES: the memory was reserved.
  void Run(const AttentionCall& call);

 private:
  // Query rows that one task works on: all heads of a KV group at positions
  // [t_begin, t_end) of a part.
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
  enum class Kind : std::uint8_t { kSinks, kWindow };
  // Per-thread memory.
  struct Work {
    AlignedBuffer floats;
    AlignedBuffer kernel;
    AlignedBuffer values;  // a tile's keys as values
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
  // What one thread does at a time: all segments of a row set, or, of a part
  // with few rows, one.
  struct Task {
    const AttentionPart* part;
    RowSet rows;
    int segment;    // -1: all
    float* memory;  // of one segment: its state, then its gathered queries
  };
  // The states of one head's segments, to be merged when all are there.
  struct Split {
    const AttentionPart* part;
    RowSet rows;
    int n_segments;
    float* states;
  };
  // How a layer's work on one part is cut.
  struct Cut {
    int positions_per_task, n_row_tasks;
    Segments segments;
    bool few_rows() const { return n_row_tasks == 1; }
    bool splits() const { return few_rows() && segments.count() > 1; }
  };

  static std::size_t StateFloats(const LayerPlan& layer, int n_rows);
  static std::size_t QueryFloats(const LayerPlan& layer, int n_rows);
  static State StateAt(float* memory, int n_rows);
  Cut CutOf(const LayerPlan& layer, const AttentionPart& part) const;
  Segments SegmentsOf(const LayerPlan& layer, const AttentionPart& part,
                      const RowSet& rows) const;
  void AddWhole(const AttentionCall& call, const AttentionPart& part,
                const Cut& cut);
  void AddSplit(const AttentionCall& call, const AttentionPart& part,
                const Cut& cut, float*& memory);
  Queries GatherQueries(const AttentionCall& call, const AttentionPart& part,
                        const RowSet& rows, float* memory) const;
  void AttendSegment(const AttentionCall& call, const AttentionPart& part,
                     const RowSet& rows, int segment, const Queries& queries,
                     Work& work, State state);
  void UseKeysAsValues(const LayerPlan& layer, Work& work, KvTile& tile) const;
  void AttendBlock(const AttentionCall& call, const AttentionPart& part,
                   const RowSet& rows, int block, Kind kind, const float* q,
                   Work& work, State state);
  void Merge(const LayerPlan& layer, State into, State from, int n_rows) const;
  void Finish(const AttentionCall& call, const AttentionPart& part, State state,
              const RowSet& rows) const;
  void RunWhole(const AttentionCall& call, const Task& task, Work& work);
  void RunSegment(const AttentionCall& call, const Task& task, Work& work);
  void MergeSplit(const AttentionCall& call, const Split& split) const;

  const ModelConfig& config_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  std::vector<float> zeros_;  // [largest head_dim], a sink's value
  std::vector<Work> work_;    // [n_threads]
  AlignedBuffer partial_;
  std::vector<Task> tasks_;
  std::vector<Split> splits_;
};

}  // namespace hearth
