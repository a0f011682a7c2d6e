#include "convert/imatrix/importance_of_tensors.h"

#include <utility>

namespace hearth {
namespace {

// Of a matrix that nothing went through all columns count alike.
std::vector<float> MeansOf(const ImportanceEntry& entry,
                           std::size_t n_columns) {
  std::vector<float> means(entry.sums.size());
  for (std::size_t i = 0; i < means.size(); ++i) {
    const std::size_t matrix = entry.counts.size() > 1 ? i / n_columns : 0;
    const float count = entry.counts[matrix];
    means[i] = count > 0 ? entry.sums[i] / count : 1.0f;
  }
  return means;
}

}  // namespace

Result<ImportanceOfTensors> ImportanceOfTensors::Make(
    const ImportanceMatrix& matrix, const std::string& label,
    std::span<const GgufTensorSource> tensors) {
  std::map<std::string_view, const GgufTensorSource*> by_name;
  for (const GgufTensorSource& tensor : tensors) {
    by_name[tensor.name] = &tensor;
  }
  const auto another = [&label](const std::string& what) {
    return Error{Code::kInvalidArgument,
                 label + ": this importance matrix is of another model: " +
                     what + "; compute it from the model that is quantised"};
  };
  ImportanceOfTensors result;
  for (const ImportanceEntry& entry : matrix.entries) {
    const auto found = by_name.find(entry.name);
    if (found == by_name.end()) {
      return another("it has tensor " + entry.name +
                     ", which the model has not");
    }
    const auto& shape = found->second->shape;
    const std::uint64_t n_columns = shape.back();
    const std::uint64_t n_matrices = shape.size() == 3 ? shape[0] : 1;
    if (entry.sums.size() != n_columns * n_matrices ||
        (entry.counts.size() != 1 && entry.counts.size() != n_matrices)) {
      return another(entry.name + " has " + std::to_string(entry.sums.size()) +
                     " inputs there, and the model's has " +
                     std::to_string(n_columns * n_matrices));
    }
    result.means_[entry.name] = MeansOf(entry, n_columns);
  }
  return result;
}

const std::vector<float>& ImportanceOfTensors::Of(
    const std::string& name) const {
  static const std::vector<float> none;
  const auto found = means_.find(name);
  return found == means_.end() ? none : found->second;
}

}  // namespace hearth
