// An importance matrix beside the tensors that it guides the quantising of.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "convert/gguf/gguf_writer.h"
#include "hearth/importance.h"
#include "hearth/result.h"

namespace hearth {

class ImportanceOfTensors {
 public:
  // Mean squares for every tensor that `matrix` names. kInvalidArgument when it
  // is of another model: a tensor that is not among `tensors`, or has another
  // number of inputs. `label` starts messages.
  static Result<ImportanceOfTensors> Make(
      const ImportanceMatrix& matrix, const std::string& label,
      std::span<const GgufTensorSource> tensors);

  // [n_matrices][n_columns] of a tensor; empty: the matrix has nothing of it.
  const std::vector<float>& Of(const std::string& name) const;

 private:
  std::map<std::string, std::vector<float>> means_;
};

}  // namespace hearth
