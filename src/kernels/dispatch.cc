// Picks the kernel table once, at first use.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "base/check.h"
#include "kernels/isa/features.h"
#include "kernels/isa_tables.h"

namespace hearth {
namespace {

struct Tables {
  std::array<const Kernels*, 4> table{};
  std::size_t count = 0;

  void Add(const Kernels& kernels) { table[count++] = &kernels; }
  std::span<const Kernels* const> all() const { return {table.data(), count}; }
};

#if defined(__x86_64__)
// clang 14's __builtin_cpu_supports does not know this name. The registers are
// AVX's, so the check for avx2 covers the operating system.
bool HasF16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

// __builtin_cpu_supports takes literals alone. It asks the operating system too
// (XGETBV): a CPU whose kernel does not save the wide registers counts as one
// without them.
bool HasFeature(std::string_view name) {
  if (name == "avx2") return __builtin_cpu_supports("avx2") != 0;
  if (name == "fma") return __builtin_cpu_supports("fma") != 0;
  if (name == "f16c") return HasF16c();
  if (name == "avx512f") return __builtin_cpu_supports("avx512f") != 0;
  if (name == "avx512bw") return __builtin_cpu_supports("avx512bw") != 0;
  if (name == "avx512dq") return __builtin_cpu_supports("avx512dq") != 0;
  if (name == "avx512vl") return __builtin_cpu_supports("avx512vl") != 0;
  if (name == "avx512vnni") return __builtin_cpu_supports("avx512vnni") != 0;
  // One that isa/features.h has and this list has not.
  CheckFailed("a feature that is asked for", __FILE__, __LINE__);
}

// `features`: of isa/features.h.
bool HasAll(std::string_view features) {
  while (!features.empty()) {
    const std::size_t end = std::min(features.find(','), features.size());
    if (!HasFeature(features.substr(0, end))) return false;
    features.remove_prefix(std::min(end + 1, features.size()));
  }
  return true;
}
#elif defined(__aarch64__)
// The operating system says it; where nobody can be asked there is none.
bool HasDotProducts() {
#if defined(__linux__)
  constexpr unsigned long kAsimdDp = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kAsimdDp) != 0;
#elif defined(__APPLE__)
  int has = 0;
  std::size_t size = sizeof(has);
  return sysctlbyname("hw.optional.arm.FEAT_DotProd", &has, &size, nullptr,
                      0) == 0 &&
         has != 0;
#else
  return false;
#endif
}
#endif

Tables DetectTables() {
  Tables found;
  found.Add(kScalarKernels);
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (HasAll(HEARTH_FEATURES_AVX2)) found.Add(kAvx2Kernels);
  if (HasAll(HEARTH_FEATURES_AVX512)) found.Add(kAvx512Kernels);
  if (HasAll(HEARTH_FEATURES_AVX512VNNI)) found.Add(kAvx512VnniKernels);
#elif defined(__aarch64__)
  found.Add(kNeonKernels);
  if (HasDotProducts()) found.Add(kNeonDotKernels);
#endif
  return found;
}

const Kernels& Choose() {
  const char* name = std::getenv("HEARTH_ISA");
  const auto chosen = KernelsNamed(name == nullptr ? "" : name);
  // CheckIsaChoice has refused it, where a program asks.
  return chosen.ok() ? **chosen : *AvailableKernels().back();
}

}  // namespace

std::span<const Kernels* const> AvailableKernels() {
  static const Tables kTables = DetectTables();
  return kTables.all();
}

Result<const Kernels*> KernelsNamed(std::string_view isa) {
  const auto available = AvailableKernels();
  if (isa.empty()) return available.back();
  std::string names;
  for (const Kernels* kernels : available) {
    if (kernels->isa == isa) return kernels;
    names += (names.empty() ? "" : ", ") + std::string(kernels->isa);
  }
  return {Code::kInvalidArgument,
          "HEARTH_ISA names \"" + std::string(isa) +
              "\", which this processor or this program does not have; there "
              "is " +
              names + "; unset it to use the best"};
}

Result<void> CheckIsaChoice() {
  const char* name = std::getenv("HEARTH_ISA");
  const auto chosen = KernelsNamed(name == nullptr ? "" : name);
  if (!chosen.ok()) return chosen.error();
  return {};
}

const Kernels& ActiveKernels() {
  static const Kernels& kActive = Choose();
  return kActive;
}

}  // namespace hearth
