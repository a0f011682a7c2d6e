// Sessions of the C interface.
#include <utility>

#include "capi/handles.h"
#include "capi/inside.h"
#include "capi/report.h"

namespace hearth::capi {
namespace {

hearth_code Add(std::shared_ptr<EngineObject> engine,
                Result<std::unique_ptr<Session>> made, hearth_session** out) {
  if (!made.ok()) return Fail(made.error());
  auto object = std::make_shared<SessionObject>();
  object->engine = std::move(engine);
  object->session = std::move(*made);
  *out = Handles::All().Add(std::move(object));
  return HEARTH_OK;
}

hearth_code New(hearth_engine* engine, hearth_session** session) {
  auto of = Handles::All().Find<EngineObject>(engine);
  if (of == nullptr) return HEARTH_BAD_HANDLE;
  if (session == nullptr) {
    return Fail(HEARTH_INVALID_ARGUMENT, "no place for the session's handle");
  }
  auto made = of->engine->NewSession();
  return Add(std::move(of), std::move(made), session);
}

hearth_code Fork(SessionObject& object, hearth_session** fork) {
  if (fork == nullptr) {
    return Fail(HEARTH_INVALID_ARGUMENT, "no place for the fork's handle");
  }
  return Add(object.engine, object.session->Fork(), fork);
}

hearth_code Sync(SessionObject& object, const int32_t* ids, size_t n_ids,
                 hearth_on_progress on_progress, void* user,
                 hearth_sync_report* report) {
  if (ids == nullptr && n_ids > 0) {
    return Fail(HEARTH_INVALID_ARGUMENT, "the ids are NULL");
  }
  if (CheckReport(report) != HEARTH_OK) return HEARTH_INVALID_ARGUMENT;
  Session::Progress progress;
  if (on_progress != nullptr) {
    progress = [&](int done, int total) {
      return on_progress(done, total, user) == 0;
    };
  }
  auto synced = object.session->Sync({ids, n_ids}, progress);
  if (!synced.ok()) return Fail(synced.error());
  object.sync = std::move(*synced);
  object.warnings.clear();
  for (const std::string& warning : object.sync.warnings) {
    object.warnings += (object.warnings.empty() ? "" : "\n") + warning;
  }
  const hearth_sync_report values{
      .struct_size = sizeof values,
      .prompt_tokens = object.sync.prompt_tokens,
      .reused_tokens = object.sync.reused_tokens,
      .reuse_tier = object.sync.reuse_tier.c_str(),
      .miss_reason = object.sync.miss_reason.c_str(),
      .warnings = object.warnings.c_str(),
      .lookup_ms = object.sync.lookup_ms,
      .prefill_ms = object.sync.prefill_ms};
  return FillReport(values, report);
}

hearth_code Usage(SessionObject& object, hearth_usage* usage) {
  if (usage == nullptr) {
    return Fail(HEARTH_INVALID_ARGUMENT, "the report is NULL");
  }
  if (CheckReport(usage) != HEARTH_OK) return HEARTH_INVALID_ARGUMENT;
  const KvReport kv = object.session->Usage();
  const hearth_usage values{.struct_size = sizeof values,
                            .tokens = kv.tokens,
                            .logical_bytes = kv.logical_bytes,
                            .physical_bytes = kv.physical_bytes,
                            .mapped_bytes = kv.mapped_bytes,
                            .shared_bytes = kv.shared_bytes};
  return FillReport(values, usage);
}

hearth_code Rewind(SessionObject& object, size_t n_tokens) {
  if (n_tokens > INT32_MAX) {
    return Fail(HEARTH_INVALID_ARGUMENT, "the session has fewer tokens");
  }
  const auto done = object.session->Rewind(static_cast<int>(n_tokens));
  return done.ok() ? HEARTH_OK : Fail(done.error());
}

}  // namespace
}  // namespace hearth::capi

using hearth::capi::Guarded;
using hearth::capi::Handles;
using hearth::capi::Inside;
using hearth::capi::SessionObject;

extern "C" {

hearth_code hearth_session_new(hearth_engine* engine,
                               hearth_session** session) {
  return Guarded([&] { return hearth::capi::New(engine, session); });
}

hearth_code hearth_session_free(hearth_session* session) {
  return Guarded([&] { return Handles::All().Remove<SessionObject>(session); });
}

hearth_code hearth_session_sync(hearth_session* session, const int32_t* ids,
                                size_t n_ids, hearth_on_progress on_progress,
                                void* user, hearth_sync_report* report) {
  return Inside(session, [&](SessionObject& object) {
    return hearth::capi::Sync(object, ids, n_ids, on_progress, user, report);
  });
}

hearth_code hearth_session_fork(hearth_session* session,
                                hearth_session** fork) {
  return Inside(session, [&](SessionObject& object) {
    return hearth::capi::Fork(object, fork);
  });
}

hearth_code hearth_session_rewind(hearth_session* session, size_t n_tokens) {
  return Inside(session, [&](SessionObject& object) {
    return hearth::capi::Rewind(object, n_tokens);
  });
}

hearth_code hearth_session_tokens(hearth_session* session, int32_t* ids,
                                  size_t capacity, size_t* n_ids) {
  return Inside(session, [&](SessionObject& object) {
    const auto tokens = object.session->tokens();
    return hearth::capi::CopyOut(tokens.data(), tokens.size(), 0, ids, capacity,
                                 n_ids);
  });
}

hearth_code hearth_session_persist(hearth_session* session) {
  return Inside(session, [&](SessionObject& object) -> hearth_code {
    object.session->Persist();
    return HEARTH_OK;
  });
}

hearth_code hearth_session_usage(hearth_session* session, hearth_usage* usage) {
  return Inside(session, [&](SessionObject& object) {
    return hearth::capi::Usage(object, usage);
  });
}

}  // extern "C"
