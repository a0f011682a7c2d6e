// One source for kernels on a GPU and on the host. A kernel is a function of a
// Block; it is written as phases, each a loop over the block's threads, with
// barriers between them. On a GPU each thread runs its part of a phase; on the
// host the phases are loops, so that every kernel's indexing, order of
// operations and rounding is tested where there is no GPU. Races and missing
// barriers are not: the host runs threads one after the other.
//
// Exactness  every operation is an IEEE binary32 operation, and the compiler
//            fuses none (nvcc: -fmad=false; the host: -ffp-contract=off).
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define HEARTH_GPU __device__ __forceinline__
#define HEARTH_GPU_UNROLL _Pragma("unroll")
#define HEARTH_GPU_PRAGMA(text) _Pragma(#text)
#define HEARTH_GPU_UNROLL_BY(n) HEARTH_GPU_PRAGMA(unroll n)
#else
#include <cstring>
#include <vector>
#define HEARTH_GPU inline
#define HEARTH_GPU_UNROLL
#define HEARTH_GPU_UNROLL_BY(n)
#endif

namespace hearth::gpu {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

#ifdef __CUDACC__

class Block {
 public:
  __device__ __forceinline__ explicit Block(std::byte* shared)
      : shared_(shared) {}
  __device__ __forceinline__ unsigned x() const { return blockIdx.x; }
  __device__ __forceinline__ unsigned y() const { return blockIdx.y; }
  __device__ __forceinline__ unsigned z() const { return blockIdx.z; }
  __device__ __forceinline__ int n_threads() const {
    return static_cast<int>(blockDim.x);
  }
  // body(thread) for every thread.
  template <class Body>
  __device__ __forceinline__ void ForThreads(const Body& body) const {
    body(static_cast<int>(threadIdx.x));
  }
  __device__ __forceinline__ void Sync() const { __syncthreads(); }
  // Before anything is read or written that another launch writes or reads: a
  // launch may begin while those before it end.
  __device__ __forceinline__ void Await() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  }
  // The launch's dynamic shared memory.
  __device__ __forceinline__ std::byte* shared() const { return shared_; }

 private:
  std::byte* shared_;
};

// A variable of every thread that lives from phase to phase.
template <class T>
class PerThread {
 public:
  __device__ __forceinline__ explicit PerThread(const Block&) {}
  __device__ __forceinline__ T& operator()(int) { return value_; }

 private:
  T value_;
};

#else

class Block {
 public:
  Block(Dim3 index, int n_threads, std::byte* shared)
      : index_(index), n_threads_(n_threads), shared_(shared) {}
  unsigned x() const { return index_.x; }
  unsigned y() const { return index_.y; }
  unsigned z() const { return index_.z; }
  int n_threads() const { return n_threads_; }
  template <class Body>
  void ForThreads(const Body& body) const {
    for (int t = 0; t < n_threads_; ++t) body(t);
  }
  void Sync() const {}
  void Await() const {}
  std::byte* shared() const { return shared_; }

 private:
  Dim3 index_;
  int n_threads_;
  std::byte* shared_;
};

template <class T>
class PerThread {
 public:
  explicit PerThread(const Block& block)
      : values_(static_cast<std::size_t>(block.n_threads())) {}
  T& operator()(int thread) {
    return values_[static_cast<std::size_t>(thread)];
  }

 private:
  std::vector<T> values_;
};

#endif

// The threads of one warp, for what they do together.
inline constexpr int kWarp = 32;

#ifdef __CUDACC__

// A variable of every thread of a warp.
template <class T>
class PerLane {
 public:
  __device__ __forceinline__ T& operator()(int) { return value_; }

 private:
  T value_;
};

class Warp {
 public:
  __device__ __forceinline__ int index() const {
    return static_cast<int>(threadIdx.x) / kWarp;
  }
  template <class Body>
  __device__ __forceinline__ void ForLanes(const Body& body) const {
    body(static_cast<int>(threadIdx.x) % kWarp);
  }
  // Of signed bytes: c[16][8] += a[16][16] b[16][8]. Lane l has of a rows l / 4
  // and l / 4 + 8, columns 4 (l % 4) and on; of b the same rows of its column
  // l / 4; of c rows l / 4 and l / 4 + 8, columns 2 (l % 4) and on.
  template <class A, class B, class C>
  __device__ __forceinline__ void Mma16(const A& a, const B& b,
                                        const C& c) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    int* d = c(lane);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a(lane, 0)), "r"(a(lane, 1)), "r"(b(lane)));
  }
};

// body(warp) for every warp.
template <class Body>
__device__ __forceinline__ void ForWarps(const Block&, const Body& body) {
  body(Warp());
}

#else

template <class T>
class PerLane {
 public:
  T& operator()(int lane) { return values_[lane]; }

 private:
  T values_[kWarp];
};

class Warp {
 public:
  explicit Warp(int index) : index_(index) {}
  int index() const { return index_; }
  template <class Body>
  void ForLanes(const Body& body) const {
    for (int lane = 0; lane < kWarp; ++lane) body(lane);
  }
  template <class A, class B, class C>
  void Mma16(const A& a, const B& b, const C& c) const {
    const auto byte = [](std::uint32_t word, int i) {
      return static_cast<int>(static_cast<std::int8_t>(word >> (8 * i)));
    };
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column) {
        int sum = 0;
        for (int k = 0; k < 16; ++k) {
          sum += byte(a(row % 8 * 4 + k / 4, row / 8), k % 4) *
                 byte(b(column * 4 + k / 4), k % 4);
        }
        c(row % 8 * 4 + column / 2)[row / 8 * 2 + column % 2] += sum;
      }
    }
  }

 private:
  int index_;
};

template <class Body>
void ForWarps(const Block& block, const Body& body) {
  for (int w = 0; w < block.n_threads() / kWarp; ++w) body(Warp(w));
}

#endif

// What lies there will be read soon.
#ifdef __CUDACC__
HEARTH_GPU void Prefetch(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}
#else
HEARTH_GPU void Prefetch(const void*) {}
#endif

// Sixteen bytes on their way to shared memory; both places are aligned to
// sixteen. A thread waits for its own copies; a barrier behind that shows them
// to the others.
#ifdef __CUDACC__
HEARTH_GPU void BeginCopy16(void* shared, const void* from) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from)
               : "memory");
}
// What was begun since the last call is one batch.
HEARTH_GPU void EndBatch() { asm volatile("cp.async.commit_group;"); }
// All batches but the newest `kLeft` have arrived.
template <int kLeft>
HEARTH_GPU void AwaitBatches() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}
#else
HEARTH_GPU void BeginCopy16(void* shared, const void* from) {
  std::memcpy(shared, from, 16);
}
HEARTH_GPU void EndBatch() {}
template <int kLeft>
HEARTH_GPU void AwaitBatches() {}
#endif

// body(i) for every i below n, shared out over the block's threads: neighbours
// take neighbours.
template <class Body>
HEARTH_GPU void ForItems(const Block& block, std::int64_t n, const Body& body) {
  block.ForThreads([&](int thread) {
    for (std::int64_t i = thread; i < n; i += block.n_threads()) body(i);
  });
}

}  // namespace hearth::gpu
