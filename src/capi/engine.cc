// Engines of the C interface.
#include <string>

#include "capi/handles.h"
#include "capi/objects.h"
#include "capi/report.h"
#include "hearth/version.h"

namespace hearth::capi {
namespace {

hearth_code Open(const hearth_engine_options* handle, hearth_engine** engine) {
  if (engine == nullptr) {
    return Fail(HEARTH_INVALID_ARGUMENT, "no place for the engine's handle");
  }
  EngineOptions options;
  if (handle != nullptr) {
    const auto given = Handles::All().Find<EngineOptionsObject>(handle);
    if (given == nullptr) return HEARTH_BAD_HANDLE;
    const MutexLock lock(given->mutex);
    options = given->options;
  }
  auto opened = Engine::Open(options);
  if (!opened.ok()) return Fail(opened.error());
  auto object = std::make_shared<EngineObject>();
  object->engine = std::move(*opened);
  *engine = Handles::All().Add(std::move(object));
  return HEARTH_OK;
}

hearth_code Info(hearth_engine* engine, hearth_model_info* info) {
  const auto object = Handles::All().Find<EngineObject>(engine);
  if (object == nullptr) return HEARTH_BAD_HANDLE;
  if (info == nullptr) {
    return Fail(HEARTH_INVALID_ARGUMENT, "the report is NULL");
  }
  if (CheckReport(info) != HEARTH_OK) return HEARTH_INVALID_ARGUMENT;
  const ModelInfo& model = object->engine->info();
  const hearth_model_info values{
      .struct_size = sizeof values,
      .vocab_size = model.vocab_size,
      .context_tokens = object->engine->context_tokens(),
      .trained_context_tokens = model.context_length,
      .n_parameters = model.n_parameters,
      .name = model.name.c_str(),
      .architecture = model.architecture.c_str()};
  return FillReport(values, info);
}

hearth_code Encode(hearth_engine* engine, std::string_view text, bool special,
                   int32_t* ids, size_t capacity, size_t* n_ids) {
  const auto object = Handles::All().Find<EngineObject>(engine);
  if (object == nullptr) return HEARTH_BAD_HANDLE;
  const auto encoded = object->engine->codec().Encode(text, special);
  if (!encoded.ok()) return Fail(encoded.error());
  return CopyOut(encoded->data(), encoded->size(), 0, ids, capacity, n_ids);
}

hearth_code Decode(hearth_engine* engine, const int32_t* ids, size_t n_ids,
                   char* text, size_t capacity, size_t* text_bytes) {
  const auto object = Handles::All().Find<EngineObject>(engine);
  if (object == nullptr) return HEARTH_BAD_HANDLE;
  if (ids == nullptr && n_ids > 0) {
    return Fail(HEARTH_INVALID_ARGUMENT, "the ids are NULL");
  }
  const auto decoded = object->engine->codec().Decode({ids, n_ids});
  if (!decoded.ok()) return Fail(decoded.error());
  return CopyOut(decoded->data(), decoded->size(), 1, text, capacity,
                 text_bytes);
}

}  // namespace
}  // namespace hearth::capi

using hearth::capi::EngineObject;
using hearth::capi::Fail;
using hearth::capi::Guarded;
using hearth::capi::Handles;

extern "C" {

int32_t hearth_abi_version(void) { return HEARTH_ABI_VERSION; }
const char* hearth_version(void) { return hearth::kVersion; }

hearth_code hearth_engine_open(const hearth_engine_options* options,
                               hearth_engine** engine) {
  return Guarded([&] { return hearth::capi::Open(options, engine); });
}

hearth_code hearth_engine_free(hearth_engine* engine) {
  return Guarded([&] { return Handles::All().Remove<EngineObject>(engine); });
}

hearth_code hearth_engine_info(hearth_engine* engine, hearth_model_info* info) {
  return Guarded([&] { return hearth::capi::Info(engine, info); });
}

hearth_code hearth_engine_encode(hearth_engine* engine, const char* text,
                                 size_t text_bytes, int32_t special,
                                 int32_t* ids, size_t capacity, size_t* n_ids) {
  return Guarded([&] {
    if (text == nullptr && text_bytes > 0) {
      return Fail(HEARTH_INVALID_ARGUMENT, "the text is NULL");
    }
    return hearth::capi::Encode(engine, {text, text_bytes}, special != 0, ids,
                                capacity, n_ids);
  });
}

hearth_code hearth_engine_decode(hearth_engine* engine, const int32_t* ids,
                                 size_t n_ids, char* text, size_t capacity,
                                 size_t* text_bytes) {
  return Guarded([&] {
    return hearth::capi::Decode(engine, ids, n_ids, text, capacity, text_bytes);
  });
}

hearth_code hearth_engine_drain_saves(hearth_engine* engine,
                                      double seconds_max) {
  return Guarded([&]() -> hearth_code {
    const auto object = Handles::All().Find<EngineObject>(engine);
    if (object == nullptr) return HEARTH_BAD_HANDLE;
    if (!(seconds_max >= 0)) {
      return Fail(HEARTH_INVALID_ARGUMENT, "the seconds must be 0 or more");
    }
    const auto drained = object->engine->DrainSaves(seconds_max);
    return drained.ok() ? HEARTH_OK : Fail(drained.error());
  });
}

}  // extern "C"
