#include "engine/measure/importance_sums.h"

#include <algorithm>

namespace hearth {
namespace {

// Columns that a task adds up: a cache line of inputs, some of sums.
constexpr std::int64_t kTaskColumns = 64;

std::size_t U(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace

ImportanceSums::ImportanceSums(const LoadedModel& model, ThreadPool& pool)
    : pool_(pool) {
  for (const TensorRecord& record : model.tensors) {
    const std::size_t n_dims = record.shape.size();
    if (!record.name.starts_with("blk.") || n_dims < 2 || n_dims > 3) continue;
    tensors_.push_back(
        {.record = &record,
         .n_columns = static_cast<std::int64_t>(record.shape.back()),
         .n_matrices =
             n_dims == 3 ? static_cast<std::int64_t>(record.shape[0]) : 1,
         .sums = {},
         .counts = {}});
  }
  for (Tensor& tensor : tensors_) {
    by_begin_[tensor.record->bytes.data()] = &tensor;
  }
}

ImportanceSums::Place ImportanceSums::Find(const WeightMatrix& w) {
  auto after = by_begin_.upper_bound(w.data);
  if (after == by_begin_.begin()) return {};
  Tensor* tensor = std::prev(after)->second;
  const ByteSpan bytes = tensor->record->bytes;
  const auto offset = static_cast<std::size_t>(w.data - bytes.data());
  if (offset >= bytes.size() || w.n_in != tensor->n_columns) return {};
  const std::size_t each = bytes.size() / U(tensor->n_matrices);
  // A matrix cut out of a tensor's middle has inputs of its own.
  if (offset % each != 0) return {};
  return {tensor, static_cast<std::int64_t>(offset / each)};
}

void ImportanceSums::Add(const Linear& linear, const float* x,
                         std::int64_t x_stride, int n_rows) {
  const auto [known, is_new] = known_.try_emplace(linear.w.data, Place{});
  if (is_new) known->second = Find(linear.w);
  const Place place = known->second;
  if (place.tensor == nullptr) return;
  Tensor& tensor = *place.tensor;
  const std::int64_t n = tensor.n_columns;
  if (tensor.sums.empty()) {
    tensor.sums.resize(U(n * tensor.n_matrices));
    tensor.counts.resize(U(tensor.n_matrices));
  }
  tensor.counts[U(place.matrix)] += n_rows;
  double* sums = tensor.sums.data() + place.matrix * n;
  pool_.ParallelFor(
      (n + kTaskColumns - 1) / kTaskColumns, [&](std::int64_t task, int) {
        const std::int64_t begin = task * kTaskColumns;
        const std::int64_t end = std::min(n, begin + kTaskColumns);
        for (std::int64_t r = 0; r < n_rows; ++r) {
          const float* row = x + r * x_stride;
          for (std::int64_t k = begin; k < end; ++k) {
            sums[k] += double{row[k]} * double{row[k]};
          }
        }
      });
}

std::vector<ImportanceEntry> ImportanceSums::Entries(
    const std::function<void(const std::string& name, int n_unseen,
                             int n_matrices)>& on_unseen) const {
  std::vector<ImportanceEntry> entries;
  for (const Tensor& tensor : tensors_) {
    if (tensor.sums.empty()) continue;
    ImportanceEntry& entry = entries.emplace_back();
    entry.name = tensor.record->name;
    for (const double sum : tensor.sums) {
      entry.sums.push_back(static_cast<float>(sum));
    }
    int n_unseen = 0;
    for (const std::int64_t count : tensor.counts) {
      entry.counts.push_back(static_cast<float>(count));
      n_unseen += count == 0 ? 1 : 0;
    }
    if (n_unseen > 0) {
      on_unseen(entry.name, n_unseen, static_cast<int>(tensor.n_matrices));
    }
  }
  return entries;
}

}  // namespace hearth
