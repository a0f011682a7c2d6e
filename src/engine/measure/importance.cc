#include "hearth/importance.h"

#include <memory>
#include <string>

#include "engine/engine_core.h"
#include "engine/measure/chunks.h"
#include "engine/measure/importance_sums.h"
#include "engine/measure/run_chunks.h"
#include "model/cpu/cpu_ops.h"

namespace hearth {
namespace {

Result<void> CheckModel(const EngineCore& core) {
  if (core.model.gguf == nullptr) {
    return {Code::kUnsupported,
            core.model.path +
                ": an importance matrix names the tensors of a GGUF file, and "
                "this model is none; convert it to GGUF first"};
  }
  if (core.device.weight_bytes > 0) {
    return {Code::kUnsupported,
            "what linear layers see is looked at on the CPU alone; use the "
            "CPU"};
  }
  return {};
}

}  // namespace

Result<ImportanceReport> MeasureImportance(Engine& engine,
                                           std::string_view text,
                                           const ImportanceOptions& options) {
  EngineCore& core = EngineAccess::Core(engine);
  HEARTH_TRY(CheckModel(core));
  HEARTH_ASSIGN(const TextChunks chunks,
                CutIntoChunks(*core.tokenizer, text, options.context_tokens,
                              options.n_chunks_max, core.kv.context_tokens()));
  ImportanceSums sums(core.model, core.workers->pool);
  StepRunner steps(core.model, core.workers,
                   MakeCpuOps(core.model, core.workers->pool, &sums));
  // Without logits no row goes through layers behind the last keys and values.
  const ModelConfig& config = core.model.config;
  const bool needs_logits = config.FirstLayerWithoutKv() < config.n_layers;
  HEARTH_TRY(
      RunChunks(core.kv, steps, chunks,
                {.n_tokens = chunks.context_tokens,
                 .first_logits = needs_logits ? 0 : chunks.context_tokens,
                 .on_logits = nullptr,
                 .progress = options.progress}));
  ImportanceReport report;
  report.n_computed_tokens =
      std::int64_t{chunks.n_chunks} * chunks.context_tokens;
  report.matrix.n_chunks = chunks.n_chunks;
  report.matrix.chunk_tokens = chunks.context_tokens;
  report.matrix.datasets = {options.dataset};
  report.matrix.entries =
      sums.Entries([&report](const std::string& name, int n_unseen, int n) {
        report.notes.push_back(
            name + ": no token chose " + std::to_string(n_unseen) + " of " +
            std::to_string(n) + " experts; a longer text may");
      });
  return report;
}

}  // namespace hearth
