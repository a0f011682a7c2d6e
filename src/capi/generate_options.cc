#include "capi/generate_options.h"

#include <array>
#include <utility>

#include "capi/handles.h"
#include "capi/option_values.h"
#include "hearth/grammar.h"

namespace hearth::capi {
namespace {

using G = GenerateOptions;
using S = SamplingOptions;

Result<void> AddStop(std::string_view text, G& options) {
  if (text.empty()) return {Code::kInvalidArgument, "is empty"};
  options.stop_texts.emplace_back(text);
  return {};
}

Result<std::int32_t> IdOf(std::string_view text) {
  HEARTH_ASSIGN(const std::int64_t id, IntOf(text, 0, INT32_MAX));
  return static_cast<std::int32_t>(id);
}

Result<void> AddBias(std::string_view text, S& options) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) {
    return {Code::kInvalidArgument, "wants an id and its bias: 15043=-1.5"};
  }
  HEARTH_ASSIGN(const std::int32_t id, IdOf(text.substr(0, equals)));
  HEARTH_ASSIGN(options.logit_bias[id], RealOf(text.substr(equals + 1)));
  return {};
}

Result<void> AddSuppressed(std::string_view text, S& options) {
  HEARTH_ASSIGN(const std::int32_t id, IdOf(text));
  options.suppressed_ids.push_back(id);
  return {};
}

constexpr std::array<OptionSetter<G>, 6> kGenerate = {{
    {"n_tokens_max", SetInt<G, &G::n_tokens_max>},
    {"ignore_eos", SetBool<G, &G::ignore_eos>},
    {"speculate", SetBool<G, &G::speculate>},
    {"stop_text", AddStop},
    {"logprobs", SetBool<G, &G::logprobs>},
    {"top_logprobs", SetInt<G, &G::top_logprobs>},
}};

constexpr std::array<OptionSetter<S>, 17> kSampling = {{
    {"temperature", SetReal<S, &S::temperature>},
    {"top_k", SetInt<S, &S::top_k>},
    {"top_p", SetReal<S, &S::top_p>},
    {"min_p", SetReal<S, &S::min_p>},
    {"seed", SetUnsigned<S, &S::seed>},
    {"logit_bias", AddBias},
    {"suppressed_id", AddSuppressed},
    {"repeat_penalty", SetReal<S, &S::repeat_penalty>},
    {"repeat_last_n", SetInt<S, &S::repeat_last_n>},
    {"presence_penalty", SetReal<S, &S::presence_penalty>},
    {"frequency_penalty", SetReal<S, &S::frequency_penalty>},
    {"dry_multiplier", SetReal<S, &S::dry_multiplier>},
    {"dry_base", SetReal<S, &S::dry_base>},
    {"dry_allowed_length", SetInt<S, &S::dry_allowed_length>},
    {"dry_penalty_last_n", SetInt<S, &S::dry_penalty_last_n>},
    {"xtc_probability", SetReal<S, &S::xtc_probability>},
    {"xtc_threshold", SetReal<S, &S::xtc_threshold>},
}};

Result<void> SetForm(bool is_schema, std::string_view text,
                     GenerateOptionsObject& object)
    HEARTH_REQUIRES(object.mutex) {
  if (text.empty()) {
    object.options.constraint = {};
    return {};
  }
  Engine& engine = *object.engine->engine;
  HEARTH_ASSIGN(auto form, is_schema ? ConstraintFromJsonSchema(engine, text)
                                     : ConstraintFromGbnf(engine, text));
  object.options.constraint = std::move(form.make);
  return {};
}

}  // namespace

Result<void> SetGenerateOption(std::string_view name, std::string_view value,
                               GenerateOptionsObject& object) {
  G& options = object.options;
  if (name == "json_schema" || name == "grammar") {
    return SetForm(name == "json_schema", value, object);
  }
  if (name == "dry_sequence_breaker") {
    auto& breakers = options.sampling.dry_sequence_breakers;
    if (!std::exchange(object.own_breakers, true) || value.empty()) {
      breakers.clear();
    }
    if (!value.empty()) breakers.emplace_back(value);
    return {};
  }
  for (const auto& setter : kGenerate) {
    if (setter.name == name) {
      return SetOption<G>(kGenerate, name, value, options);
    }
  }
  return SetOption<S>(kSampling, name, value, options.sampling);
}

}  // namespace hearth::capi

using hearth::capi::EngineObject;
using hearth::capi::Fail;
using hearth::capi::GenerateOptionsObject;
using hearth::capi::Guarded;
using hearth::capi::Handles;

extern "C" {

hearth_code hearth_generate_options_new(hearth_engine* engine,
                                        hearth_generate_options** options) {
  return Guarded([&]() -> hearth_code {
    const auto of = Handles::All().Find<EngineObject>(engine);
    if (of == nullptr) return HEARTH_BAD_HANDLE;
    if (options == nullptr) {
      return Fail(HEARTH_INVALID_ARGUMENT, "no place for the options' handle");
    }
    auto object = std::make_shared<GenerateOptionsObject>();
    object->engine = of;
    {
      const hearth::MutexLock lock(object->mutex);
      object->options.sampling =
          hearth::DefaultSampling(of->engine->info().sampling);
    }
    *options = Handles::All().Add(std::move(object));
    return HEARTH_OK;
  });
}

hearth_code hearth_generate_options_set(hearth_generate_options* options,
                                        const char* name, const char* value) {
  return Guarded([&]() -> hearth_code {
    const auto object = Handles::All().Find<GenerateOptionsObject>(options);
    if (object == nullptr) return HEARTH_BAD_HANDLE;
    if (name == nullptr || value == nullptr) {
      return Fail(HEARTH_INVALID_ARGUMENT, "an option's name or value is NULL");
    }
    const hearth::MutexLock lock(object->mutex);
    const auto set = hearth::capi::SetGenerateOption(name, value, *object);
    return set.ok() ? HEARTH_OK : Fail(set.error());
  });
}

hearth_code hearth_generate_options_free(hearth_generate_options* options) {
  return Guarded(
      [&] { return Handles::All().Remove<GenerateOptionsObject>(options); });
}

}  // extern "C"
