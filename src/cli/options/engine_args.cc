#include "cli/options/engine_args.h"

#include <filesystem>
#include <optional>

#include "base/stopwatch.h"
#include "cli/options/cache_location.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"

namespace hearth::cli {
namespace {

constexpr int kMany = std::numeric_limits<int>::max();

Result<KvStorage> StorageOf(const std::string& option,
                            const std::string& name) {
  const auto known = KvStorageNamed(name);
  if (known.has_value()) return *known;
  return Error{
      Code::kInvalidArgument,
      option + " " + name + ": not known; use fp32, fp16, bf16, int8 or int4"};
}

}  // namespace

void AddAdapterOption(Command& command, EngineOptions& engine) {
  command.TakeEach(
      "--lora", /*repeats=*/true,
      [&engine](std::span<const std::string> texts) -> Result<void> {
        engine.adapters.clear();
        for (const std::string& text : texts) {
          if (text.empty()) {
            return {Code::kInvalidArgument, "wants FILE or FILE=scale"};
          }
          engine.adapters.push_back(AdapterChoiceOf(text));
        }
        return {};
      },
      "FILE or FILE=scale: a LoRA adapter beside the model, a GGUF file or a "
      "PEFT directory; may be given several times");
}

void AddModelOptions(Command& command, EngineOptions& engine) {
  // A library's engine runs where its host says; the program's where it is
  // fastest.
  engine.device = DeviceChoice::kAuto;
  const Option model =
      command.Name("MODEL", engine.model_path,
                   "GGUF file, .tinygpt file or Hugging Face directory; "
                   "default: the small model inside the program");
  command.Name("--model,-m", engine.model_path, "the same").Excludes(model);
  AddAdapterOption(command, engine);
  command.Integer("--threads,-t", engine.n_threads, 1, 1024,
                  "default: the processors this process may use");
  command.Integer("--threads-prefill", engine.n_threads_prefill, 1, 1024,
                  "for computing prompts; default: as many as --threads");
  command
      .Take(
          "--device",
          [&engine](const std::string& name) -> Result<void> {
            const auto known = DeviceChoiceNamed(name);
            if (!known.has_value()) {
              return {Code::kInvalidArgument,
                      name + ": not known; use auto, cpu or cuda"};
            }
            engine.device = *known;
            return {};
          },
          "auto: an NVIDIA card where there is one that can, else the CPU, as "
          "for small models; cpu; cuda: a card, or nothing")
      .Default("auto");
  command.Size("--gpu-memory", engine.gpu_memory_bytes,
               "bytes of the card for weights, keys and values (8G); default: "
               "what is free");
}

namespace {

std::string AdapterNote(const AdapterInfo& adapter) {
  std::string note =
      adapter.path + " changes " + std::to_string(adapter.n_layers) + " layers";
  if (adapter.scale != 1) note += ", times " + Fixed(adapter.scale, 3);
  return note;
}

}  // namespace

void EngineArgs::AddModel(Command& command) {
  AddModelOptions(command, engine);
}

void EngineArgs::AddKvFormat(Command& command) {
  command.Group("KV cache");
  command
      .Name("--kv-quantize", kv_quantize,
            "storage of keys and values: fp32, fp16, bf16, int8, int4")
      .Default(kv_quantize);
  command.Name("--kv-quantize-keys", kv_keys_, "of the keys alone");
  command.Name("--kv-quantize-values", kv_values_, "of the values alone");
  command.Integer("--streaming-llm-sink", engine.streaming_sink, 0, kMany,
                  "first tokens that stay in sight (with "
                  "--streaming-llm-window)");
  command.Integer("--streaming-llm-window", engine.streaming_window, 1, kMany,
                  "newest tokens in sight; older ones are let go of and "
                  "the text may grow beyond the trained context");
}

void EngineArgs::AddKv(Command& command) {
  AddKvFormat(command);
  command.Flag("--kv-preallocate", engine.kv_preallocate,
               "fault the KV memory of the whole context in at the start");
  command.FlagOff("--no-kv-preallocate", engine.kv_preallocate,
                  "the default: memory comes as it is needed");
  command
      .Name("--kv-growth", kv_growth_,
            "in-place, or concat (reference: copies at every step)")
      .Default(kv_growth_);
  command.Integer("--context,--ctx-size,-c", engine.context_tokens, 1, 1 << 24,
                  "tokens of context; default: what the model was trained on");
  ram_budget_ = command.Size(
      "--kv-ram-budget", engine.kv_ram_budget_bytes,
      "bytes of memory that KV may take, mapped blocks not counted "
      "(500M, 2G); 0: no limit");
  AddPromptCache(command);
}

void EngineArgs::AddPromptCache(Command& command) {
  command.Group("Prompt cache");
  const Option off = command.Flag("--no-prompt-cache", no_prompt_cache_,
                                  "keep nothing and look nothing up");
  cache_dir_ = command.Name(
      "--prompt-cache-dir", engine.prompt_cache_dir,
      "keep and reuse prompts' KV in this directory; default: "
      "$HEARTH_CACHE_DIR, or hearth in $XDG_CACHE_HOME or ~/.cache");
  cache_file_ = command.Name("--cache-prompt", engine.prompt_cache_file,
                             "keep the prompt's KV in this one file instead");
  cache_dir_.Excludes(cache_file_).Excludes(off);
  cache_file_.Excludes(off);
  const Option space =
      command.Name("--cache-namespace", engine.cache_namespace,
                   "entries of one name space are invisible to others");
  cache_budget_ = command.Size(
      "--cache-disk-budget", engine.cache_disk_budget_bytes,
      "bytes the directory may take (500M, 20G), 0: no limit; default: none "
      "where --prompt-cache-dir is given, else 20G or a tenth of the free "
      "disk");
  remote_ = command.Name("--cache-remote", engine.cache_remote,
                         "also share blocks through a Redis server: "
                         "redis://[:password@]host:port/db, rediss:// for TLS");
  remote_deadline_ = command.Integer(
      "--cache-remote-deadline", engine.cache_remote_deadline_ms, 1, 600'000,
      "milliseconds that a lookup waits for it");
  remote_deadline_.Default(std::to_string(engine.cache_remote_deadline_ms));
  const Option remote_key = command.Name(
      "--cache-remote-key-file", engine.cache_remote_key_file,
      "the key, which its machines share, that blocks there must be signed "
      "with: 32 bytes, or 64 hex digits");
  const Option remote_trusted = command.Flag(
      "--cache-remote-trusted", engine.cache_remote_trusted,
      "use a shared cache without a key: whoever can write to it can change "
      "answers");
  const Option key = command.Name("--cache-key-file", engine.cache_key_file,
                                  "encrypt what is stored with the key in this "
                                  "file: 32 bytes, or 64 hex digits");
  const Option model = command.Flag(
      "--verify-model", engine.verify_model,
      "read all weights to know whose KV is stored, instead of trusting the "
      "files' size and times");
  const Option always =
      command.Flag("--cache-always", engine.cache_always,
                   "load stored KV even where computing it would be faster");
  const Option text = command.Flag(
      "--cache-by-text", engine.cache_by_text,
      "also find stored prompts whose text is the same and whose token ids are "
      "not; goes on from their ids");
  const Option verify =
      command.FlagOff("--no-verify", engine.cache_verify,
                      "use stored KV without checking its checksums");
  const Option previews =
      command.Flag("--cache-previews", engine.cache_previews,
                   "keep the beginning of each prompt readable beside it");
  of_cache_ = {space, key, model};
  of_directory_ = {cache_budget_, remote_,        remote_deadline_,
                   remote_key,    remote_trusted, always,
                   text,          verify,         previews};
}

void EngineArgs::AddDraft(Command& command) {
  command.Group("Guessing ahead");
  draft_ = command.Name("--draft", engine.draft,
                        "prompt-lookup, mtp (the model's own block for it), a "
                        "smaller model of the same vocabulary, or a .heads "
                        "file");
  draft_tokens_ = command.Integer("--draft-tokens", engine.draft_tokens, 1, 64,
                                  "guesses in one step at most");
  draft_tokens_.Default(std::to_string(engine.draft_tokens));
}

Result<void> EngineArgs::CheckEffects(const std::string& why_no_cache) const {
  const auto no_effect = [](const Option& option,
                            const std::string& why) -> Error {
    return {Code::kInvalidArgument,
            option.name() + " would do nothing: " + why + "; leave one out"};
  };
  if (draft_tokens_.given() && !draft_.given()) {
    return {Code::kInvalidArgument,
            draft_tokens_.name() + " would do nothing without --draft"};
  }
  if (!why_no_cache.empty()) {
    if (cache_dir_.given()) return no_effect(cache_dir_, why_no_cache);
    if (cache_file_.given()) return no_effect(cache_file_, why_no_cache);
    if (draft_.given()) return no_effect(draft_, why_no_cache);
  }
  const std::string off = no_prompt_cache_
                              ? "--no-prompt-cache turns the prompt cache off"
                              : why_no_cache;
  for (const auto* options : {&of_cache_, &of_directory_}) {
    for (const Option& option : *options) {
      if (option.given() && !off.empty()) return no_effect(option, off);
    }
  }
  for (const Option& option : of_directory_) {
    if (option.given() && cache_file_.given()) {
      return no_effect(option, "--cache-prompt keeps one file");
    }
  }
  if (remote_deadline_.given() && !remote_.given()) {
    return {Code::kInvalidArgument, remote_deadline_.name() +
                                        " would do nothing without " +
                                        remote_.name()};
  }
  return {};
}

Result<void> EngineArgs::FindPromptCache(const std::string& why_no_cache) {
  const bool named = cache_dir_.given() || cache_file_.given();
  const bool has_options = !of_cache_.empty();  // AddKv was called
  if (named || no_prompt_cache_ || !has_options || !why_no_cache.empty()) {
    return {};
  }
  engine.prompt_cache_dir = DefaultCacheDirectory();
  if (engine.prompt_cache_dir.empty()) {
    for (const auto* options : {&of_cache_, &of_directory_}) {
      for (const Option& option : *options) {
        if (!option.given()) continue;
        return {Code::kInvalidArgument,
                option.name() +
                    " needs a prompt cache, and neither HEARTH_CACHE_DIR, "
                    "XDG_CACHE_HOME nor HOME says where it is; give "
                    "--prompt-cache-dir"};
      }
    }
    Note(
        "no prompt cache: neither HEARTH_CACHE_DIR, XDG_CACHE_HOME nor HOME "
        "says where; --no-prompt-cache leaves this line out");
    return {};
  }
  if (!cache_budget_.given()) {
    engine.cache_disk_budget_bytes =
        DefaultCacheBudget(engine.prompt_cache_dir);
  }
  std::error_code error;
  if (!std::filesystem::exists(engine.prompt_cache_dir, error)) {
    const std::uint64_t budget = engine.cache_disk_budget_bytes;
    Note("prompts' KV is kept in " + engine.prompt_cache_dir +
         (budget > 0 ? ", up to " + HumanBytes(budget) : "") +
         ", so that the next run need not compute it again; "
         "--no-prompt-cache turns that off (said once)");
  }
  return {};
}

Result<void> EngineArgs::Finalize(const std::string& why_no_cache) {
  HEARTH_TRY(CheckEffects(why_no_cache));
  HEARTH_ASSIGN(engine.kv_storage, StorageOf("--kv-quantize", kv_quantize));
  if (!kv_keys_.empty()) {
    HEARTH_ASSIGN(engine.kv_keys, StorageOf("--kv-quantize-keys", kv_keys_));
  }
  if (!kv_values_.empty()) {
    HEARTH_ASSIGN(engine.kv_values,
                  StorageOf("--kv-quantize-values", kv_values_));
  }
  if (kv_growth_ == "concat") {
    engine.kv_growth = KvGrowth::kConcat;
  } else if (kv_growth_ != "in-place") {
    return {Code::kInvalidArgument,
            "--kv-growth " + kv_growth_ + ": use in-place or concat"};
  }
  return FindPromptCache(why_no_cache);
}

Result<std::unique_ptr<Engine>> EngineArgs::Open(bool quiet) {
  const bool caches =
      !engine.prompt_cache_dir.empty() || !engine.prompt_cache_file.empty();
  // Reading a model of many gigabytes takes as long as the disk takes.
  std::optional<SlowNote> note;
  if (!caches) note.emplace("opening the model", quiet);
  Progress progress("reading", Unit::kBytes, quiet);
  const Stopwatch watch;
  bool told = quiet;
  HEARTH_ASSIGN(
      std::unique_ptr<Engine> opened,
      Engine::Open(engine, [&](std::uint64_t done, std::uint64_t total) {
        if (!told && watch.ms() > 1000) {
          told = true;
          Note(
              "reading the whole model once, to know whose KV it is; the next "
              "run of this file need not");
        }
        progress.Update(done, total);
      }));
  UseModel(*opened);
  return opened;
}

void EngineArgs::UseModel(const Engine& opened) {
  sampling = sampling_.Over(opened.info().sampling);
  for (const std::string& warning : opened.info().warnings) Note(warning);
  for (const AdapterInfo& adapter : opened.info().adapters) {
    Note(AdapterNote(adapter));
  }
  if (!opened.device().why.empty()) {
    Note("the CPU computes: " + opened.device().why);
  }
  const int trained = opened.info().context_length;
  if (engine.context_tokens > trained && engine.streaming_window == 0) {
    Note("the context of " + std::to_string(engine.context_tokens) +
         " tokens is longer than the " + std::to_string(trained) +
         " that the model was trained on; beyond them its answers get worse");
  }
}

}  // namespace hearth::cli
