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

TEST(ThreadPool, ZeroThreadsMeansTheCpusOfThisProcess) {
  EXPECT_EQ(ThreadPool(0).n_threads(), AvailableCpus());
}

}  // namespace
}  // namespace hearth
