/* hearth for C and for languages that call C: the same engine and sessions as
 * hearth/engine.h, in a shared library (libhearth) whose interface stays.
 *
 *   hearth_engine* engine = NULL;
 *   hearth_session* session = NULL;
 *   if (hearth_engine_open(NULL, &engine) != HEARTH_OK ||
 *       hearth_session_new(engine, &session) != HEARTH_OK) {
 *     fprintf(stderr, "%s\n", hearth_last_error());
 *   }
 *
 * Errors   every function that can fail gives a hearth_code; hearth_last_error
 *          is the text of the calling thread's last failure. Nothing throws,
 *          aborts or prints. After a failure "out" values are as before, but
 *          for sizes that a buffer would need.
 * Handles  are names, not addresses: never read through one. A null, freed or
 *          foreign handle is HEARTH_BAD_HANDLE. Each is freed once (NULL:
 * nothing happens), in any order: a session keeps what it needs of its engine.
 * What a call in progress needs stays until it returns. Threads  any number may
 * use an engine or options; a session is used by one at a time, and a second
 * one gets HEARTH_IN_USE (callbacks may use the session that called them). Text
 * UTF-8, and NUL-terminated where no size says otherwise. Reports  are structs
 * whose first member is their size: set struct_size to sizeof before the call,
 * and a newer library fills what you know. Their pointers are the session's,
 * until its next call or its end. Names    of options are those of the members
 * in hearth/options.h. */
#ifndef HEARTH_HEARTH_H_
#define HEARTH_HEARTH_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HEARTH_API __attribute__((visibility("default")))
#else
#define HEARTH_API
#endif

/* Grows by one when something is added; what is there keeps its meaning. */
#define HEARTH_ABI_VERSION 1
/* Of the library that is loaded. */
HEARTH_API int32_t hearth_abi_version(void);
HEARTH_API const char* hearth_version(void); /* "0.1.0" */

typedef int32_t hearth_code;
enum {
  HEARTH_OK = 0,
  HEARTH_INVALID_ARGUMENT = 1, /* the caller asked for what cannot be */
  HEARTH_NOT_FOUND = 2,
  HEARTH_CORRUPT = 3,      /* the bytes are there and are wrong */
  HEARTH_INCOMPATIBLE = 4, /* made by another model or version */
  HEARTH_UNSUPPORTED = 5,  /* well formed, but hearth has no code for it */
  HEARTH_RESOURCE_FULL = 6,
  HEARTH_IO = 7,
  HEARTH_CANCELLED = 8, /* a callback said so */
  HEARTH_BAD_HANDLE = 9,
  HEARTH_BUFFER_TOO_SMALL = 10, /* the size that is needed was given */
  HEARTH_IN_USE = 11,           /* another thread is inside the session */
  HEARTH_INTERNAL = 12
};
/* "corrupt", "not found", ...; "unknown" for another number. */
HEARTH_API const char* hearth_code_name(hearth_code code);
/* One line with cause and remedy; "" when nothing has failed yet. Valid until
 * the thread's next failure. */
HEARTH_API const char* hearth_last_error(void);

typedef struct hearth_engine hearth_engine;
typedef struct hearth_session hearth_session;
typedef struct hearth_engine_options hearth_engine_options;
typedef struct hearth_generate_options hearth_generate_options;

/* --- Engine ----------------------------------------------------------------
 */

HEARTH_API hearth_code
hearth_engine_options_new(hearth_engine_options** options);
/* A member of EngineOptions: "model_path", "context_tokens", "kv_storage"
 * ("fp16"), "prompt_cache_dir", ...; booleans are "true" and "false", sizes are
 * bytes. HEARTH_INVALID_ARGUMENT for an unknown name or a value that does not
 * fit. */
HEARTH_API hearth_code hearth_engine_options_set(hearth_engine_options* options,
                                                 const char* name,
                                                 const char* value);
HEARTH_API hearth_code
hearth_engine_options_free(hearth_engine_options* options);

/* `options` NULL: the small model inside the library. Later changes of the
 * options have no effect. */
HEARTH_API hearth_code hearth_engine_open(const hearth_engine_options* options,
                                          hearth_engine** engine);
HEARTH_API hearth_code hearth_engine_free(hearth_engine* engine);

typedef struct hearth_model_info {
  size_t struct_size;
  int32_t vocab_size;
  int32_t context_tokens; /* of this engine */
  int32_t trained_context_tokens;
  uint64_t n_parameters;
  const char* name; /* these are the engine's, until it is freed */
  const char* architecture;
} hearth_model_info;
HEARTH_API hearth_code hearth_engine_info(hearth_engine* engine,
                                          hearth_model_info* info);

/* Token ids of a text. `special`: not 0: what the model expects around a text
 * (BOS) is added and special tokens in it are read. `n_ids`: how many there
 * are; HEARTH_BUFFER_TOO_SMALL when `capacity` is less (ids may be NULL then).
 */
HEARTH_API hearth_code hearth_engine_encode(hearth_engine* engine,
                                            const char* text, size_t text_bytes,
                                            int32_t special, int32_t* ids,
                                            size_t capacity, size_t* n_ids);
/* The text of ids, with a NUL behind it that `text_bytes` does not count. */
HEARTH_API hearth_code hearth_engine_decode(hearth_engine* engine,
                                            const int32_t* ids, size_t n_ids,
                                            char* text, size_t capacity,
                                            size_t* text_bytes);
/* Waits until the prompt cache has written all it was given; `seconds_max` 0:
 * as long as it takes. */
HEARTH_API hearth_code hearth_engine_drain_saves(hearth_engine* engine,
                                                 double seconds_max);

/* --- Session ---------------------------------------------------------------
 */

HEARTH_API hearth_code hearth_session_new(hearth_engine* engine,
                                          hearth_session** session);
HEARTH_API hearth_code hearth_session_free(hearth_session* session);

/* 0 goes on, anything else stops. */
typedef int32_t (*hearth_on_progress)(int32_t tokens_done, int32_t tokens_total,
                                      void* user);

typedef struct hearth_sync_report {
  size_t struct_size;
  int32_t prompt_tokens;
  int32_t reused_tokens;   /* not computed again */
  const char* reuse_tier;  /* "none", "memory", "disk", "file", "remote" */
  const char* miss_reason; /* why not more; "" when all was reused */
  const char* warnings;    /* one a line */
  double lookup_ms;
  double prefill_ms;
} hearth_sync_report;
/* Makes the session hold exactly these tokens; give the whole prompt each time.
 * `on_progress` and `report` may be NULL. */
HEARTH_API hearth_code hearth_session_sync(hearth_session* session,
                                           const int32_t* ids, size_t n_ids,
                                           hearth_on_progress on_progress,
                                           void* user,
                                           hearth_sync_report* report);

/* Begins with what the engine's model recommends. */
HEARTH_API hearth_code hearth_generate_options_new(
    hearth_engine* engine, hearth_generate_options** options);
/* A member of GenerateOptions or SamplingOptions: "n_tokens_max",
 * "temperature", "repeat_penalty", ... Those that are lists take one more each
 * time: "stop_text", "logit_bias" ("15043=-1.5", "15043=-inf"),
 * "suppressed_id"; "dry_sequence_breaker" (the first one replaces the usual
 * ones, "" leaves none). "json_schema" and "grammar" (GBNF) hold the answer to
 * a form: the schema's or the grammar's text, "" for none. */
HEARTH_API hearth_code hearth_generate_options_set(
    hearth_generate_options* options, const char* name, const char* value);
HEARTH_API hearth_code
hearth_generate_options_free(hearth_generate_options* options);

typedef struct hearth_logprob {
  int32_t id;
  double logprob; /* natural logarithm of the model's probability */
} hearth_logprob;

typedef struct hearth_token {
  size_t struct_size;
  int32_t id;       /* -1: text that was held back, at the end */
  const char* text; /* whole characters; may be "" */
  size_t text_bytes;
  double logprob; /* 0 without the option "logprobs" */
  const hearth_logprob* top;
  size_t n_top;
} hearth_token;
/* For each token; the token is valid during the call. 0 goes on, anything else
 * ends the answer. */
typedef int32_t (*hearth_on_token)(const hearth_token* token, void* user);

typedef int32_t hearth_stop;
enum {
  HEARTH_STOP_LENGTH = 0,
  HEARTH_STOP_END_OF_TEXT = 1, /* end marker, stop text, or form complete */
  HEARTH_STOP_CONTEXT = 2,     /* the context is full */
  HEARTH_STOP_CALLER = 3
};

typedef struct hearth_generate_report {
  size_t struct_size;
  hearth_stop stop;
  int32_t end_id; /* the end marker that was sampled, or -1 */
  const char* text;
  size_t text_bytes;
  const int32_t* ids; /* as they were sampled, without the end marker */
  size_t n_ids;
  const char* stop_text; /* that ended it; "": none did */
  double first_token_ms;
  double decode_ms;
  int32_t decode_steps; /* these three are 0 without a draft */
  int32_t drafted_tokens;
  int32_t accepted_tokens;
} hearth_generate_report;
/* Goes on from what the session holds. `options` NULL: as they are when new;
 * `on_token` and `report` may be NULL. */
HEARTH_API hearth_code hearth_session_generate(
    hearth_session* session, const hearth_generate_options* options,
    hearth_on_token on_token, void* user, hearth_generate_report* report);

/* An independent session with the same tokens. */
HEARTH_API hearth_code hearth_session_fork(hearth_session* session,
                                           hearth_session** fork);
/* Keeps the first `n_tokens`. */
HEARTH_API hearth_code hearth_session_rewind(hearth_session* session,
                                             size_t n_tokens);
/* As hearth_engine_encode gives ids. */
HEARTH_API hearth_code hearth_session_tokens(hearth_session* session,
                                             int32_t* ids, size_t capacity,
                                             size_t* n_ids);
/* Hands what it holds to the prompt cache; returns at once. */
HEARTH_API hearth_code hearth_session_persist(hearth_session* session);

typedef struct hearth_usage {
  size_t struct_size;
  int32_t tokens;
  uint64_t logical_bytes;  /* what attention reads */
  uint64_t physical_bytes; /* what is resident for it, mapped included */
  uint64_t mapped_bytes;   /* of them: shared with the page cache */
  uint64_t shared_bytes;   /* of them: other sessions hold them, too */
} hearth_usage;
HEARTH_API hearth_code hearth_session_usage(hearth_session* session,
                                            hearth_usage* usage);

#ifdef __cplusplus
}
#endif

#endif /* HEARTH_HEARTH_H_ */
