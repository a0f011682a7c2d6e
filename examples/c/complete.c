/* Continues a text with a model: the text is printed as it is sampled, then how
 * the prompt was obtained and what the KV cache takes.
 *
 *   cc -std=c99 complete.c $(pkg-config --cflags --libs hearth) -o complete
 *   ./complete model.gguf "Once upon a time"
 *
 * Without a model the small one inside the library is used. */
#include <hearth/hearth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, hearth_last_error());
  return 1;
}

static int32_t print_token(const hearth_token* token, void* user) {
  (void)user;
  fwrite(token->text, 1, token->text_bytes, stdout);
  fflush(stdout);
  return 0; /* go on */
}

static int complete(hearth_session* session,
                    const hearth_generate_options* options,
                    const int32_t* ids, size_t n_ids) {
  hearth_sync_report found = {0};
  hearth_generate_report answer = {0};
  hearth_usage usage = {0};
  found.struct_size = sizeof found;
  answer.struct_size = sizeof answer;
  usage.struct_size = sizeof usage;
  if (hearth_session_sync(session, ids, n_ids, NULL, NULL, &found)) {
    return failed("sync");
  }
  if (hearth_session_generate(session, options, print_token, NULL, &answer)) {
    return failed("generate");
  }
  if (hearth_session_usage(session, &usage)) return failed("usage");
  printf("\n[%d tokens, %d reused (%s); %d sampled; KV %llu bytes]\n",
         (int)found.prompt_tokens, (int)found.reused_tokens, found.reuse_tier,
         (int)answer.n_ids, (unsigned long long)usage.logical_bytes);
  return 0;
}

/* Ids of `text`, to be freed; NULL after a message. */
static int32_t* encode(hearth_engine* engine, const char* text, size_t* n) {
  int32_t* ids = NULL;
  hearth_code code =
      hearth_engine_encode(engine, text, strlen(text), 1, NULL, 0, n);
  if (code == HEARTH_BUFFER_TOO_SMALL) {
    ids = malloc(*n * sizeof *ids);
    if (ids == NULL) {
      fprintf(stderr, "encode: no memory\n");
      return NULL;
    }
    code = hearth_engine_encode(engine, text, strlen(text), 1, ids, *n, n);
  }
  if (code != HEARTH_OK) {
    failed("encode");
    free(ids);
    return NULL;
  }
  return ids;
}

int main(int argc, char** argv) {
  const char* const model = argc > 1 ? argv[1] : "";
  const char* const prompt = argc > 2 ? argv[2] : "A fox";
  hearth_engine_options* engine_options = NULL;
  hearth_generate_options* options = NULL;
  hearth_engine* engine = NULL;
  hearth_session *session = NULL, *other = NULL;
  int32_t* ids = NULL;
  size_t n_ids = 0;
  int exit_code = 1;

  if (hearth_engine_options_new(&engine_options) ||
      hearth_engine_options_set(engine_options, "model_path", model) ||
      hearth_engine_open(engine_options, &engine)) {
    failed("open");
  } else if (hearth_generate_options_new(engine, &options) ||
             hearth_generate_options_set(options, "n_tokens_max", "24") ||
             hearth_generate_options_set(options, "temperature", "0")) {
    failed("options");
  } else if (hearth_session_new(engine, &session)) {
    failed("session");
  } else if ((ids = encode(engine, prompt, &n_ids)) != NULL) {
    exit_code = complete(session, options, ids, n_ids);
    /* The same again from a fork of the prompt: nothing of it is computed, and
     * the engine's handle is not needed any more. */
    hearth_engine_free(engine);
    engine = NULL;
    if (exit_code == 0) {
      exit_code = hearth_session_rewind(session, n_ids) ||
                          hearth_session_fork(session, &other)
                      ? failed("fork")
                      : complete(other, options, ids, n_ids);
    }
  }
  free(ids);
  hearth_session_free(other);
  hearth_session_free(session);
  hearth_generate_options_free(options);
  hearth_engine_options_free(engine_options);
  hearth_engine_free(engine);
  return exit_code;
}
