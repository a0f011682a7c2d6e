#include "capi/engine_options.h"

#include <array>

#include "capi/handles.h"
#include "capi/objects.h"
#include "capi/option_values.h"

namespace hearth::capi {
namespace {

using O = EngineOptions;

Result<KvStorage> StorageOf(std::string_view text) {
  if (const auto known = KvStorageNamed(text)) return *known;
  return {Code::kInvalidArgument, "wants fp32, fp16, bf16, int8 or int4"};
}

Result<void> SetStorage(std::string_view text, O& options) {
  HEARTH_ASSIGN(options.kv_storage, StorageOf(text));
  return {};
}

template <std::optional<KvStorage> O::*Member>
Result<void> SetOneStorage(std::string_view text, O& options) {
  HEARTH_ASSIGN(options.*Member, StorageOf(text));
  return {};
}

Result<void> SetGrowth(std::string_view text, O& options) {
  if (text != "in-place" && text != "concat") {
    return {Code::kInvalidArgument, "wants in-place or concat"};
  }
  options.kv_growth = text == "concat" ? KvGrowth::kConcat : KvGrowth::kInPlace;
  return {};
}

Result<void> SetRounding(std::string_view text, O& options) {
  const auto known = RopeRoundingNamed(text);
  if (!known.has_value()) {
    return {Code::kInvalidArgument, "wants exact, bf16 or fp16"};
  }
  options.rope_rounding = *known;
  return {};
}

// Each time one more.
Result<void> AddAdapter(std::string_view text, O& options) {
  if (text.empty()) return {Code::kInvalidArgument, "wants FILE or FILE=scale"};
  options.adapters.push_back(AdapterChoiceOf(text));
  return {};
}

constexpr std::array<OptionSetter<O>, 33> kSetters = {{
    {"model_path", SetText<O, &O::model_path>},
    {"n_threads", SetInt<O, &O::n_threads>},
    {"n_threads_prefill", SetInt<O, &O::n_threads_prefill>},
    {"prefill_step_tokens", SetInt<O, &O::prefill_step_tokens>},
    {"adapters", AddAdapter},
    {"kv_storage", SetStorage},
    {"kv_keys", SetOneStorage<&O::kv_keys>},
    {"kv_values", SetOneStorage<&O::kv_values>},
    {"kv_growth", SetGrowth},
    {"kv_preallocate", SetBool<O, &O::kv_preallocate>},
    {"context_tokens", SetInt<O, &O::context_tokens>},
    {"kv_ram_budget_bytes", SetUnsigned<O, &O::kv_ram_budget_bytes>},
    {"block_tokens", SetInt<O, &O::block_tokens>},
    {"streaming_sink", SetInt<O, &O::streaming_sink>},
    {"streaming_window", SetInt<O, &O::streaming_window>},
    {"rope_rounding", SetRounding},
    {"draft", SetText<O, &O::draft>},
    {"draft_tokens", SetInt<O, &O::draft_tokens>},
    {"verify_model", SetBool<O, &O::verify_model>},
    {"prompt_cache_dir", SetText<O, &O::prompt_cache_dir>},
    {"prompt_cache_file", SetText<O, &O::prompt_cache_file>},
    {"cache_namespace", SetText<O, &O::cache_namespace>},
    {"cache_disk_budget_bytes", SetUnsigned<O, &O::cache_disk_budget_bytes>},
    {"cache_free_reserve_bytes", SetUnsigned<O, &O::cache_free_reserve_bytes>},
    {"cache_remote", SetText<O, &O::cache_remote>},
    {"cache_remote_deadline_ms", SetInt<O, &O::cache_remote_deadline_ms>},
    {"cache_remote_key_file", SetText<O, &O::cache_remote_key_file>},
    {"cache_remote_trusted", SetBool<O, &O::cache_remote_trusted>},
    {"cache_key_file", SetText<O, &O::cache_key_file>},
    {"cache_verify", SetBool<O, &O::cache_verify>},
    {"cache_previews", SetBool<O, &O::cache_previews>},
    {"cache_always", SetBool<O, &O::cache_always>},
    {"cache_by_text", SetBool<O, &O::cache_by_text>},
}};

}  // namespace

Result<void> SetEngineOption(std::string_view name, std::string_view value,
                             EngineOptions& options) {
  return SetOption<O>(kSetters, name, value, options);
}

}  // namespace hearth::capi

using hearth::capi::EngineOptionsObject;
using hearth::capi::Fail;
using hearth::capi::Guarded;
using hearth::capi::Handles;

extern "C" {

hearth_code hearth_engine_options_new(hearth_engine_options** options) {
  return Guarded([&]() -> hearth_code {
    if (options == nullptr) {
      return Fail(HEARTH_INVALID_ARGUMENT, "no place for the options' handle");
    }
    *options = Handles::All().Add(std::make_shared<EngineOptionsObject>());
    return HEARTH_OK;
  });
}

hearth_code hearth_engine_options_set(hearth_engine_options* options,
                                      const char* name, const char* value) {
  return Guarded([&]() -> hearth_code {
    const auto object = Handles::All().Find<EngineOptionsObject>(options);
    if (object == nullptr) return HEARTH_BAD_HANDLE;
    if (name == nullptr || value == nullptr) {
      return Fail(HEARTH_INVALID_ARGUMENT, "an option's name or value is NULL");
    }
    const hearth::MutexLock lock(object->mutex);
    const auto set =
        hearth::capi::SetEngineOption(name, value, object->options);
    return set.ok() ? HEARTH_OK : Fail(set.error());
  });
}

hearth_code hearth_engine_options_free(hearth_engine_options* options) {
  return Guarded(
      [&] { return Handles::All().Remove<EngineOptionsObject>(options); });
}

}  // extern "C"
