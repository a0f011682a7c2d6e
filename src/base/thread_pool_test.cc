#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace hearth {
namespace {

TEST(ThreadPool, RunsEveryIndexOnceAcrossManyLoops) {
  ThreadPool pool(4);
  for (int loop = 0; loop < 300; ++loop) {
    const int n = loop % 17;
    std::vector<std::atomic<int>> hits(static_cast<std::size_t>(n));
    pool.ParallelFor(n, [&](std::int64_t i, int thread) {
      EXPECT_GE(thread, 0);
      EXPECT_LT(thread, 4);
      hits[static_cast<std::size_t>(i)]++;
    });
    for (auto& hit : hits) EXPECT_EQ(hit.load(), 1);
    if (loop % 50 == 0) {
      // Long enough for the workers to fall asleep.
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

TEST(ThreadPool, OnlyTheThreadsInUseTakePart) {
  ThreadPool pool(4);
  for (const int n : {1, 3, 2, 4, 1, 4}) {
    pool.UseThreads(n);
    EXPECT_EQ(pool.n_used(), n);
    std::atomic<int> largest{0};
    std::atomic<int> count{0};
    for (int loop = 0; loop < 50; ++loop) {
      pool.ParallelFor(8, [&](std::int64_t, int thread) {
        count++;
        int seen = largest;
        while (thread > seen && !largest.compare_exchange_weak(seen, thread)) {
        }
      });
    }
    EXPECT_EQ(count.load(), 400);
    EXPECT_LT(largest.load(), n);
  }
}

// A worker that is busy elsewhere must not hold up the loop: with more threads
// than processors some always are.
TEST(ThreadPool, ManyMoreThreadsThanProcessorsStillFinish) {
  ThreadPool pool(64);
  std::atomic<std::int64_t> sum{0};
  for (int loop = 0; loop < 200; ++loop) {
    pool.ParallelFor(100, [&](std::int64_t i, int) { sum += i; });
  }
  EXPECT_EQ(sum.load(), 200 * 4950);
}

TEST(ThreadPool, WhatATaskThrowsReachesTheCallerAndThePoolGoesOn) {
  ThreadPool pool(4);
  for (std::int64_t bad = 0; bad < 40; ++bad) {
    EXPECT_THROW(pool.ParallelFor(40,
                                  [bad](std::int64_t i, int) {
                                    if (i == bad) throw std::bad_alloc();
                                  }),
                 std::bad_alloc);
    std::atomic<int> n = 0;
    pool.ParallelFor(40, [&](std::int64_t, int) { ++n; });
    EXPECT_EQ(n, 40);
  }
}

TEST(ThreadPool, ZeroThreadsMeansTheCpusOfThisProcess) {
  EXPECT_EQ(ThreadPool(0).n_threads(), AvailableCpus());
}

}  // namespace
}  // namespace hearth
