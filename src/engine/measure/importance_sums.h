// Sums of squares of what linear layers see, under the names of their tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "hearth/importance.h"
#include "model/cpu/linear.h"
#include "model/weights.h"

namespace hearth {

// Knows a matrix by where its weights lie in the file: in a tensor of that
// name, and of a tensor of several matrices at which of them.
class ImportanceSums final : public LinearInputs {
 public:
  // Both outlive the object.
  ImportanceSums(const LoadedModel& model, ThreadPool& pool);

  void Add(const Linear& linear, const float* x, std::int64_t x_stride,
           int n_rows) override;

  // In file order; tensors that nothing went through are left out, but of one
  // whose matrices others did: `on_unseen` is told how many of them.
  std::vector<ImportanceEntry> Entries(
      const std::function<void(const std::string& name, int n_unseen,
                               int n_matrices)>& on_unseen) const;

 private:
  struct Tensor {
    const TensorRecord* record;
    std::int64_t n_columns, n_matrices;
    std::vector<double> sums;  // empty until something was seen
    std::vector<std::int64_t> counts;
  };
  struct Place {
    Tensor* tensor;  // null: not one that is looked at
    std::int64_t matrix;
  };
  Place Find(const WeightMatrix& w);

  ThreadPool& pool_;
  std::vector<Tensor> tensors_;
  std::map<const std::byte*, Tensor*> by_begin_;
  std::unordered_map<const std::byte*, Place> known_;
};

}  // namespace hearth
