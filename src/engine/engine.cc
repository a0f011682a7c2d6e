#include "hearth/engine.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <utility>

#include "engine/default_model.h"
#include "engine/engine_impl.h"
#include "engine/kv_setup.h"
#include "engine/session.h"
#include "engine/text/tokenizer_cache.h"
#include "engine/text/tokenizer_factory.h"
#include "formats/loader.h"
#include "model/cpu/cpu_ops.h"
#include "model/identity.h"
#include "store/memo/model_memo.h"
#include "tensor/half.h"

namespace hearth {
namespace {

constexpr const char* kDefaultModelLabel = "embedded default model";

Result<LoadedModel> LoadAny(const std::string& path) {
  if (path.empty()) {
    return LoadTinygptFromMemory(DefaultModelBytes(), kDefaultModelLabel);
  }
  return LoadModel(path);
}

ModelInfo Describe(const LoadedModel& model) {
  const ModelConfig& c = model.config;
  ModelInfo info;
  // The label of the embedded model is no path.
  info.path = model.files.empty() ? "" : model.path;
  info.file_format = model.file_format;
  info.architecture = c.architecture;
  info.name = c.name;
  info.n_parameters = model.n_parameters;
  info.n_layers = c.n_layers;
  info.n_heads = c.n_heads;
  info.n_kv_heads = c.n_kv_heads;
  info.head_dim = c.head_dim;
  info.d_model = c.d_model;
  info.d_mlp = c.d_mlp;
  info.vocab_size = c.vocab_size;
  info.context_length = c.context_length;
  info.positions = c.learned_positions ? "learned" : "rope";
  std::map<std::string, std::uint64_t> types;
  for (const TensorRecord& tensor : model.tensors) {
    info.weight_bytes += tensor.bytes.size();
    ++types[tensor.type];
  }
  info.tensor_types.assign(types.begin(), types.end());
  for (int i = 0; i < kKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    info.kv_bytes_per_token.emplace_back(
        NameOf(format),
        SpecOf(c, format, format, kDefaultBlockTokens).bytes_per_token());
  }
  info.capabilities = CapabilitiesOf(c);
  info.sampling = model.sampling;
  return info;
}

// The content digest, from the memo beside the store when the files are
// unchanged since it was made.
Digest DigestOf(const LoadedModel& model, const SideFiles* side_files,
                bool trust_memo, ThreadPool& pool) {
  std::vector<FileStamp> stamps;
  for (const MappedFile& file : model.files) stamps.push_back(file.stamp());
  if (stamps.empty()) {
    // The embedded model changes when the program does.
    if (auto self = StatFile("/proc/self/exe"); self.ok()) {
      stamps.push_back(*self);
    }
  }
  if (side_files == nullptr || stamps.empty())
    return ContentDigest(model, pool);
  const ModelMemo memo(*side_files);
  if (trust_memo) {
    if (const auto known = memo.Find(stamps); known.has_value()) return *known;
  }
  const Digest digest = ContentDigest(model, pool);
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

KvIdentity IdentityOf(const EngineParts& parts) {
  const Digest content = DigestOf(parts.model, parts.prompt_cache->side_files(),
                                  !parts.options.verify_model, *parts.pool);
  return {.model_id =
              ModelId(parts.model.config, content, parts.forward->numerics()),
          .format_id = FormatId(parts.spec),
          .name_space = parts.options.cache_namespace,
          .model_name = parts.model.config.name};
}

Result<void> CheckOptions(const EngineOptions& options) {
  if (options.block_tokens < 16 || options.block_tokens > 1024 ||
      options.block_tokens % 16 != 0) {
    return {Code::kInvalidArgument,
            "block_tokens must be a multiple of 16 from 16 to 1024"};
  }
  if (options.context_tokens < 0 || options.context_tokens > (1 << 24)) {
    return {Code::kInvalidArgument, "--context must be 1 to 16777216 tokens"};
  }
  if (options.draft_tokens < 1 || options.draft_tokens > 64) {
    return {Code::kInvalidArgument, "--draft-tokens must be 1 to 64"};
  }
  if (options.n_threads < 0 || options.n_threads > 1024 ||
      options.n_threads_prefill < 0 || options.n_threads_prefill > 1024) {
    return {Code::kInvalidArgument,
            "--threads and --threads-prefill must be 1 to 1024"};
  }
  if (options.prefill_step_tokens < 0 ||
      options.prefill_step_tokens > Forward::kStepTokensMax) {
    return {Code::kInvalidArgument,
            "a prefill step must have 1 to " +
                std::to_string(Forward::kStepTokensMax) + " tokens"};
  }
  return {};
}

// A whole preallocated context must fit into the memory that is there.
Result<void> CheckPreallocation(const EngineParts& parts) {
  if (!parts.options.kv_preallocate) return {};
  if (parts.options.kv_growth == KvGrowth::kConcat) {
    return {Code::kInvalidArgument,
            "--kv-preallocate needs --kv-growth in-place: the concat reference "
            "allocates at every append"};
  }
  struct sysinfo memory;
  if (::sysinfo(&memory) != 0) return {};
  const std::uint64_t total = std::uint64_t{memory.totalram} * memory.mem_unit;
  const std::uint64_t wanted = parts.spec.full_block_bytes() *
                               static_cast<std::uint64_t>(parts.n_kv_blocks());
  if (parts.options.kv_ram_budget_bytes > 0 &&
      wanted > parts.options.kv_ram_budget_bytes) {
    return {Code::kResourceFull,
            "--kv-preallocate would take " + std::to_string(wanted >> 20) +
                " MiB, more than --kv-ram-budget; give a smaller --context"};
  }
  if (wanted > total / 2) {
    return {Code::kResourceFull,
            "--kv-preallocate would take " + std::to_string(wanted >> 20) +
                " MiB for " + std::to_string(parts.n_kv_blocks()) +
                " blocks of " + std::to_string(parts.spec.block_tokens) +
                " tokens, more than half of this machine's memory; give a "
                "smaller --context"};
  }
  return {};
}

class EngineImpl final : public Engine {
 public:
  explicit EngineImpl(std::unique_ptr<EngineParts> parts)
      : owned_parts_(std::move(parts)), parts_(*owned_parts_) {
    codec_ = MakeTextCodec(parts_.tokenizer);
    info_ = Describe(parts_.model);
    info_.tokenizer = codec_->Describe();
  }

  EngineParts& parts() { return parts_; }
  const ModelInfo& info() const override { return info_; }
  const EngineOptions& options() const override { return parts_.options; }
  const TextCodec& codec() const override { return *codec_; }
  bool IsEndOfText(std::int32_t id) const override { return parts_.IsEnd(id); }
  int context_tokens() const override { return parts_.context_tokens; }

  Result<std::unique_ptr<Session>> NewSession() override {
    HEARTH_ASSIGN(auto sequence, parts_.NewSequence());
    auto session = std::make_unique<SessionImpl>(parts_, std::move(sequence));
    if (parts_.draft != nullptr) {
      HEARTH_ASSIGN(auto drafter, parts_.draft->NewDrafter());
      session->Speculate(std::move(drafter));
    }
    return std::unique_ptr<Session>(std::move(session));
  }

  Result<std::vector<float>> Logits(std::span<const std::int32_t> tokens,
                                    std::span<const int> steps) override {
    HEARTH_ASSIGN(auto sequence, parts_.NewSequence());
    const auto vocab = static_cast<std::size_t>(parts_.model.config.vocab_size);
    std::vector<float> logits(tokens.size() * vocab);
    std::size_t at = 0;
    std::size_t step_index = 0;
    while (at < tokens.size()) {
      int step = Forward::kStepTokensMax;
      if (!steps.empty()) {
        step = steps[std::min(step_index++, steps.size() - 1)];
      }
      if (step < 1 || step > Forward::kStepTokensMax) {
        return {Code::kInvalidArgument,
                "chunk sizes must be 1 to " +
                    std::to_string(Forward::kStepTokensMax)};
      }
      const std::size_t n =
          std::min(tokens.size() - at, static_cast<std::size_t>(step));
      HEARTH_TRY(parts_.forward->Step({.kv = sequence.get(),
                                       .tokens = tokens.subspan(at, n),
                                       .want = LogitRows::kAll,
                                       .logits = logits.data() + at * vocab}));
      at += n;
    }
    return logits;
  }

  PromptIds PreferStoredIds(std::vector<std::int32_t> ids) override {
    if (parts_.prompt_cache == nullptr) return {std::move(ids), 0};
    return parts_.prompt_cache->PreferStored(parts_.spec, *parts_.tokenizer,
                                             std::move(ids));
  }

  Result<void> DrainSaves(double seconds_max) override {
    if (parts_.prompt_cache == nullptr) return {};
    HEARTH_TRY(parts_.prompt_cache->Drain(seconds_max));
    return parts_.draft == nullptr ? Result<void>()
                                   : parts_.draft->DrainSaves(seconds_max);
  }

 private:
  std::unique_ptr<EngineParts> owned_parts_;
  EngineParts& parts_;
  std::unique_ptr<TextCodec> codec_;
  ModelInfo info_;
};

}  // namespace

EngineParts& PartsOf(Engine& engine) {
  return static_cast<EngineImpl&>(engine).parts();
}

Result<std::unique_ptr<EngineParts>> OpenParts(
    const EngineOptions& options, std::shared_ptr<ThreadPool> pool) {
  HEARTH_TRY(CheckOptions(options));
  auto owned = std::make_unique<EngineParts>();
  EngineParts& parts = *owned;
  parts.options = options;
  parts.ram = std::make_unique<RamBudget>(options.kv_ram_budget_bytes);
  // Neither needs the other, and the first digest, which the cache's opening
  // makes, sets up the library that computes it.
  std::future<Result<std::unique_ptr<PromptCache>>> opening = std::async(
      std::launch::async, [&options] { return PromptCache::Open(options); });
  HEARTH_ASSIGN(parts.model, LoadAny(options.model_path));
  parts.prefetch = std::make_unique<WeightPrefetch>(parts.model);
  RoundRope(options.rope_rounding, parts.model.config.rope);
  HEARTH_ASSIGN(parts.prompt_cache, opening.get());
  HEARTH_ASSIGN(
      parts.tokenizer,
      MakeTokenizerCached(parts.model, parts.prompt_cache == nullptr
                                           ? nullptr
                                           : parts.prompt_cache->side_files()));
  ModelConfig& config = parts.model.config;
  HEARTH_TRY(SetStreaming(options, config));
  parts.spec =
      SpecOf(config, FormatOf(options.kv_keys.value_or(options.kv_storage)),
             FormatOf(options.kv_values.value_or(options.kv_storage)),
             options.block_tokens);
  parts.retention = RetentionOf(config);
  const bool streams = config.stream_window > 0;
  parts.context_tokens = options.context_tokens > 0 ? options.context_tokens
                         : streams                  ? kUnboundedContext
                                                    : config.context_length;
  // No two tokens that meet are further apart than this.
  config.rope.UseForContext(streams ? config.sink_tokens + config.stream_window
                                    : parts.context_tokens);
  RoundRope(options.rope_rounding, config.rope);
  RoundRope(options.rope_rounding, config.local_rope);
  if (config.learned_positions &&
      parts.context_tokens > config.context_length) {
    return {Code::kInvalidArgument,
            "--context " + std::to_string(parts.context_tokens) +
                ": the model has learned positions for " +
                std::to_string(config.context_length) + " tokens only"};
  }
  HEARTH_TRY(CheckConcat(options, parts.spec));
  HEARTH_TRY(CheckPreallocation(parts));
  parts.pool = pool != nullptr
                   ? std::move(pool)
                   : std::make_shared<ThreadPool>(std::max(
                         parts.n_threads(), parts.n_threads_prefill()));
  parts.forward = std::make_unique<Forward>(
      parts.model, MakeCpuOps(parts.model, *parts.pool));
  if (parts.prompt_cache != nullptr) {
    parts.prompt_cache->SetIdentity(IdentityOf(parts));
  }
  return owned;
}

Result<std::unique_ptr<Engine>> Engine::Open(const EngineOptions& options) {
  HEARTH_ASSIGN(std::unique_ptr<EngineParts> parts,
                OpenParts(options, nullptr));
  HEARTH_ASSIGN(parts->draft, OpenDraftSource(*parts));
  return std::unique_ptr<Engine>(
      std::make_unique<EngineImpl>(std::move(parts)));
}

Result<ModelInfo> InspectModel(const std::string& path) {
  HEARTH_ASSIGN(const LoadedModel model, LoadAny(path));
  ModelInfo info = Describe(model);
  // A model whose tokenizer is missing or refused can still be looked at.
  auto tokenizer = MakeTokenizer(model);
  info.tokenizer = tokenizer.ok()
                       ? MakeTextCodec(std::move(*tokenizer))->Describe()
                       : "none: " + tokenizer.error().message;
  return info;
}

Result<std::unique_ptr<TextCodec>> OpenTextCodec(const std::string& path) {
  if (path.ends_with(".json")) {
    HEARTH_ASSIGN(std::shared_ptr<const Tokenizer> tokenizer,
                  MakeTokenizerFromJsonFile(path));
    return MakeTextCodec(std::move(tokenizer));
  }
  HEARTH_ASSIGN(const LoadedModel model, LoadAny(path));
  HEARTH_ASSIGN(std::shared_ptr<const Tokenizer> tokenizer,
                MakeTokenizer(model));
  return MakeTextCodec(std::move(tokenizer));
}

}  // namespace hearth
