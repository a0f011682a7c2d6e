// What Engine::Open puts together, in the order in which parts need each other.
#include <algorithm>
#include <filesystem>
#include <future>
#include <utility>

#include "base/beside.h"
#include "engine/choose_device.h"
#include "engine/describe.h"
#include "engine/engine_core.h"
#include "engine/kv_setup.h"
#include "engine/text/tokenizer_cache.h"
#include "formats/adapter/apply_adapters.h"
#include "formats/describe.h"
#include "model/identity.h"
#include "store/memo/model_memo.h"
#include "tensor/half.h"

namespace hearth {
namespace {

// The content digest, from the memo beside the store when the files are
// unchanged since it was made.
Digest DigestOf(const LoadedModel& model, const SideFiles* side_files,
                bool trust_memo, ThreadPool& pool, const BytesRead& on_read) {
  std::vector<FileStamp> stamps;
  for (const MappedFile& file : model.files) stamps.push_back(file.stamp());
  if (stamps.empty()) {
    // The embedded model changes when the program does.
    if (auto self = StatFile("/proc/self/exe"); self.ok()) {
      stamps.push_back(*self);
    }
  }
  if (side_files == nullptr || stamps.empty()) {
    return ContentDigest(model, pool, on_read);
  }
  const ModelMemo memo(*side_files);
  if (trust_memo) {
    if (const auto known = memo.Find(stamps); known.has_value()) return *known;
  }
  const Digest digest = ContentDigest(model, pool, on_read);
  // A memo that cannot be written costs time at the next start, nothing else.
  (void)memo.Save(stamps, digest);
  return digest;
}

void RoundRope(RopeRounding rounding, RopeConfig& rope) {
  for (float& f : rope.inv_freq) {
    if (rounding == RopeRounding::kBf16) f = ToFloat(ToBF16(f));
    if (rounding == RopeRounding::kFp16) f = ToFloat(ToF16(f));
  }
}

// Of a model with adapters with the names of their files.
std::string NameForPeople(const LoadedModel& model) {
  std::string name = model.config.name;
  for (const AppliedAdapter& adapter : model.adapters) {
    const std::filesystem::path path(adapter.path);
    // A directory's path may end in a separator.
    const std::filesystem::path last =
        path.has_filename() ? path : path.parent_path();
    name += "+" + NameForFiles(last.stem().string());
  }
  return name;
}

// The adapters that the options name, beside the model's weights.
Result<void> AddAdapters(const EngineOptions& options, LoadedModel& model) {
  std::vector<AdapterToApply> adapters;
  for (const AdapterChoice& choice : options.adapters) {
    HEARTH_ASSIGN(AdapterFile file, ReadAdapter(choice.path));
    adapters.push_back({std::move(file), choice.scale});
  }
  return ApplyAdapters(std::move(adapters), model);
}

// Of the model as it was given and the options as they are now.
KvIdentity IdentityOf(const EngineCore& core, const BytesRead& on_read) {
  const MutexLock turn(core.workers->turn);
  const Digest content = AdaptedContent(
      DigestOf(core.model, core.prompt_cache->side_files(),
               !core.options.verify_model, core.workers->pool, on_read),
      core.model.adapters);
  return {
      .model_id = ModelId(core.model.config, content, core.steps->numerics()),
      .format_id = FormatId(core.kv.spec()),
      .name_space = core.options.cache_namespace,
      .model_name = NameForPeople(core.model)};
}

Result<void> CheckOptions(const EngineOptions& options) {
  if (options.block_tokens < 16 || options.block_tokens > 1024 ||
      options.block_tokens % 16 != 0) {
    return {Code::kInvalidArgument,
            "a block's tokens must be a multiple of 16 from 16 to 1024"};
  }
  if (options.context_tokens < 0 || options.context_tokens > (1 << 24)) {
    return {Code::kInvalidArgument, "the context must be 1 to 16777216 tokens"};
  }
  if (options.draft_tokens < 1 || options.draft_tokens > 64) {
    return {Code::kInvalidArgument,
            "guesses in one step must be 1 to 64 tokens"};
  }
  if (options.n_threads < 0 || options.n_threads > 1024 ||
      options.n_threads_prefill < 0 || options.n_threads_prefill > 1024) {
    return {Code::kInvalidArgument,
            "threads, also those for prompts, must be 1 to 1024"};
  }
  if (options.prefill_step_tokens < 0 ||
      options.prefill_step_tokens > Forward::kStepTokensMax) {
    return {Code::kInvalidArgument,
            "a prefill step must have 1 to " +
                std::to_string(Forward::kStepTokensMax) + " tokens"};
  }
  return {};
}

// The configuration that the options make of the model's own.
void ApplyOptions(const EngineOptions& options, int context_tokens,
                  ModelConfig& config) {
  // No two tokens that meet are further apart than this.
  config.rope.UseForContext(config.stream_window > 0
                                ? config.sink_tokens + config.stream_window
                                : context_tokens);
  RoundRope(options.rope_rounding, config.rope);
  RoundRope(options.rope_rounding, config.local_rope);
}

std::shared_ptr<Workers> MakeWorkers(const EngineOptions& options) {
  const int n_tokens =
      options.n_threads > 0 ? options.n_threads : AvailableCpus();
  return std::make_shared<Workers>(n_tokens, options.n_threads_prefill > 0
                                                 ? options.n_threads_prefill
                                                 : n_tokens);
}

}  // namespace

Result<std::shared_ptr<EngineCore>> OpenCore(const EngineOptions& options,
                                             const LentToDraft& lent,
                                             const BytesRead& on_read) {
  HEARTH_TRY(CheckOptions(options));
  auto owned = std::make_shared<EngineCore>();
  EngineCore& core = *owned;
  core.options = options;
  // Neither needs the other, and the first digest, which the cache's opening
  // makes, sets up the library that computes it.
  Beside<Result<std::unique_ptr<PromptCache>>> opening(
      [&options] { return PromptCache::Open(options); });
  HEARTH_ASSIGN(core.model, LoadAny(options.model_path));
  HEARTH_TRY(AddAdapters(options, core.model));
  core.prefetch = std::make_unique<WeightPrefetch>(core.model);
  HEARTH_ASSIGN(core.prompt_cache, opening.Get());
  HEARTH_ASSIGN(
      core.tokenizer,
      MakeTokenizerCached(core.model, core.prompt_cache != nullptr
                                          ? core.prompt_cache->side_files()
                                          : nullptr));
  ModelConfig& config = core.model.config;
  const bool has_cache = core.prompt_cache != nullptr;
  HEARTH_TRY(SetStreaming(options, config));
  HEARTH_ASSIGN(core.kv, KvPlan::Make(options, config, has_cache,
                                      lent.context_tokens_max));
  ApplyOptions(options, core.kv.context_tokens(), config);
  core.workers = lent.workers != nullptr ? lent.workers : MakeWorkers(options);
  HEARTH_ASSIGN(ChosenDevice chosen,
                ChooseDevice(core.options, core.model, core.kv.spec(),
                             core.workers->pool));
  core.device = std::move(chosen.report);
  core.steps = std::make_unique<StepRunner>(core.model, core.workers,
                                            std::move(chosen.ops));
  if (has_cache) core.prompt_cache->SetIdentity(IdentityOf(core, on_read));
  core.ram = std::make_unique<RamBudget>(core.kv.pool());
  // Sequences of an engine are of one model: without a store, whose blocks are
  // those of any model, its digest need not be computed.
  core.chain_root =
      RootId(has_cache ? core.prompt_cache->identity()
                       : KvIdentity{.model_id = {},
                                    .format_id = FormatId(core.kv.spec()),
                                    .name_space = {},
                                    .model_name = {}});
  return owned;
}

}  // namespace hearth
