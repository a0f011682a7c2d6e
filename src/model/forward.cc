#include "model/forward.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "model/non_finite.h"

namespace hearth {
namespace {

// Of a part's n tokens.
int WantedRows(LogitRows want, int n) {
  switch (want) {
    case LogitRows::kNone:
      return 0;
    case LogitRows::kLast:
      return 1;
    case LogitRows::kAll:
      break;
  }
  return n;
}

void CheckDistinct(std::span<const StepPart> parts) {
  std::vector<const KvPort*> ports;
  for (const StepPart& part : parts) ports.push_back(part.kv);
  std::sort(ports.begin(), ports.end());
  HEARTH_CHECK(std::adjacent_find(ports.begin(), ports.end()) == ports.end());
}

// All or none.
Result<void> ExtendAll(std::span<const StepPart> parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto extended =
        parts[i].kv->Extend(static_cast<int>(parts[i].tokens.size()));
    if (extended.ok()) continue;
    for (std::size_t k = 0; k < i; ++k) parts[k].kv->Abandon();
    return extended;
  }
  return {};
}

}  // namespace

Forward::Forward(const LoadedModel& model, std::unique_ptr<Ops> ops)
    : model_(model),
      config_(model.config),
      ops_(std::move(ops)),
      layers_(PlanLayers(model)),
      first_without_kv_(config_.FirstLayerWithoutKv()) {}

Result<void> Forward::CheckPart(const StepPart& part) const {
  for (const std::int32_t token : part.tokens) {
    if (token < 0 || token >= config_.vocab_size) {
      return {Code::kInvalidArgument,
              "token id " + std::to_string(token) +
                  " is outside the model's vocabulary of " +
                  std::to_string(config_.vocab_size)};
    }
  }
  const auto n_after =
      part.kv->n_tokens() + static_cast<std::int64_t>(part.tokens.size());
  if (config_.learned_positions && n_after > config_.context_length) {
    return {Code::kResourceFull, "the model has learned positions for " +
                                     std::to_string(config_.context_length) +
                                     " tokens and " + std::to_string(n_after) +
                                     " are needed"};
  }
  return {};
}

// The step's rows: the parts' tokens one behind the other.
void Forward::Collect(std::span<const StepPart> parts) {
  batch_.parts.clear();
  batch_.tokens.clear();
  batch_.positions.clear();
  for (const StepPart& part : parts) {
    const int first = part.kv->n_tokens();
    const auto n = static_cast<int>(part.tokens.size());
    HEARTH_CHECK(n > 0);
    batch_.parts.push_back({part.kv, batch_.n_rows(), n, first});
    for (int t = 0; t < n; ++t) batch_.positions.push_back(first + t);
    batch_.tokens.insert(batch_.tokens.end(), part.tokens.begin(),
                         part.tokens.end());
  }
  HEARTH_CHECK(batch_.n_rows() >= 1 && batch_.n_rows() <= kStepTokensMax);
}

// What a sublayer reads: the residual stream, normalised where the model has a
// norm in front.
Rows Forward::NormalizeInput(const NormWeights& norm) {
  if (norm.weight.empty()) return rows_.x;
  ops_->Normalize(norm, rows_.x, rows_.normed);
  return rows_.normed;
}

void Forward::RunAttention(const LayerPlan& layer, Rows in) {
  ops_->Project(layer, in, rows_.qkv, rows_.gate);
  ops_->NormalizeHeads(layer, rows_.qkv);
  ops_->Rotate(layer, rows_.qkv, rows_.sink_q);
  if (layer.owns_kv) ops_->WriteKv(layer, rows_.qkv);
  ops_->Attend(layer, rows_.qkv, rows_.sink_q, rows_.attended);
  ops_->Gate(layer, rows_.gate, rows_.attended);
  ops_->Output(layer, rows_.attended, rows_.delta);
}

void Forward::RunMixer(const LayerPlan& layer) {
  const Rows in = NormalizeInput(layer.weights->attention_norm);
  switch (layer.mixer) {
    case Mixer::kAttention:
      RunAttention(layer, in);
      break;
    case Mixer::kShortConv:
      ops_->ShortConv(layer, in, rows_.delta);
      break;
    case Mixer::kDeltaNet:
      ops_->DeltaNet(layer, in, rows_.delta);
      break;
    case Mixer::kMamba2:
      ops_->Mamba2(layer, in, /*adds=*/false, rows_.delta);
      break;
    case Mixer::kAttentionAndMamba2:
      RunAttention(layer, in);
      ops_->Mamba2(layer, in, /*adds=*/true, rows_.delta);
      break;
    case Mixer::kNone:
      break;
  }
}

void Forward::RunLayer(const LayerPlan& layer) {
  const LayerWeights& w = *layer.weights;
  if (layer.mixer != Mixer::kNone) {
    RunMixer(layer);
    ops_->AddResidual(layer, w.post_attention_norm, rows_.delta, rows_.x);
  }
  if (layer.has_dense || layer.has_experts) {
    ops_->Mlp(layer, rows_.x, NormalizeInput(w.mlp_norm), rows_.delta);
    ops_->AddResidual(layer, w.post_mlp_norm, rows_.delta, rows_.x);
  }
  if (config_.d_layer_input > 0) {
    ops_->AddLayerInput(layer, rows_.layer_input, rows_.x);
  }
  if (!w.scale.empty()) ops_->Scale(layer, rows_.x);
}

// Rows whose logits nobody wants end here, and parts that want none.
void Forward::KeepWantedRows(std::span<const StepPart> parts) {
  StepBatch kept;
  std::vector<int> rows;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartRows& part = batch_.parts[i];
    const int n = WantedRows(parts[i].want, part.n_rows);
    if (n == 0) continue;
    const int skipped = part.n_rows - n;
    kept.parts.push_back(
        {part.kv, kept.n_rows(), n, part.first_position + skipped});
    for (int t = skipped; t < part.n_rows; ++t) {
      const int row = part.first_row + t;
      rows.push_back(row);
      kept.tokens.push_back(batch_.tokens[static_cast<std::size_t>(row)]);
      kept.positions.push_back(batch_.positions[static_cast<std::size_t>(row)]);
    }
  }
  if (kept.n_rows() < batch_.n_rows()) {
    ops_->KeepRows(rows_.x, rows);
    ops_->KeepRows(rows_.layer_input, rows);
  }
  batch_ = std::move(kept);
  rows_.Narrow(batch_.n_rows());
}

// Of all rows that are left.
Result<void> Forward::ComputeLogits(std::span<const StepPart> parts) {
  ops_->Normalize(model_.weights.final_norm, rows_.x, rows_.normed);
  std::vector<LogitsOut> outputs;
  int row = 0;
  for (const StepPart& part : parts) {
    const int n = WantedRows(part.want, static_cast<int>(part.tokens.size()));
    if (n == 0) continue;
    outputs.push_back({n, part.logits});
    for (int t = 0; t < n && part.hidden != nullptr; ++t) {
      ops_->Read(rows_.normed, row + t,
                 part.hidden + t * std::int64_t{config_.d_model});
    }
    row += n;
  }
  return ops_->Logits(rows_.normed, outputs);
}

Error Forward::NonFinite(int layer, std::span<const StepPart> parts) const {
  std::vector<std::int32_t> tokens;
  for (const StepPart& part : parts) {
    tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
  }
  return NonFiniteError(model_, layer, tokens);
}

Result<void> Forward::Compute(std::span<const StepPart> parts) {
  ops_->Begin(batch_);
  ops_->Embed(rows_.x, rows_.layer_input);
  for (const LayerPlan& layer : layers_) {
    if (layer.index == first_without_kv_) {
      // All keys and values are made: the layers from here on have work only
      // for positions whose logits are wanted.
      KeepWantedRows(parts);
      if (batch_.n_rows() == 0) break;
      ops_->Begin(batch_);
    }
    RunLayer(layer);
  }
  if (first_without_kv_ == config_.n_layers) KeepWantedRows(parts);
  if (batch_.n_rows() > 0) HEARTH_TRY(ComputeLogits(parts));
  HEARTH_ASSIGN(const int bad, ops_->FirstNonFinite());
  if (bad >= 0) return NonFinite(bad, parts);
  return {};
}

Result<void> Forward::Step(std::span<const StepPart> parts) {
  CheckDistinct(parts);
  for (const StepPart& part : parts) HEARTH_TRY(CheckPart(part));
  Collect(parts);
  HEARTH_ASSIGN(rows_, ops_->Reserve(batch_));
  HEARTH_TRY(ExtendAll(parts));
  const Result<void> computed = Compute(parts);
  for (const StepPart& part : parts) {
    if (computed.ok()) {
      part.kv->Commit();
    } else {
      part.kv->Abandon();
    }
  }
  return computed;
}

}  // namespace hearth
