// The weights of a model as the tensors of a GGUF file. gguf_tensors.cc: the
// list, attention and feed-forward halves; gguf_mixer_tensors.cc: the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convert/gguf/gguf_writer.h"
#include "convert/linear_rows.h"
#include "formats/families.h"
#include "model/weights.h"

namespace hearth {

class GgufTensorList {
 public:
  // Row `i` of what is written is row order(i) of the matrix, times scale(i).
  using RowOrder = std::function<std::int64_t(std::int64_t)>;
  using RowScale = std::function<float(std::int64_t)>;

  // Both outlive the object, the model also what Run gives.
  GgufTensorList(const LoadedModel& model, const Family& family);

  std::vector<GgufTensorSource> Run();

 private:
  static std::uint64_t U(std::int64_t n) {
    return static_cast<std::uint64_t>(n);
  }
  static std::int64_t Same(std::int64_t row) { return row; }
  std::string Name(Role role, int layer) const {
    return WeightName(names_, role, layer);
  }
  // Of scales that GGUF has no keys for, those that are not 1.
  float Folded(float scale) const {
    return family_.gguf_folded_scales ? scale : 1.0f;
  }

  void AddFloats(std::string name, std::vector<float> values,
                 std::vector<std::uint64_t> shape);
  void AddFloats(std::string name, const std::vector<float>& values);
  void AddMatrix(std::string name, const WeightMatrix& w, RowOrder order);
  // Times a number for all rows, or for each of them: then as F32.
  void AddScaled(std::string name, const WeightMatrix& w, RowOrder order,
                 RowScale scale);
  void AddLinear(Role role, int layer, const Linear& linear,
                 const RowOrder& order = Same, float scale = 1.0f);
  void AddNorm(Role role, int layer, const NormWeights& norm);
  // One matrix of every expert in one tensor. `order` picks n_out rows of each.
  void AddExperts(Role role, int layer,
                  const std::vector<const Linear*>& experts, std::int64_t n_out,
                  const RowOrder& order = Same);
  void AddRows(Role role, int layer, LinearRows rows);
  void AddTaps(Role role, int i, std::vector<float> by_channel);
  void AddLayer(const LayerWeights& w, int i);
  void AddAttention(const LayerWeights& w, int i);
  void AddDense(const MlpWeights& mlp, int i);
  void AddMixture(const LayerWeights& w, int i);
  void AddSharedExpert(const LayerWeights& w, int i);
  void AddRopeFactors();

  // gguf_mixer_tensors.cc
  void AddShortConv(const ShortConvWeights& w, int i);
  void AddDeltaNet(const DeltaNetWeights& w, int i);
  void AddValueColumns(std::string name, const WeightMatrix& w,
                       std::vector<int> order);
  void AddMamba2(const Mamba2Weights& w, int i);
  void AddLatent(const LatentWeights& w, int i);
  void AddLayerEmbedding();

  const LoadedModel& model_;
  const ModelConfig& config_;
  const Family& family_;
  const NameScheme names_;
  bool permute_ = false;
  std::vector<GgufTensorSource> out_;
};

// One matrix's rows, in order, to the sink; whatever its layout.
Result<void> WriteGgufRows(const WeightMatrix& w, std::int64_t n_rows,
                           const GgufTensorList::RowOrder& order,
                           const GgufSink& sink);
// Bytes of `n` numbers in a row.
std::size_t GgufRowBytes(DType dtype, std::int64_t n);

}  // namespace hearth
