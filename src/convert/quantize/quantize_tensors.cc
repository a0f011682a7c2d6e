#include "convert/quantize/quantize_tensors.h"

#include <set>

#include "convert/quantize/row_quantizer.h"

namespace hearth {
namespace {

std::string NameOf(DType dtype) { return std::string(InfoOf(dtype).name); }

}  // namespace

bool UsesImportance(DType dtype) {
  return IsBlockQuantised(dtype) && dtype != DType::kQ8_0;
}

std::vector<std::string> QuantizeTensors(
    const QuantizeType& type, const MixtureFacts& facts,
    std::vector<GgufTensorSource>& tensors, ThreadPool& pool,
    const ImportanceOfTensors* importance) {
  std::vector<std::string> notes;
  std::string unguided;
  std::set<std::string> before;
  for (GgufTensorSource& tensor : tensors) {
    DType to = tensor.dtype;
    if (IsQuantised(tensor.name, tensor.shape.size())) {
      const DType wanted = MixtureFormat(type, facts, tensor.name);
      const std::uint64_t n = tensor.shape.back();
      const std::optional<DType> fitting = FormatForWidth(wanted, n);
      to = fitting.value_or(tensor.dtype);
      if (fitting != wanted) {
        notes.push_back(tensor.name + ": rows of " + std::to_string(n) +
                        " do not fit " + NameOf(wanted) +
                        (fitting ? "; written as " : "; stays ") + NameOf(to));
      }
    }
    if (IsBlockQuantised(tensor.dtype) && tensor.dtype != to) {
      before.insert(NameOf(tensor.dtype));
    }
    const std::vector<float>* columns =
        importance != nullptr && UsesImportance(to)
            ? &importance->Of(tensor.name)
            : nullptr;
    if (columns != nullptr && columns->empty()) {
      unguided += " " + tensor.name;
      columns = nullptr;
    }
    Requantize(tensor, to, pool, columns);
  }
  if (!unguided.empty()) {
    notes.push_back(
        "quantised without importance, of which the matrix has none:" +
        unguided);
  }
  if (before.empty()) return notes;
  std::string types;
  for (const std::string& name : before) types += " " + name;
  notes.push_back("tensors were quantised before, so their error adds up:" +
                  types);
  return notes;
}

}  // namespace hearth
