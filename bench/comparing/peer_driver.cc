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
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

// Larger than the real structs; passed by value on the stack.
struct Blob {
  unsigned char bytes[1024] = {};

  void Put(int offset, std::int32_t value) {
    std::memcpy(bytes + offset, &value, sizeof value);
  }
  std::int32_t Get(int offset) const {
    std::int32_t value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
  }
};
using Tokens = std::vector<std::int32_t>;

// The library's llama_batch.
struct Batch {
  std::int32_t n_tokens;
  std::int32_t* tokens;
  float* embeddings;
  std::int32_t* positions;
  std::int32_t* n_sequences;
  std::int32_t** sequences;
  std::int8_t* wants_logits;
};

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

long StatusMb(const char* key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) == 0) {
      return std::atol(line.c_str() + std::strlen(key)) / 1024;
    }
  }
  return -1;
}

struct Options {
  std::string dir, model, kv = "f16", save, load;
  int prefill = 0, decode = 0, depth = 0, further = 0;
  int repetitions = 1, threads = 2, flash = 1, batch = 512;
  bool start = false;
};

bool Refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return false;
}

bool ParseOptions(int argc, char** argv, Options& o) {
  if (argc < 3) return Refuse("see the top of peer_driver.cc");
  o.dir = argv[1];
  o.model = argv[2];
  const std::map<std::string, int*> numbers = {
      {"-p", &o.prefill},     {"-n", &o.decode},  {"-d", &o.depth},
      {"-pd", &o.further},    {"-t", &o.threads}, {"-fa", &o.flash},
      {"-r", &o.repetitions}, {"-ub", &o.batch}};
  const std::map<std::string, std::string*> texts = {
      {"-ctk", &o.kv}, {"-save", &o.save}, {"-load", &o.load}};
  for (int i = 3; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "-start") {
      o.start = true;
      continue;
    }
    const auto number = numbers.find(key);
    const auto text = texts.find(key);
    if (number == numbers.end() && text == texts.end()) {
      return Refuse("unknown option " + key);
    }
    if (++i >= argc) return Refuse(key + " wants a value");
    if (number != numbers.end()) {
      *number->second = std::atoi(argv[i]);
    } else {
      *text->second = argv[i];
    }
  }
  return true;
}

// The library's files, opened one after the other.
class Library {
 public:
  // The file whose name begins so; of several, the one of the shortest name.
  void Open(const std::string& dir, const std::string& prefix) {
    DIR* files = opendir(dir.c_str());
    if (files == nullptr) Fail(dir + ": " + std::strerror(errno));
    std::string best;
    while (const dirent* entry = readdir(files)) {
      const std::string name = entry->d_name;
      if (name.rfind(prefix, 0) == 0 && name.find(".so") != std::string::npos &&
          (best.empty() || name.size() < best.size())) {
        best = name;
      }
    }
    closedir(files);
    if (best.empty()) Fail("no " + prefix + "* in " + dir);
    void* opened = dlopen((dir + "/" + best).c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (opened == nullptr) Fail(dlerror());
    files_.push_back(opened);
  }
  template <class F>
  F* Find(const char* name) const {
    for (void* file : files_) {
      if (void* found = dlsym(file, name)) return reinterpret_cast<F*>(found);
    }
    Fail(std::string("no symbol ") + name);
  }

 private:
  std::vector<void*> files_;
};

// A model and one context of it.
class Peer {
 public:
  explicit Peer(const Options& o) {
    OpenLibrary(o);
    Load(o);
    decode_ = library_.Find<std::int32_t(void*, Batch)>("llama_decode");
    one_ = library_.Find<Batch(std::int32_t*, std::int32_t)>(
        "llama_batch_get_one");
    wait_ = library_.Find<void(void*)>("llama_synchronize");
    memory_ = library_.Find<void*(const void*)>("llama_get_memory")(context_);
    cut_ = library_.Find<bool(void*, std::int32_t, std::int32_t, std::int32_t)>(
        "llama_memory_seq_rm");
    clear_ = library_.Find<void(void*, bool)>("llama_memory_clear");
    const void* vocab = library_.Find<const void*(const void*)>(
        "llama_model_get_vocab")(model_);
    n_vocab_ =
        library_.Find<std::int32_t(const void*)>("llama_vocab_n_tokens")(vocab);
  }

  double load_s() const { return load_s_; }

  Tokens Prefill(int n) {
    Tokens tokens(static_cast<std::size_t>(n));
    for (std::int32_t& token : tokens) token = std::rand() % n_vocab_;
    for (int i = 0; i < n; i += kTokensAtOnce) {
      Decode(tokens.data() + i, std::min(kTokensAtOnce, n - i));
    }
    wait_(context_);
    return tokens;
  }
  void Generate(int n) {
    for (int i = 0; i < n; ++i) {
      std::int32_t token = std::rand() % n_vocab_;
      Decode(&token, 1);
      wait_(context_);
    }
  }
  void Clear() { clear_(memory_, false); }
  // Keeps the first n_tokens.
  void CutTo(int n_tokens) { cut_(memory_, 0, n_tokens, -1); }

  void Save(const std::string& path, const Tokens& tokens) {
    using Save = std::size_t(void*, const char*, std::int32_t,
                             const std::int32_t*, std::size_t);
    Save* save = library_.Find<Save>("llama_state_seq_save_file");
    const auto n =
        save(context_, path.c_str(), 0, tokens.data(), tokens.size());
    if (n == 0) Fail("state save failed");
  }
  void Restore(const std::string& path, int n_tokens) {
    using Load = std::size_t(void*, const char*, std::int32_t, std::int32_t*,
                             std::size_t, std::size_t*);
    Load* load = library_.Find<Load>("llama_state_seq_load_file");
    Tokens tokens(static_cast<std::size_t>(n_tokens));
    std::size_t got = 0;
    load(context_, path.c_str(), 0, tokens.data(), tokens.size(), &got);
    if (got != tokens.size()) Fail("state load failed");
  }

 private:
  static constexpr int kTokensAtOnce = 2048;

  void OpenLibrary(const Options& o) {
    library_.Open(o.dir, "libggml-base");
    library_.Open(o.dir, "libggml.");
    library_.Open(o.dir, "libllama.");
    using Log = void(int level, const char* text, void*);
    library_.Find<void(Log*, void*)>("llama_log_set")(
        [](int level, const char* text, void*) {
          if (level >= 4 && level != 5) std::fputs(text, stderr);
        },
        nullptr);
    const char* backends = std::getenv("PEER_BACKENDS");
    library_.Find<void(const char*)>("ggml_backend_load_all_from_path")(
        backends != nullptr ? backends : o.dir.c_str());
    library_.Find<void()>("llama_backend_init")();
  }

  void Load(const Options& o) {
    const Blob model_options =
        library_.Find<Blob()>("llama_model_default_params")();
    Blob options = library_.Find<Blob()>("llama_context_default_params")();
    if (options.Get(104) != 1) {
      Fail("this libllama lays its parameters out differently");
    }
    const double start = Now();
    model_ = library_.Find<void*(const char*, Blob)>(
        "llama_model_load_from_file")(o.model.c_str(), model_options);
    if (model_ == nullptr) Fail("cannot load " + o.model);
    load_s_ = Now() - start;
    const int n_tokens =
        std::max(o.prefill, o.depth + o.further) + o.decode + 1;
    options.Put(0, (n_tokens + 255) / 256 * 256);
    options.Put(4, kTokensAtOnce);
    options.Put(8, o.batch);
    for (const int at : {28, 32}) options.Put(at, o.threads);
    options.Put(52, o.flash);
    for (const int at : {104, 108}) options.Put(at, TypeNamed(o.kv));
    context_ = library_.Find<void*(void*, Blob)>("llama_init_from_model")(
        model_, options);
    if (context_ == nullptr) Fail("no context");
  }

  // Of ggml.
  static int TypeNamed(const std::string& name) {
    const std::map<std::string, int> types = {
        {"f16", 1}, {"q8_0", 8}, {"q4_0", 2}, {"bf16", 30}};
    const auto type = types.find(name);
    return type == types.end() ? -1 : type->second;
  }

  void Decode(std::int32_t* tokens, int n) {
    if (decode_(context_, one_(tokens, n)) != 0) Fail("decode failed");
  }

  Library library_;
  double load_s_ = 0;
  int n_vocab_ = 0;
  void *model_ = nullptr, *context_ = nullptr, *memory_ = nullptr;
  std::int32_t (*decode_)(void*, Batch) = nullptr;
  Batch (*one_)(std::int32_t*, std::int32_t) = nullptr;
  void (*wait_)(void*) = nullptr;
  bool (*cut_)(void*, std::int32_t, std::int32_t, std::int32_t) = nullptr;
  void (*clear_)(void*, bool) = nullptr;
};

struct Figures {
  std::vector<double> prefill, decode, further;  // tokens/s
  double depth_s = 0, restore_ms = 0;
};

// Tokens/s of what `work` does with n tokens.
template <class Work>
double Rate(int n, Work work) {
  const double start = Now();
  work();
  return n / (Now() - start);
}

// Puts the first o.depth tokens into the context.
void Reach(const Options& o, Peer& peer, Figures& figures) {
  peer.Clear();
  if (o.depth <= 0) return;
  const double start = Now();
  if (o.load.empty()) {
    const auto tokens = peer.Prefill(o.depth);
    figures.depth_s = Now() - start;
    if (!o.save.empty()) peer.Save(o.save, tokens);
  } else {
    peer.Restore(o.load, o.depth);
    figures.restore_ms = (Now() - start) * 1e3;
  }
}

Figures Measure(const Options& o, Peer& peer) {
  Figures figures;
  if (o.prefill > 0) {
    peer.Prefill(std::min(o.prefill, 256));
    for (int k = 0; k < o.repetitions; ++k) {
      peer.Clear();
      figures.prefill.push_back(
          Rate(o.prefill, [&] { peer.Prefill(o.prefill); }));
    }
  }
  Reach(o, peer, figures);
  if (o.start) {
    if (!o.load.empty()) {
      peer.CutTo(o.depth - 1);
      peer.Generate(1);
    }
    std::puts("first token");
    std::fflush(stdout);
  }
  for (int k = 0; o.further > 0 && k < o.repetitions; ++k) {
    peer.CutTo(o.depth);
    figures.further.push_back(
        Rate(o.further, [&] { peer.Prefill(o.further); }));
  }
  if (o.decode > 0) {
    peer.Generate(1);
    for (int k = 0; k < o.repetitions; ++k) {
      peer.CutTo(o.depth);
      figures.decode.push_back(
          Rate(o.decode, [&] { peer.Generate(o.decode); }));
    }
  }
  return figures;
}

void PrintAll(const char* key, const char* format,
              const std::vector<double>& values) {
  std::printf(",\"%s\":[", key);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) std::printf(",");
    std::printf(format, values[i]);
  }
  std::printf("]");
}

void Print(const Options& o, double load_s, const Figures& figures) {
  std::printf(
      "{\"model\":\"%s\",\"kv\":\"%s\",\"fa\":%d,\"threads\":%d,"
      "\"load_s\":%.2f",
      o.model.substr(o.model.rfind('/') + 1).c_str(), o.kv.c_str(), o.flash,
      o.threads, load_s);
  if (o.prefill > 0) {
    std::printf(",\"pp\":%d,\"pp_tps\":%.1f", o.prefill,
                Median(figures.prefill));
    PrintAll("pp_all", "%.1f", figures.prefill);
  }
  if (o.depth > 0) {
    std::printf(",\"depth\":%d,\"depth_prefill_s\":%.2f", o.depth,
                figures.depth_s);
  }
  if (o.decode > 0) {
    std::printf(",\"tg\":%d,\"tg_tps\":%.2f", o.decode, Median(figures.decode));
    PrintAll("tg_all", "%.2f", figures.decode);
  }
  if (o.further > 0) {
    std::printf(",\"pd\":%d,\"pd_tps\":%.2f", o.further,
                Median(figures.further));
  }
  if (!o.load.empty()) std::printf(",\"restore_ms\":%.1f", figures.restore_ms);
  std::printf(",\"peak_rss_mb\":%ld,\"rss_anon_mb\":%ld}\n", StatusMb("VmHWM:"),
              StatusMb("RssAnon:"));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!ParseOptions(argc, argv, options)) return 2;
  Peer peer(options);
  Print(options, peer.load_s(), Measure(options, peer));
  return 0;
}
