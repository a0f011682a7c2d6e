// What the kernels need to know of a step beside its rows, gathered on the host
// and sent at once: the parts, their blocks' addresses, rotations, and which
// query rows attend together.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "cuda/device.h"
#include "cuda/kernels/attend.h"
#include "model/config.h"
#include "model/cpu/rope_table.h"
#include "model/cuda/device_kv_memory.h"
#include "model/layer_plan.h"
#include "model/ops.h"

namespace hearth {

// How a layer's query rows are shared out over blocks of threads.
struct AttendShape {
  int group = 1;   // query heads of one KV head in a block
  int shares = 1;  // such shares of a KV head
  int rows = 1;    // room for rows in a block: 1, 2, 4 or 8
  int positions() const { return rows / group > 1 ? rows / group : 1; }
};

// Rotations of a step's rows.
struct RopeRows {
  const float *cos = nullptr, *sin = nullptr;
};

class StepData {
 public:
  StepData(const ModelConfig& config, std::span<const LayerPlan> layers,
           gpu::Device& device, DeviceKvMemory& kv);

  // Brings the blocks of a step to the device and takes what else it needs.
  Result<void> Reserve(const StepBatch& batch);
  // From here on, of these rows.
  void Begin(const StepBatch& batch);

  const gpu::KvStep& kv_step() const { return kv_step_; }
  RopeRows rope(const LayerPlan& layer) const {
    return layer.rope == RopeUse::kLocal ? local_rope_ : rope_;
  }
  // Of queries as they meet the sink tokens.
  RopeRows sink_rope(const LayerPlan& layer) const {
    return layer.rope == RopeUse::kLocal ? local_sink_rope_ : sink_rope_;
  }
  const float* growth() const { return growth_; }
  // Whether queries meet the sink tokens at another position than their own.
  bool TurnsSinkQueries(const LayerPlan& layer) const;

  AttendShape ShapeOf(const LayerPlan& layer) const;
  struct Tasks {
    const gpu::RowTask* tasks;
    int n;
  };
  Tasks TasksOf(const LayerPlan& layer) const;
  // Blocks that the step fills, of a sequence that quantises: [n][2].
  const int* sealed() const { return sealed_; }
  int n_sealed() const { return n_sealed_; }
  // Segments that a task of the layer can have at most.
  int SegmentsMax(const LayerPlan& layer) const;
  static int SegmentTokens(int block_tokens);

 private:
  // `align`: the room that the values take is a multiple of it.
  template <class T>
  const T* Put(std::span<const T> values, std::size_t align = 64);
  RopeRows PutRope(const RopeConfig& rope, std::span<const int> positions);
  void PutBlocks(const StepBatch& batch);
  void PutPart(const PartRows& part, std::vector<gpu::StepPart>& parts,
               std::vector<std::uint64_t>& tables,
               std::vector<std::uint64_t>& own, std::vector<int>& sealed);
  void PutTasks(const StepBatch& batch);
  void PutRopes(const StepBatch& batch);
  Result<void> ReserveBlocks(const StepBatch& batch);

  const ModelConfig& config_;
  const std::span<const LayerPlan> layers_;
  gpu::Device& device_;
  DeviceKvMemory& kv_;
  std::size_t inner_bytes_ = 0;  // of one layer's floats in a block

  std::vector<std::byte> blob_;  // of what is sent
  gpu::Buffer sent_;
  gpu::Buffer inner_;  // of blocks that begin and end within the step
  std::map<const KvPort*, std::int64_t> inner_of_;  // where each part's start
  std::uint64_t blob_bytes_ = 0;

  const StepBatch* batch_ = nullptr;
  gpu::KvStep kv_step_ = {};
  RopeRows rope_, local_rope_;
  RopeRows sink_rope_, local_sink_rope_;
  const float* growth_ = nullptr;
  std::map<int, Tasks> tasks_;  // by positions of a task
  const int* sealed_ = nullptr;
  int n_sealed_ = 0;
};

}  // namespace hearth
