#include "hearth/version.h"

#include <fstream>
#include <string>

#include "cli/options/command.h"
#include "hearth_commit.h"

namespace hearth::cli {
namespace {

std::string CompilerName() {
#if defined(__clang__)
  return std::string("clang ") + __clang_version__;
#elif defined(__GNUC__)
  return std::string("g++ ") + __VERSION__;
#else
  return "an unknown compiler";
#endif
}

std::string CpuName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "an unknown CPU";
}

std::string CpuFeatures() {
  std::string features;
#if defined(__x86_64__)
  const auto add = [&features](bool has, const char* name) {
    if (has) features += std::string(features.empty() ? "" : ", ") + name;
  };
  add(__builtin_cpu_supports("avx2") != 0, "AVX2");
  add(__builtin_cpu_supports("avx512f") != 0, "AVX-512");
  add(__builtin_cpu_supports("avx512vnni") != 0, "VNNI");
#endif
  return features.empty() ? "no vector extensions in use" : features;
}

}  // namespace

std::string VersionText() {
  return std::string("hearth ") + kVersion + "\ncommit   " + HEARTH_COMMIT +
         "\ncompiler " + CompilerName() + "\ncpu      " + Escaped(CpuName()) +
         " (" + CpuFeatures() + ")";
}

}  // namespace hearth::cli
