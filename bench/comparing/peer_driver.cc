// Times a prebuilt libllama: prompt processing, also at a depth, generation at
// a depth (no sampling), and a start to the first token, cold or from a saved
// state. It opens the library at run time, so it needs no header. Fits libllama
// 0.5.0 (npm) and 0.7.0 (Debian): the fields set below lie at the same offsets
// in both, and it refuses a library where one of them does not.
//
//   peer_driver LIBDIR MODEL [-p N] [-n N] [-d N] [-pd N] [-r N] [-t N]
//               [-fa 0|1] [-ctk f16|q8_0|q4_0] [-ub N] [-save FILE] [-load
//               FILE]
//   peer_driver LIBDIR MODEL -start -d N [-load FILE] ...
//
// LIBDIR holds libllama*.so and libggml*.so; PEER_BACKENDS names the folder of
// the libggml-cpu-*.so backends when it is another. -pd: tokens of a further
// prompt behind the first N. -start: print "first token" when it is known.
// -load: those N tokens come from a file that -save wrote.
// One JSON line: medians in tokens/s, every repetition, peak RSS.
#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

struct Blob {
  unsigned char b[1024];
};  // larger than the real structs; passed by value on the stack
struct Batch {
  int32_t n;
  int32_t* tok;
  float* embd;
  int32_t* pos;
  int32_t* nseq;
  int32_t** seq;
  int8_t* out;
};

static std::vector<void*> libs;
template <class F>
static F* sym(const char* n) {
  for (void* h : libs)
    if (void* p = dlsym(h, n)) return reinterpret_cast<F*>(p);
  fprintf(stderr, "no symbol %s\n", n);
  exit(1);
}
static void open_like(const std::string& dir, const std::string& prefix) {
  DIR* d = opendir(dir.c_str());
  if (!d) {
    perror(dir.c_str());
    exit(1);
  }
  std::string best;
  while (dirent* e = readdir(d)) {
    std::string n = e->d_name;
    if (n.rfind(prefix, 0) == 0 && n.find(".so") != std::string::npos &&
        (best.empty() || n.size() < best.size()))
      best = n;
  }
  closedir(d);
  if (best.empty()) {
    fprintf(stderr, "no %s* in %s\n", prefix.c_str(), dir.c_str());
    exit(1);
  }
  void* h = dlopen((dir + "/" + best).c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!h) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  libs.push_back(h);
}
static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
static double med(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
static void put(Blob& p, int off, int32_t v) { memcpy(p.b + off, &v, 4); }
static long status_mb(const char* key) {
  std::ifstream f("/proc/self/status");
  std::string l;
  while (std::getline(f, l))
    if (l.rfind(key, 0) == 0) return atol(l.c_str() + strlen(key)) / 1024;
  return -1;
}
static void quiet(int level, const char* text, void*) {
  if (level >= 4 && level != 5) fputs(text, stderr);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "see the top of peer_driver.cpp\n");
    return 2;
  }
  std::string dir = argv[1], model = argv[2], ctk = "f16", state;
  int p = 0, n = 0, d = 0, pd = 0, r = 1, t = 2, fa = 1, ub = 512;
  bool start = false;
  std::string from;
  for (int i = 3; i < argc; i += 2) {
    std::string k = argv[i];
    if (k == "-start") {
      start = true;
      --i;
      continue;
    }
    if (i + 1 >= argc) {
      fprintf(stderr, "%s wants a value\n", k.c_str());
      return 2;
    }
    const char* v = argv[i + 1];
    if (k == "-p")
      p = atoi(v);
    else if (k == "-n")
      n = atoi(v);
    else if (k == "-d")
      d = atoi(v);
    else if (k == "-r")
      r = atoi(v);
    else if (k == "-t")
      t = atoi(v);
    else if (k == "-fa")
      fa = atoi(v);
    else if (k == "-ctk")
      ctk = v;
    else if (k == "-ub")
      ub = atoi(v);
    else if (k == "-save")
      state = v;
    else if (k == "-load")
      from = v;
    else if (k == "-pd")
      pd = atoi(v);
    else {
      fprintf(stderr, "unknown option %s\n", k.c_str());
      return 2;
    }
  }
  const char* backends = getenv(
      "PEER_BACKENDS");  // where the libggml-cpu-*.so are, if not in LIBDIR
  open_like(dir, "libggml-base");
  open_like(dir, "libggml.");
  open_like(dir, "libllama.");
  sym<void(void (*)(int, const char*, void*), void*)>("llama_log_set")(quiet,
                                                                       nullptr);
  sym<void(const char*)>("ggml_backend_load_all_from_path")(
      backends ? backends : dir.c_str());
  sym<void()>("llama_backend_init")();
  Blob mp, cp;
  memset(&mp, 0, sizeof mp);
  memset(&cp, 0, sizeof cp);
  mp = sym<Blob()>("llama_model_default_params")();
  cp = sym<Blob()>("llama_context_default_params")();
  int32_t chk;
  memcpy(&chk, cp.b + 104, 4);
  if (chk != 1) {
    fprintf(stderr, "this libllama lays its parameters out differently\n");
    return 1;
  }
  double t0 = now();
  void* m = sym<void*(const char*, Blob)>("llama_model_load_from_file")(
      model.c_str(), mp);
  if (!m) {
    fprintf(stderr, "cannot load %s\n", model.c_str());
    return 1;
  }
  double load_s = now() - t0;
  int type = ctk == "f16"    ? 1
             : ctk == "q8_0" ? 8
             : ctk == "q4_0" ? 2
             : ctk == "bf16" ? 30
                             : -1;
  put(cp, 0, (std::max(p, d + pd) + n + 1 + 255) / 256 * 256);
  put(cp, 4, 2048);
  put(cp, 8, ub);
  put(cp, 28, t);
  put(cp, 32, t);
  put(cp, 52, fa);
  put(cp, 104, type);
  put(cp, 108, type);
  void* c = sym<void*(void*, Blob)>("llama_init_from_model")(m, cp);
  if (!c) {
    fprintf(stderr, "no context\n");
    return 1;
  }
  auto decode = sym<int32_t(void*, Batch)>("llama_decode");
  auto one = sym<Batch(int32_t*, int32_t)>("llama_batch_get_one");
  auto sync = sym<void(void*)>("llama_synchronize");
  void* mem = sym<void*(const void*)>("llama_get_memory")(c);
  auto seq_rm =
      sym<bool(void*, int32_t, int32_t, int32_t)>("llama_memory_seq_rm");
  auto clear = sym<void(void*, bool)>("llama_memory_clear");
  const void* vocab = sym<const void*(const void*)>("llama_model_get_vocab")(m);
  int V = sym<int32_t(const void*)>("llama_vocab_n_tokens")(vocab);
  auto prompt = [&](int len) {
    std::vector<int32_t> x(len);
    for (auto& e : x) e = rand() % V;
    for (int i = 0; i < len; i += 2048) {
      if (decode(c, one(x.data() + i, std::min(2048, len - i)))) {
        fprintf(stderr, "decode failed\n");
        exit(1);
      }
    }
    sync(c);
    return x;
  };
  auto gen = [&](int len) {
    for (int i = 0; i < len; ++i) {
      int32_t x = rand() % V;
      if (decode(c, one(&x, 1))) {
        fprintf(stderr, "decode failed\n");
        exit(1);
      }
      sync(c);
    }
  };
  auto save = sym<size_t(void*, const char*, int32_t, const int32_t*, size_t)>(
      "llama_state_seq_save_file");
  auto load =
      sym<size_t(void*, const char*, int32_t, int32_t*, size_t, size_t*)>(
          "llama_state_seq_load_file");
  std::vector<double> P, G, D;
  if (p > 0) {
    prompt(std::min(p, 256));
    for (int k = 0; k < r; ++k) {
      clear(mem, false);
      double a = now();
      prompt(p);
      P.push_back(p / (now() - a));
    }
  }
  double depth_s = 0, restore_ms = 0;
  clear(mem, false);
  if (d > 0) {
    double a = now();
    if (from.empty()) {
      auto toks = prompt(d);
      depth_s = now() - a;
      if (!state.empty() &&
          !save(c, state.c_str(), 0, toks.data(), toks.size())) {
        fprintf(stderr, "state save failed\n");
        return 1;
      }
    } else {
      std::vector<int32_t> toks(d);
      size_t got = 0;
      if (!load(c, from.c_str(), 0, toks.data(), toks.size(), &got) ||
          got != toks.size()) {
        fprintf(stderr, "state load failed\n");
        return 1;
      }
      restore_ms = (now() - a) * 1e3;
    }
  }
  if (start) {
    if (!from.empty()) {
      seq_rm(mem, 0, d - 1, -1);
      gen(1);
    }
    puts("first token");
    fflush(stdout);
  }
  for (int k = 0; pd > 0 && k < r; ++k) {
    seq_rm(mem, 0, d, -1);
    double a = now();
    prompt(pd);
    D.push_back(pd / (now() - a));
  }
  if (n > 0) {
    gen(1);
    for (int k = 0; k < r; ++k) {
      seq_rm(mem, 0, d, -1);
      double a = now();
      gen(n);
      G.push_back(n / (now() - a));
    }
  }
  printf(
      "{\"model\":\"%s\",\"kv\":\"%s\",\"fa\":%d,\"threads\":%d,\"load_s\":%."
      "2f",
      model.substr(model.rfind('/') + 1).c_str(), ctk.c_str(), fa, t, load_s);
  if (p > 0) {
    printf(",\"pp\":%d,\"pp_tps\":%.1f,\"pp_all\":[", p, med(P));
    for (size_t i = 0; i < P.size(); ++i) printf("%s%.1f", i ? "," : "", P[i]);
    printf("]");
  }
  if (d > 0) printf(",\"depth\":%d,\"depth_prefill_s\":%.2f", d, depth_s);
  if (n > 0) {
    printf(",\"tg\":%d,\"tg_tps\":%.2f,\"tg_all\":[", n, med(G));
    for (size_t i = 0; i < G.size(); ++i) printf("%s%.2f", i ? "," : "", G[i]);
    printf("]");
  }
  if (pd > 0) printf(",\"pd\":%d,\"pd_tps\":%.2f", pd, med(D));
  if (!from.empty()) printf(",\"restore_ms\":%.1f", restore_ms);
  printf(",\"peak_rss_mb\":%ld,\"rss_anon_mb\":%ld}\n", status_mb("VmHWM:"),
         status_mb("RssAnon:"));
  return 0;
}
