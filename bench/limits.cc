// What this machine can do at most: the denominators of docs/benchmarks.md.
//
//   limits [--json] [--threads N] [--dir D] [--megabytes N]
//
// Each rate is the best of five rounds, because anything that disturbs a round
// makes it slower, never faster. Rates of arithmetic run in registers; reading
// runs over more memory than the caches hold.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/file.h"
#include "base/thread_pool.h"

namespace hearth {
namespace {

constexpr int kRounds = 5;
constexpr int kChains = 12;  // independent sums: hides any latency

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// --- Arithmetic ------------------------------------------------------------
// Each runs `n` instructions on each of kChains registers.
#if defined(__x86_64__)

// Named variables, not an array, which compilers keep in memory.
#define HEARTH_TWELVE(X) \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define HEARTH_START(i) auto a##i = kZero;
#define HEARTH_STEP(i)    \
  a##i = HEARTH_OP(a##i); \
  asm volatile("" : "+v"(a##i));
#define HEARTH_CHAINS(target_name, zero)                          \
  __attribute__((target(target_name))) void Run(std::int64_t n) { \
    const auto kZero = zero;                                      \
    HEARTH_TWELVE(HEARTH_START)                                   \
    for (std::int64_t i = 0; i < n; ++i) {                        \
      HEARTH_TWELVE(HEARTH_STEP)                                  \
    }                                                             \
  }

namespace fma512 {
#define HEARTH_OP(a) _mm512_fmadd_ps(a, a, a)
HEARTH_CHAINS("avx512f", _mm512_setzero_ps())
#undef HEARTH_OP
}  // namespace fma512
namespace fma256 {
#define HEARTH_OP(a) _mm256_fmadd_ps(a, a, a)
HEARTH_CHAINS("avx2,fma", _mm256_setzero_ps())
#undef HEARTH_OP
}  // namespace fma256
namespace bf16_512 {
#define HEARTH_OP(a) _mm512_dpbf16_ps(a, (__m512bh)a, (__m512bh)a)
HEARTH_CHAINS("avx512f,avx512bf16", _mm512_setzero_ps())
#undef HEARTH_OP
}  // namespace bf16_512
namespace int8_512 {
#define HEARTH_OP(a) _mm512_dpbusd_epi32(a, a, a)
HEARTH_CHAINS("avx512f,avx512vnni", _mm512_setzero_si512())
#undef HEARTH_OP
}  // namespace int8_512
namespace int8_256 {
#define HEARTH_OP(a) \
  _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_maddubs_epi16(a, a), a))
HEARTH_CHAINS("avx2", _mm256_setzero_si256())
#undef HEARTH_OP
}  // namespace int8_256
#undef HEARTH_CHAINS
#undef HEARTH_STEP
#undef HEARTH_START
#undef HEARTH_TWELVE

#endif  // __x86_64__

struct Peak {
  const char* key;
  const char* text;
  double operations;  // of one instruction: a multiplication and an addition
                      // count as two
  void (*run)(std::int64_t);
};

std::vector<Peak> Peaks() {
  std::vector<Peak> peaks;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) {
    peaks.push_back({"fp32_fma", "fp32 fma, 512 bits", 32, fma512::Run});
  } else if (__builtin_cpu_supports("fma")) {
    peaks.push_back({"fp32_fma", "fp32 fma, 256 bits", 16, fma256::Run});
  }
  if (__builtin_cpu_supports("avx512bf16")) {
    peaks.push_back({"bf16_dot", "bf16 vdpbf16ps", 64, bf16_512::Run});
  }
  if (__builtin_cpu_supports("avx512vnni")) {
    peaks.push_back({"int8_dot", "int8 vpdpbusd", 128, int8_512::Run});
  } else if (__builtin_cpu_supports("avx2")) {
    peaks.push_back({"int8_dot", "int8 vpmaddubsw", 64, int8_256::Run});
  }
#endif
  return peaks;
}

// Runs work(thread) on n threads that start together; seconds to the last end.
double OnThreads(int n, const std::function<void(int)>& work) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < n; ++t) {
    threads.emplace_back([&, t] {
      ready++;
      while (!go) std::this_thread::yield();
      work(t);
    });
  }
  while (ready < n) std::this_thread::yield();
  const auto start = Clock::now();
  go = true;
  for (std::thread& thread : threads) thread.join();
  return SecondsSince(start);
}

double PeakRate(const Peak& peak, int n_threads) {
  constexpr std::int64_t kSteps = 20'000'000;
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double seconds = OnThreads(n_threads, [&](int) { peak.run(kSteps); });
    best = std::max(best,
                    peak.operations * kChains * kSteps * n_threads / seconds);
  }
  return best;
}

// --- Memory
// -------------------------------------------------------------------
std::uint64_t SumOf(const std::uint64_t* p, std::size_t n) {
  std::uint64_t sum[8] = {};
  for (std::size_t i = 0; i + 64 <= n; i += 64) {
    for (std::size_t j = 0; j < 8; ++j) {
      // Far enough to hide the memory's latency.
      __builtin_prefetch(p + i + 8 * j + 512);
      for (std::size_t k = 0; k < 8; ++k) sum[k] += p[i + 8 * j + k];
    }
  }
  std::uint64_t total = 0;
  for (const std::uint64_t s : sum) total += s;
  return total;
}

volatile std::uint64_t sink;

// Filled memory on pages of the usual size, or of 2 MiB where the system gives
// them: finding small pages can take as long as reading them.
class Memory {
 public:
  Memory(std::size_t size, bool huge_pages) {
    constexpr std::size_t kHugePage = std::size_t{2} << 20;
    size = (size + kHugePage - 1) / kHugePage * kHugePage;
    size_ = size / 8;
    data_.reset(
        static_cast<std::uint64_t*>(std::aligned_alloc(kHugePage, size)));
    if (huge_pages) AdviseHugePages(data_.get(), size);
    for (std::size_t i = 0; i < size_; ++i) {
      data_.get()[i] = i * 0x9e3779b97f4a7c15u;
    }
  }
  std::span<const std::uint64_t> words() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::uint64_t* p) const { std::free(p); }
  };
  std::size_t size_ = 0;
  std::unique_ptr<std::uint64_t, Free> data_;
};

double ReadRate(std::span<const std::uint64_t> memory, int n_threads) {
  const std::size_t part = memory.size() / static_cast<std::size_t>(n_threads);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double seconds = OnThreads(n_threads, [&](int t) {
      sink = SumOf(memory.data() + static_cast<std::size_t>(t) * part, part);
    });
    best =
        std::max(best, 8.0 * static_cast<double>(part) * n_threads / seconds);
  }
  return best;
}

// --- Files
// ---------------------------------------------------------------------
struct FileRates {
  double disk_read = 0, page_cache_read = 0, page_cache_mapped = 0;
};

double ReadFile(int fd, std::vector<std::byte>& buffer) {
  std::uint64_t total = 0;
  const auto start = Clock::now();
  while (true) {
    const ssize_t n =
        ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(total));
    if (n <= 0) break;
    total += static_cast<std::uint64_t>(n);
  }
  return static_cast<double>(total) / SecondsSince(start);
}

Result<FileRates> MeasureFile(const std::string& dir,
                              std::span<const std::uint64_t> memory) {
  const std::string path = dir + "/hearth-limits-" + std::to_string(::getpid());
  HEARTH_TRY(WriteFileAtomically(path, std::as_bytes(memory)));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  FileRates rates;
  std::vector<std::byte> buffer(std::size_t{4} << 20);
  for (int round = 0; fd >= 0 && round < 3; ++round) {
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    rates.disk_read = std::max(rates.disk_read, ReadFile(fd, buffer));
    rates.page_cache_read =
        std::max(rates.page_cache_read, ReadFile(fd, buffer));
    if (const auto file = MappedFile::Open(path); file.ok()) {
      const auto start = Clock::now();
      sink = SumOf(reinterpret_cast<const std::uint64_t*>(file->bytes().data()),
                   file->bytes().size() / 8);
      rates.page_cache_mapped = std::max(
          rates.page_cache_mapped,
          static_cast<double>(file->bytes().size()) / SecondsSince(start));
    }
  }
  if (fd >= 0) ::close(fd);
  ::unlink(path.c_str());
  return rates;
}

struct Options {
  bool json = false;
  int n_threads = AvailableCpus();
  std::string dir = "/tmp";
  std::size_t megabytes = 512;
};

int Run(const Options& options) {
  nlohmann::ordered_json json;
  json["threads"] = options.n_threads;
  const auto put = [&](const char* key, const std::string& text, double one,
                       double all, const char* unit) {
    json[key] = {{"one_thread", one * 1e-9},
                 {"all_threads", all * 1e-9},
                 {"unit", unit}};
    if (!options.json) {
      std::printf("%-28s %9.1f %9.1f %s\n", text.c_str(), one * 1e-9,
                  all * 1e-9, unit);
    }
  };
  if (!options.json) {
    std::printf("%-28s %9s %9s\n", "", "1 thread",
                (std::to_string(options.n_threads) + " threads").c_str());
  }
  for (const Peak& peak : Peaks()) {
    put(peak.key, peak.text, PeakRate(peak, 1),
        PeakRate(peak, options.n_threads), "Gop/s");
  }
  const Memory small(options.megabytes << 20, /*huge_pages=*/false);
  put("memory_read", "memory, read", ReadRate(small.words(), 1),
      ReadRate(small.words(), options.n_threads), "GB/s");
  const Memory huge(options.megabytes << 20, /*huge_pages=*/true);
  put("memory_read_huge_pages", "memory, read, huge pages",
      ReadRate(huge.words(), 1), ReadRate(huge.words(), options.n_threads),
      "GB/s");
  const auto files = MeasureFile(options.dir, small.words());
  if (!files.ok()) {
    std::fprintf(stderr, "limits: %s\n", files.error().message.c_str());
    return 1;
  }
  const auto put_file = [&](const char* key, const char* text, double rate) {
    json[key] = {{"one_thread", rate * 1e-9}, {"unit", "GB/s"}};
    if (!options.json) {
      std::printf("%-28s %9.2f %9s GB/s\n", text, rate * 1e-9, "");
    }
  };
  put_file("disk_read", "disk, read", files->disk_read);
  put_file("page_cache_read", "page cache, read", files->page_cache_read);
  put_file("page_cache_mapped", "page cache, first touch",
           files->page_cache_mapped);
  if (options.json) std::printf("%s\n", json.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  hearth::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (word == "--json") {
      options.json = true;
      continue;
    }
    if (word == "--threads" && value != nullptr) {
      options.n_threads = std::max(1, std::atoi(value));
    } else if (word == "--dir" && value != nullptr) {
      options.dir = value;
    } else if (word == "--megabytes" && value != nullptr) {
      options.megabytes =
          static_cast<std::size_t>(std::max(64, std::atoi(value)));
    } else {
      std::fprintf(stderr,
                   "usage: limits [--json] [--threads N] [--dir D] "
                   "[--megabytes N]\n");
      return 2;
    }
    ++i;
  }
  return hearth::Run(options);
}
