#include "cuda/driver.h"

#include <dlfcn.h>

#include <map>
#include <memory>

#include "base/mutex.h"

namespace hearth::gpu {
namespace {

// The oldest driver that runs the kernels: CUDA 12.0's.
constexpr int kOldestVersion = 12000;

constexpr const char* kRemedy =
    "; use the CPU, or install NVIDIA's driver for the card";

template <class F>
bool Find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

Result<Driver> Load(const char* name) {
  // It stays open: threads of the driver's own may outlive any owner.
  void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return {Code::kUnsupported, std::string("the NVIDIA driver's library ") +
                                    name + " cannot be opened: " + ::dlerror() +
                                    kRemedy};
  }
  Driver driver = {};
  const char* missing = nullptr;
#define HEARTH_FIND(function)                                             \
  if (missing == nullptr && !Find(library, #function, driver.function)) { \
    missing = #function;                                                  \
  }
  HEARTH_FIND(cuInit)
  HEARTH_FIND(cuDriverGetVersion)
  HEARTH_FIND(cuGetErrorString)
  HEARTH_FIND(cuDeviceGetCount)
  HEARTH_FIND(cuDeviceGet)
  HEARTH_FIND(cuDeviceGetName)
  HEARTH_FIND(cuDeviceGetAttribute)
  HEARTH_FIND(cuDevicePrimaryCtxRetain)
  HEARTH_FIND(cuDevicePrimaryCtxRelease_v2)
  HEARTH_FIND(cuCtxSetCurrent)
  HEARTH_FIND(cuMemGetInfo_v2)
  HEARTH_FIND(cuMemAlloc_v2)
  HEARTH_FIND(cuMemFree_v2)
  HEARTH_FIND(cuMemcpyHtoDAsync_v2)
  HEARTH_FIND(cuMemcpyDtoHAsync_v2)
  HEARTH_FIND(cuMemsetD8Async)
  HEARTH_FIND(cuStreamCreate)
  HEARTH_FIND(cuStreamDestroy_v2)
  HEARTH_FIND(cuStreamSynchronize)
  HEARTH_FIND(cuModuleLoadData)
  HEARTH_FIND(cuModuleUnload)
  HEARTH_FIND(cuModuleGetFunction)
  HEARTH_FIND(cuFuncSetAttribute)
  HEARTH_FIND(cuLaunchKernelEx)
  HEARTH_FIND(cuMemHostAlloc)
  HEARTH_FIND(cuMemFreeHost)
  HEARTH_FIND(cuStreamBeginCapture_v2)
  HEARTH_FIND(cuStreamEndCapture)
  HEARTH_FIND(cuGraphInstantiateWithFlags)
  HEARTH_FIND(cuGraphDestroy)
  HEARTH_FIND(cuGraphLaunch)
  HEARTH_FIND(cuGraphExecDestroy)
#undef HEARTH_FIND
  if (missing != nullptr) {
    ::dlclose(library);
    return {Code::kUnsupported, std::string("the NVIDIA driver's library ") +
                                    name + " has no " + missing + kRemedy};
  }
  return driver;
}

Result<void> Start(const Driver& driver) {
  const auto failed = [&](const char* what, CuStatus status) -> Error {
    return {Code::kUnsupported, std::string("the NVIDIA driver ") + what +
                                    ": " + driver.Words(status) + kRemedy};
  };
  if (const CuStatus s = driver.cuInit(0); s != 0) {
    return failed("does not start", s);
  }
  int version = 0;
  if (const CuStatus s = driver.cuDriverGetVersion(&version); s != 0) {
    return failed("does not say its version", s);
  }
  if (version < kOldestVersion) {
    return {Code::kUnsupported, "the NVIDIA driver is for CUDA " +
                                    std::to_string(version / 1000) +
                                    " and 12 is needed; use the CPU, or "
                                    "install a newer driver"};
  }
  int n = 0;
  if (const CuStatus s = driver.cuDeviceGetCount(&n); s != 0 || n == 0) {
    return failed("finds no card", s);
  }
  return {};
}

}  // namespace

std::string Driver::Words(CuStatus status) const {
  const char* text = nullptr;
  if (cuGetErrorString(status, &text) != 0 || text == nullptr) {
    return "error " + std::to_string(status);
  }
  return text;
}

Result<const Driver*> OpenDriver(const char* library) {
  static Mutex mutex;
  static std::map<std::string, std::unique_ptr<const Driver>> opened;
  const MutexLock lock(mutex);
  auto& known = opened[library];
  if (known == nullptr) {
    HEARTH_ASSIGN(Driver driver, Load(library));
    HEARTH_TRY(Start(driver));
    known = std::make_unique<const Driver>(driver);
  }
  return known.get();
}

}  // namespace hearth::gpu
