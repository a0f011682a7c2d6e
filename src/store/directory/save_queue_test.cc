#include "store/directory/save_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth {
namespace {

// Holds the queue's thread until opened. A queue is declared after its gates:
// its thread may still be leaving one.
class Gate {
 public:
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  Result<void> Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
    return {};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST(SaveQueue, RunsJobsInOrderAndDrainWaitsForAll) {
  SaveQueue queue;
  std::vector<int> order;  // written by the queue's thread alone
  for (int i = 0; i < 100; ++i) {
    queue.Enqueue(
        [&order, i]() -> Result<void> {
          order.push_back(i);
          return {};
        },
        1);
  }
  ASSERT_TRUE(queue.Drain().ok());
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(queue.stats().bytes_in_flight, 0u);
}

TEST(SaveQueue, FirstErrorIsGivenOnceAndJobsBehindItAreSkipped) {
  Gate gate;
  SaveQueue queue;
  int n_run = 0;
  queue.Enqueue([&] { return gate.Wait(); }, 1);
  queue.Enqueue(
      []() -> Result<void> {
        return {Code::kResourceFull, "full"};
      },
      1);
  for (int i = 0; i < 3; ++i) {
    queue.Enqueue(
        [&]() -> Result<void> {
          ++n_run;
          return {Code::kIo, "later"};
        },
        1);
  }
  gate.Open();
  const auto drained = queue.Drain();
  ASSERT_FALSE(drained.ok());
  EXPECT_EQ(drained.error().message, "full");
  EXPECT_EQ(n_run, 0);
  EXPECT_EQ(queue.stats().n_skipped, 3u);
  EXPECT_FALSE(queue.TakeError().has_value());
  queue.Enqueue(
      [&]() -> Result<void> {
        ++n_run;
        return {};
      },
      1);
  EXPECT_TRUE(queue.Drain().ok());
  EXPECT_EQ(n_run, 1);
}

TEST(SaveQueue, RefusesBeyondItsBytesButTakesOneLargeJob) {
  Gate gate, second;
  SaveQueue queue(/*bytes_max=*/100);
  const auto wait = [&] { return gate.Wait(); };
  EXPECT_TRUE(queue.TryEnqueue(wait, 1000));
  EXPECT_FALSE(queue.TryEnqueue(wait, 1));
  gate.Open();
  ASSERT_TRUE(queue.Drain().ok());
  const auto wait_again = [&] { return second.Wait(); };
  EXPECT_TRUE(queue.TryEnqueue(wait_again, 60));
  EXPECT_TRUE(queue.TryEnqueue(wait_again, 40));
  EXPECT_FALSE(queue.TryEnqueue(wait_again, 1));
  EXPECT_EQ(queue.stats().bytes_in_flight, 100u);
  EXPECT_EQ(queue.stats().n_refused, 2u);
  second.Open();
}

TEST(SaveQueue, EnqueueWaitsForRoom) {
  Gate gate;
  SaveQueue queue(/*bytes_max=*/100);
  queue.Enqueue([&] { return gate.Wait(); }, 100);
  std::atomic<bool> entered{false};
  std::thread caller([&] {
    queue.Enqueue([]() -> Result<void> { return {}; }, 50);
    entered = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(entered);
  gate.Open();
  caller.join();
  EXPECT_TRUE(entered);
}

TEST(SaveQueue, DrainForGivesUpAndSaysWhatIsLost) {
  Gate gate;
  bool ran = false;
  SaveQueue queue;
  EXPECT_TRUE(queue.DrainFor(std::chrono::seconds(10)).ok());
  queue.Enqueue([&] { return gate.Wait(); }, std::size_t{3} << 20);
  queue.Enqueue(
      [&]() -> Result<void> {
        ran = true;
        return {};
      },
      std::size_t{1} << 20);
  const auto drained = queue.DrainFor(std::chrono::milliseconds(1));
  ASSERT_FALSE(drained.ok());
  EXPECT_EQ(drained.error().code, Code::kCancelled);
  EXPECT_EQ(drained.error().message,
            "2 saves (4 MiB) were not finished in time and are lost");
  EXPECT_TRUE(queue.giving_up());
  gate.Open();
  EXPECT_TRUE(queue.Drain().ok());
  EXPECT_FALSE(ran);
}

TEST(SaveQueue, DestructionRunsWhatIsQueued) {
  std::atomic<int> n_run{0};
  {
    SaveQueue queue;
    for (int i = 0; i < 50; ++i) {
      queue.Enqueue(
          [&]() -> Result<void> {
            ++n_run;
            return {};
          },
          1);
    }
  }
  EXPECT_EQ(n_run, 50);
}

TEST(SaveQueue, ManyCallersLoseNothing) {
  SaveQueue queue(/*bytes_max=*/64);
  std::atomic<int> n_run{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        queue.Enqueue(
            [&]() -> Result<void> {
              ++n_run;
              return {};
            },
            7);
        if (i % 50 == 0) (void)queue.Drain();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  ASSERT_TRUE(queue.Drain().ok());
  EXPECT_EQ(n_run, 800);
}

}  // namespace
}  // namespace hearth
