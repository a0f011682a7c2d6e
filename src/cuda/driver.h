// The driver of NVIDIA cards, found at run time: libcuda.so.1 is opened when a
// card is asked for, so that one program runs where there is none. The
// declarations are of the driver's documented binary interface; no header of
// the toolkit is needed to build this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hearth/result.h"

namespace hearth::gpu {

using CuStatus = int;  // 0: success
using CuDevice = int;
using CuContext = struct CuContextTag*;
using CuStream = struct CuStreamTag*;
using CuModule = struct CuModuleTag*;
using CuFunction = struct CuFunctionTag*;
using CuGraph = struct CuGraphTag*;
using CuGraphExec = struct CuGraphExecTag*;
using CuAddress = unsigned long long;

// As the driver reads them.
struct CuLaunchAttribute {
  int id;
  char padding[4];
  union {
    int value;
    char bytes[64];
  };
};
struct CuLaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  CuStream stream;
  CuLaunchAttribute* attributes;
  unsigned n_attributes;
};

// The functions that hearth calls, by their exported names.
struct Driver {
  CuStatus (*cuInit)(unsigned flags);
  CuStatus (*cuDriverGetVersion)(int* version);
  CuStatus (*cuGetErrorString)(CuStatus status, const char** text);
  CuStatus (*cuDeviceGetCount)(int* n);
  CuStatus (*cuDeviceGet)(CuDevice* device, int index);
  CuStatus (*cuDeviceGetName)(char* name, int size, CuDevice device);
  CuStatus (*cuDeviceGetAttribute)(int* value, int attribute, CuDevice device);
  CuStatus (*cuDevicePrimaryCtxRetain)(CuContext* context, CuDevice device);
  CuStatus (*cuDevicePrimaryCtxRelease_v2)(CuDevice device);
  CuStatus (*cuCtxSetCurrent)(CuContext context);
  CuStatus (*cuMemGetInfo_v2)(std::size_t* free, std::size_t* total);
  CuStatus (*cuMemAlloc_v2)(CuAddress* at, std::size_t bytes);
  CuStatus (*cuMemFree_v2)(CuAddress at);
  CuStatus (*cuMemcpyHtoDAsync_v2)(CuAddress to, const void* from,
                                   std::size_t bytes, CuStream stream);
  CuStatus (*cuMemcpyDtoHAsync_v2)(void* to, CuAddress from, std::size_t bytes,
                                   CuStream stream);
  CuStatus (*cuMemsetD8Async)(CuAddress at, unsigned char value,
                              std::size_t bytes, CuStream stream);
  CuStatus (*cuStreamCreate)(CuStream* stream, unsigned flags);
  CuStatus (*cuStreamDestroy_v2)(CuStream stream);
  CuStatus (*cuStreamSynchronize)(CuStream stream);
  CuStatus (*cuModuleLoadData)(CuModule* module, const void* image);
  CuStatus (*cuModuleUnload)(CuModule module);
  CuStatus (*cuModuleGetFunction)(CuFunction* function, CuModule module,
                                  const char* name);
  CuStatus (*cuFuncSetAttribute)(CuFunction function, int attribute, int value);
  CuStatus (*cuLaunchKernelEx)(const CuLaunchConfig* config,
                               CuFunction function, void** arguments,
                               void** extra);
  CuStatus (*cuMemHostAlloc)(void** at, std::size_t bytes, unsigned flags);
  CuStatus (*cuMemFreeHost)(void* at);
  CuStatus (*cuStreamBeginCapture_v2)(CuStream stream, int mode);
  CuStatus (*cuStreamEndCapture)(CuStream stream, CuGraph* graph);
  CuStatus (*cuGraphInstantiateWithFlags)(CuGraphExec* exec, CuGraph graph,
                                          unsigned long long flags);
  CuStatus (*cuGraphDestroy)(CuGraph graph);
  CuStatus (*cuGraphLaunch)(CuGraphExec exec, CuStream stream);
  CuStatus (*cuGraphExecDestroy)(CuGraphExec exec);

  // What went wrong, in the driver's words.
  std::string Words(CuStatus status) const;
};

// The driver, opened and started once. `library` is its file's name; tests give
// others. kUnsupported when there is none, or no card, and says which.
Result<const Driver*> OpenDriver(const char* library = "libcuda.so.1");

}  // namespace hearth::gpu
