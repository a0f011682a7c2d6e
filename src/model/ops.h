// The operations that a forward step consists of, on rows that lie on a device.
// forward.cc is written against these alone; cpu/cpu_ops.h is one
// implementation. Each is a whole layer's work or a large part of it, so that
// the call costs nothing beside what it does.
//
// Exactness  a row's result depends on the row, its position and its own
//            sequence, never on what else is in the step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hearth/result.h"
#include "kernels/numerics.h"
#include "model/kv_port.h"
#include "model/layer_plan.h"
#include "model/step_rows.h"
#include "model/weights.h"

namespace hearth {

// The rows of one sequence.
struct PartRows {
  KvPort* kv;
  int first_row;
  int n_rows;
  // Of the first row. The last row is the sequence's newest token.
  int first_position;
};

// What the rows of a step are.
struct StepBatch {
  std::vector<PartRows> parts;
  std::vector<std::int32_t> tokens;  // [n_rows]
  std::vector<int> positions;        // [n_rows]

  int n_rows() const { return static_cast<int>(positions.size()); }
};

// Where the logits of consecutive rows go: [n_rows][vocab_size] in the caller's
// memory.
struct LogitsOut {
  int n_rows;
  float* logits;
};

class Ops {
 public:
  virtual ~Ops() = default;

  // What its results' bits follow: part of every model's identity.
  virtual Numerics numerics() const = 0;

  // Takes the memory that a step of these rows can need: no operation fails
  // but Logits fails after that. kResourceFull when there is not enough.
  virtual Result<StepRows> Reserve(const StepBatch& batch) = 0;
  // From here on operations work on these rows. `batch` outlives the step.
  virtual void Begin(const StepBatch& batch) = 0;

  // The step's tokens, and in models that have them their layers' inputs.
  virtual void Embed(Rows x, Rows layer_input) = 0;
  virtual void Normalize(const NormWeights& norm, Rows in, Rows out) = 0;
  // Queries, keys and values; of a layer that owns no keys and values, the
  // queries. The gates of the heads, where the model has them, apart.
  virtual void Project(const LayerPlan& layer, Rows in, Rows qkv,
                       Rows gate) = 0;
  // The norms of queries, keys and values, where the model has them.
  virtual void NormalizeHeads(const LayerPlan& layer, Rows qkv) = 0;
  // Turns queries and keys to their positions, and the queries also to those
  // that they count as for the sink tokens.
  virtual void Rotate(const LayerPlan& layer, Rows qkv, Rows sink_q) = 0;
  // Keys and values become part of each sequence's layer.
  virtual void WriteKv(const LayerPlan& layer, Rows qkv) = 0;
  virtual void Attend(const LayerPlan& layer, Rows qkv, Rows sink_q,
                      Rows out) = 0;
  // Heads' results times the sigmoid of their gates, where the model has them.
  virtual void Gate(const LayerPlan& layer, Rows gate, Rows attended) = 0;
  // What the heads' results add to the residual stream.
  virtual void Output(const LayerPlan& layer, Rows attended, Rows out) = 0;
  // A layer with Mixer::kShortConv or kDeltaNet: what it adds to the residual
  // stream. Each sequence's states become those behind its last row.
  virtual void ShortConv(const LayerPlan& layer, Rows in, Rows out) = 0;
  virtual void DeltaNet(const LayerPlan& layer, Rows in, Rows out) = 0;
  // The same of one that HasMamba2. `adds`: to what is in `out` already.
  virtual void Mamba2(const LayerPlan& layer, Rows in, bool adds, Rows out) = 0;
  // `x`: the residual stream, of which `in` is made.
  virtual void Mlp(const LayerPlan& layer, Rows x, Rows in, Rows out) = 0;
  // x += delta, normalised before where the model does so.
  virtual void AddResidual(const LayerPlan& layer, const NormWeights& norm,
                           Rows delta, Rows x) = 0;
  // x += what the layer makes of its own input; then x times the layer's scale.
  virtual void AddLayerInput(const LayerPlan& layer, Rows layer_input,
                             Rows x) = 0;
  virtual void Scale(const LayerPlan& layer, Rows x) = 0;
  // Moves the given rows, which rise, to the front.
  virtual void KeepRows(Rows x, std::span<const int> rows) = 0;
  // Copies one row out.
  virtual void Read(Rows x, int row, float* out) = 0;
  // Scaled and capped as the model does. The outputs' rows are those of
  // `normed`, in order; without a copy where they lie one behind the other.
  // They are there when FirstNonFinite has been asked. kResourceFull when there
  // is no memory for a copy.
  virtual Result<void> Logits(Rows normed,
                              std::span<const LogitsOut> outputs) = 0;

  // The first layer behind which a row of the residual stream had a NaN or an
  // infinity since Reserve, n_layers when only logits had; -1 when nothing had.
  // kIo when the device has failed: then nothing of the step counts.
  virtual Result<int> FirstNonFinite() = 0;
};

}  // namespace hearth
