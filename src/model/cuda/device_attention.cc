#include "model/cuda/device_attention.h"

#include <algorithm>

#include "cuda/kernel_table.h"
#include "cuda/kernels/kv.h"
#include "model/device_kv.h"

namespace hearth {
namespace {

constexpr int kRowsMax = 8;
constexpr int kRingTilesMax = 4;

gpu::KvPlace PlaceOf(const StepBatch& batch, int kv_layer, bool floats) {
  const KvPlaceInBlock at =
      batch.parts[0].kv->device()->PlaceOf(kv_layer, floats);
  const auto i = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  return {.key_format = static_cast<gpu::Kv>(at.key_format),
          .value_format = static_cast<gpu::Kv>(at.value_format),
          .layer = i(at.layer),
          .keys = i(at.keys),
          .key_step = i(at.key_step),
          .values = i(at.values),
          .value_step = i(at.value_step),
          .key_params = i(at.key_params),
          .value_params = i(at.value_params)};
}

// How many tiles of values wait in shared memory, and what a block of threads
// asks for in all.
int StageValues(gpu::AttendArgs& args, int rows) {
  const int n = args.step.block_tokens;
  const int tiles = args.segment_tokens / n;
  const int state =
      gpu::AttendRingAt(rows, args.head_dim, args.segment_tokens, tiles,
                        tiles * (args.sink_tokens > 0 ? 2 : 1));
  std::int64_t bytes = gpu::RowBytes(args.place.value_format, args.head_dim);
  if (args.step.quantises != 0) bytes = std::int64_t{4} * args.head_dim;
  bytes = (bytes * n + 15) / 16 * 16;
  const std::int64_t room = gpu::kSharedBytesPerBlock - state;
  const std::int64_t fits = std::min<std::int64_t>(kRingTilesMax, room / bytes);
  if (fits < 2) return state;
  args.ring_tiles = static_cast<int>(fits);
  args.ring_bytes = static_cast<int>(bytes);
  return state + args.ring_tiles * args.ring_bytes;
}

struct AttendKernels {
  gpu::Kernel attend, merge;
};
AttendKernels KernelsFor(int rows) {
  switch (rows) {
    case 1:
      return {gpu::Kernel::kAttend1, gpu::Kernel::kMergeSegments1};
    case 2:
      return {gpu::Kernel::kAttend2, gpu::Kernel::kMergeSegments2};
    case 4:
      return {gpu::Kernel::kAttend4, gpu::Kernel::kMergeSegments4};
    default:
      return {gpu::Kernel::kAttend8, gpu::Kernel::kMergeSegments8};
  }
}

}  // namespace

Result<void> DeviceAttention::Reserve(std::span<const LayerPlan> layers) {
  std::uint64_t floats = 0;
  for (const LayerPlan& layer : layers) {
    floats = std::max<std::uint64_t>(
        floats, static_cast<std::uint64_t>(kStateSegmentsMax) * kRowsMax *
                    static_cast<std::uint64_t>(layer.head_dim + 2));
  }
  return states_.Reserve(floats * sizeof(float));
}

void DeviceAttention::Write(const LayerPlan& layer, const StepBatch& batch,
                            float* qkv, const gpu::RopeArgs* turn) {
  for (const PartRows& part : batch.parts) part.kv->BeginLayer(layer.kv_layer);
  const bool quantises = step_.kv_step().quantises != 0;
  const auto heads = static_cast<unsigned>(layer.n_kv_heads);
  const gpu::WriteKvArgs write{
      .step = step_.kv_step(),
      .place = PlaceOf(batch, layer.kv_layer, quantises),
      .rope = turn != nullptr ? *turn : gpu::RopeArgs{},
      .turns = turn != nullptr,
      .qkv = qkv,
      .stride = layer.qkv_dim(),
      .n_heads = layer.n_heads,
      .n_kv_heads = layer.n_kv_heads,
      .head_dim = layer.head_dim};
  device_.Run(gpu::Kernel::kWriteKv,
              {static_cast<unsigned>(layer.n_heads) + 2 * heads,
               static_cast<unsigned>(batch.n_rows())},
              write);
  if (step_.n_sealed() == 0) return;
  const gpu::SealArgs seal{.step = step_.kv_step(),
                           .from = PlaceOf(batch, layer.kv_layer, true),
                           .to = PlaceOf(batch, layer.kv_layer, false),
                           .sealed = step_.sealed(),
                           .head_dim = layer.head_dim};
  device_.Run(gpu::Kernel::kSeal,
              {heads, static_cast<unsigned>(step_.n_sealed())}, seal);
}

gpu::AttendArgs DeviceAttention::ArgsOf(const StepBatch& batch,
                                        const DeviceAttentionCall& call,
                                        const AttendShape& shape) const {
  const LayerPlan& layer = call.layer;
  gpu::AttendArgs args = {};
  args.step = step_.kv_step();
  args.place = PlaceOf(batch, layer.kv_layer, false);
  if (args.step.quantises != 0) {
    args.own_place = PlaceOf(batch, layer.kv_layer, true);
  }
  args.tasks = step_.TasksOf(layer).tasks;
  args.n_heads = layer.n_heads;
  args.group = shape.group;
  args.shares = shape.shares;
  args.head_dim = layer.head_dim;
  args.window = layer.sight.window;
  args.sink_tokens = layer.sight.sink_tokens;
  args.segment_tokens = StepData::SegmentTokens(args.step.block_tokens);
  args.scale = config_.attention_scale;
  args.softcap = config_.attention_softcap;
  args.q = call.q;
  args.q_stride = call.q_stride;
  args.q_sink = call.q_sink;
  args.sink_stride = call.sink_stride;
  args.sinks = weights_.Of(layer.weights->sinks);
  args.out = call.out;
  return args;
}

void DeviceAttention::Run(const StepBatch& batch,
                          const DeviceAttentionCall& call) {
  const LayerPlan& layer = call.layer;
  const AttendShape shape = step_.ShapeOf(layer);
  gpu::AttendArgs args = ArgsOf(batch, call, shape);
  const int n_tasks = step_.TasksOf(layer).n;
  const int n_shares = layer.n_kv_heads * shape.shares;
  const int n_segments = step_.SegmentsMax(layer);
  const int shared = StageValues(args, shape.rows);
  const AttendKernels kernels = KernelsFor(shape.rows);
  const auto x = static_cast<unsigned>(n_tasks);
  const auto y = static_cast<unsigned>(n_shares);
  const std::int64_t n_states = std::int64_t{n_tasks} * n_shares * n_segments;
  const bool few = n_tasks * n_shares < 4 * device_.n_processors();
  if (n_segments > 1 && few && n_states <= kStateSegmentsMax) {
    args.states = states_.As<float>();
    args.n_segments = n_segments;
    device_.Run(kernels.attend, {x, y, static_cast<unsigned>(n_segments)}, args,
                shared);
    device_.Run(kernels.merge, {x, y}, args);
  } else {
    device_.Run(kernels.attend, {x, y}, args, shared);
  }
}

}  // namespace hearth
