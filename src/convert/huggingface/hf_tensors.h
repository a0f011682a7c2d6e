// The weights of a model as the tensors of a Hugging Face directory.
// hf_tensors.cc: the list, attention and feed-forward halves;
// hf_mixer_tensors.cc: the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "convert/huggingface/hf_export.h"
#include "convert/linear_rows.h"
#include "tensor/dtype.h"

namespace hearth {

struct HfTensor {
  std::string name;
  DType type;
  std::vector<std::uint64_t> shape;
  std::function<std::vector<std::byte>()> read;

  std::uint64_t bytes() const {
    std::uint64_t n = static_cast<std::uint64_t>(InfoOf(type).block_bytes);
    for (const std::uint64_t d : shape) n *= d;
    return n;
  }
};

class HfTensorList {
 public:
  // Both outlive the object, the model also what Run gives.
  HfTensorList(const LoadedModel& model, const HfDescription& description)
      : model_(model),
        c_(model.config),
        family_(*description.family),
        names_(description.family->hf_names),
        plan_(description.plan) {}

  std::vector<HfTensor> Run();

 private:
  static std::uint64_t U(std::int64_t n) {
    return static_cast<std::uint64_t>(n);
  }
  void Floats(std::string name, std::vector<float> values,
              std::vector<std::uint64_t> shape);
  void Vector(std::string name, const std::vector<float>& values);
  void Vector(Role role, int layer, const std::vector<float>& values) {
    Vector(WeightName(names_, role, layer), values);
  }
  void NormWeight(Role role, int layer, std::vector<float> weight);
  void Norm(Role role, int layer, const NormWeights& norm);
  void Matrix(std::string name, LinearRows rows, bool transposed);
  void Layer(Role role, int layer, const LinearRows& rows, int expert = 0);
  // One matrix of every expert: a tensor each, or one for all.
  void Experts(Role role, int layer, std::vector<LinearRows> experts);
  void Attention(const LayerWeights& w, int i);
  void Dense(const MlpWeights& mlp, int i);
  void Router(const LayerWeights& w, int i);
  void MixtureOfExperts(const LayerWeights& w, int i);
  void SharedExpert(const LayerWeights& w, int i);
  void FeedForward(const LayerWeights& w, int i);
  void Layer(const LayerWeights& w, int i);

  // hf_mixer_tensors.cc
  void Taps(Role role, int i, std::vector<float> by_channel);
  void ShortConv(const ShortConvWeights& w, int i);
  void DeltaNet(const DeltaNetWeights& w, int i);
  void ValueColumns(std::string name, LinearRows rows, std::vector<int> order);
  void Mamba2(const Mamba2Weights& w, int i);
  void Latent(const LayerWeights& w, int i);
  void LayerEmbedding();

  const LoadedModel& model_;
  const ModelConfig& c_;
  const Family& family_;
  const NameScheme names_;
  const WeightPlan& plan_;
  Linear embedding_, layer_embedding_;
  std::vector<HfTensor> out_;
};

}  // namespace hearth
