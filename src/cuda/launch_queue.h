// Launches on their way to a card. They are kept until something has to come
// behind them; a run of them that is the same as the run before, as a decode
// step's is, becomes a graph that the driver starts at once.
//
// Threads  one at a time.
#pragma once

#include <list>
#include <vector>

#include "cuda/device.h"
#include "cuda/driver.h"

namespace hearth::gpu {

class LaunchQueue {
 public:
  // `functions`: by Kernel. `overlaps`: a launch may begin while the one in
  // front ends (Block::Await). Driver and functions outlive the object, the
  // streams until Close.
  void Open(const Driver& driver, std::vector<CuFunction> functions,
            CuStream stream, CuStream scratch, bool overlaps);
  void Close();

  void Add(const Launch& launch);
  // All of them go. The first status that is no success, and whose launch it
  // was.
  struct Failure {
    CuStatus status = 0;
    Kernel kernel = {};
  };
  Failure Flush();

 private:
  // One launch in `bytes`, in front of its arguments.
  struct Head {
    Kernel kernel;
    Dim3 grid;
    int shared_bytes;
    std::size_t args_bytes;
  };
  // Launches one behind the other: equal bytes are equal runs.
  struct Run {
    int n = 0;
    std::vector<std::byte> bytes;
    bool operator==(const Run&) const = default;
  };
  struct Graph {
    Run run;
    CuGraphExec exec;
  };

  Failure LaunchAll(CuStream stream);
  bool MakeGraph();

  const Driver* driver_ = nullptr;
  std::vector<CuFunction> functions_;
  CuStream stream_ = nullptr, scratch_ = nullptr;
  bool overlaps_ = false;
  bool makes_graphs_ = true;
  Run waiting_, before_;
  std::list<Graph> graphs_;  // the last used first
};

}  // namespace hearth::gpu
