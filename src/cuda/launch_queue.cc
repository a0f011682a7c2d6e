#include "cuda/launch_queue.h"

#include <cstring>
#include <utility>

#include "cuda/kernel_table.h"

namespace hearth::gpu {
namespace {

// Numbers of the driver's interface.
constexpr int kOverlap = 6;  // a launch's attribute
constexpr int kOwnThread = 1;

constexpr int kGraphLaunchesMin = 16;  // fewer are as fast alone
constexpr std::size_t kGraphsMax = 4;
constexpr std::size_t kAlign = 16;

std::size_t Padded(std::size_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

void LaunchQueue::Open(const Driver& driver, std::vector<CuFunction> functions,
                       CuStream stream, CuStream scratch, bool overlaps) {
  driver_ = &driver;
  functions_ = std::move(functions);
  stream_ = stream;
  scratch_ = scratch;
  overlaps_ = overlaps;
}

void LaunchQueue::Close() {
  for (const Graph& graph : graphs_) driver_->cuGraphExecDestroy(graph.exec);
  graphs_.clear();
}

void LaunchQueue::Add(const Launch& launch) {
  Head head;
  std::memset(static_cast<void*>(&head), 0, sizeof head);  // padding, too
  head.kernel = launch.kernel;
  head.grid = launch.grid;
  head.shared_bytes = launch.shared_bytes;
  head.args_bytes = launch.args.size();
  std::vector<std::byte>& bytes = waiting_.bytes;
  const std::size_t at = bytes.size();
  bytes.resize(at + Padded(sizeof head) + Padded(head.args_bytes));
  std::memcpy(bytes.data() + at, &head, sizeof head);
  std::memcpy(bytes.data() + at + Padded(sizeof head), launch.args.data(),
              head.args_bytes);
  ++waiting_.n;
}

LaunchQueue::Failure LaunchQueue::LaunchAll(CuStream stream) {
  CuLaunchAttribute overlap = {};
  overlap.id = kOverlap;
  overlap.value = 1;
  for (std::size_t at = 0; at < waiting_.bytes.size();) {
    Head head;
    std::memcpy(static_cast<void*>(&head), waiting_.bytes.data() + at,
                sizeof head);
    void* args = waiting_.bytes.data() + at + Padded(sizeof head);
    const auto i = static_cast<std::size_t>(head.kernel);
    const CuLaunchConfig config{head.grid.x,
                                head.grid.y,
                                head.grid.z,
                                static_cast<unsigned>(KernelThreads()[i]),
                                1,
                                1,
                                static_cast<unsigned>(head.shared_bytes),
                                stream,
                                &overlap,
                                overlaps_ ? 1u : 0u};
    const CuStatus status =
        driver_->cuLaunchKernelEx(&config, functions_[i], &args, nullptr);
    if (status != 0) return {status, head.kernel};
    at += Padded(sizeof head) + Padded(head.args_bytes);
  }
  return {};
}

// Of what waits. A driver that makes none is not asked again.
bool LaunchQueue::MakeGraph() {
  CuGraph graph = nullptr;
  CuGraphExec exec = nullptr;
  bool made = driver_->cuStreamBeginCapture_v2(scratch_, kOwnThread) == 0;
  if (made) {
    made = LaunchAll(scratch_).status == 0;
    made = driver_->cuStreamEndCapture(scratch_, &graph) == 0 && made;
  }
  made = made && driver_->cuGraphInstantiateWithFlags(&exec, graph, 0) == 0;
  if (graph != nullptr) driver_->cuGraphDestroy(graph);
  makes_graphs_ = made;
  if (!made) return false;
  if (graphs_.size() == kGraphsMax) {
    driver_->cuGraphExecDestroy(graphs_.back().exec);
    graphs_.pop_back();
  }
  graphs_.push_front({waiting_, exec});
  return true;
}

LaunchQueue::Failure LaunchQueue::Flush() {
  if (waiting_.n == 0) return {};
  Failure failure;
  const auto launched_whole = [&] {
    if (waiting_.n < kGraphLaunchesMin || !makes_graphs_) return false;
    auto graph = graphs_.begin();
    while (graph != graphs_.end() && graph->run != waiting_) ++graph;
    if (graph != graphs_.end()) {
      graphs_.splice(graphs_.begin(), graphs_, graph);
    } else if (waiting_ != before_ || !MakeGraph()) {
      return false;
    }
    failure.status = driver_->cuGraphLaunch(graphs_.front().exec, stream_);
    return true;
  };
  if (!launched_whole()) {
    failure = LaunchAll(stream_);
    std::swap(before_, waiting_);
  }
  waiting_.n = 0;
  waiting_.bytes.clear();
  return failure;
}

}  // namespace hearth::gpu
