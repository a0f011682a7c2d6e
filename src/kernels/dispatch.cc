// Picks the kernel table once, at first use.
#include <array>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/isa_tables.h"

namespace hearth {
namespace {

struct Tables {
  std::array<const Kernels*, 4> table{};
  std::size_t count = 0;

  void Add(const Kernels& kernels) { table[count++] = &kernels; }
};

#if defined(__x86_64__)
// clang 14's __builtin_cpu_supports does not know this name. The registers are
// AVX's, so the check for avx2 covers the operating system.
bool HasF16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

// __builtin_cpu_supports asks the operating system too (XGETBV): a CPU whose
// kernel does not save the wide registers counts as one without them.
Tables DetectTables() {
  Tables found;
  found.Add(kScalarKernels);
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !HasF16c()) {
    return found;
  }
  found.Add(kAvx2Kernels);
  if (!__builtin_cpu_supports("avx512f") ||
      !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    return found;
  }
  found.Add(kAvx512Kernels);
  if (__builtin_cpu_supports("avx512vnni")) found.Add(kAvx512VnniKernels);
#endif
  return found;
}

const Kernels& Choose(std::span<const Kernels* const> available) {
  if (const char* name = std::getenv("HEARTH_ISA")) {
    for (const Kernels* kernels : available) {
      if (kernels->isa == name) return *kernels;
    }
  }
  return *available.back();
}

}  // namespace

std::span<const Kernels* const> AvailableKernels() {
  static const Tables kTables = DetectTables();
  return {kTables.table.data(), kTables.count};
}

const Kernels& ActiveKernels() {
  static const Kernels& kActive = Choose(AvailableKernels());
  return kActive;
}

}  // namespace hearth
