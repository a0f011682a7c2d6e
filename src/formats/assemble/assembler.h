// What turns a configuration and a set of tensors into weights. Its parts:
// assembler.cc (matrices, norms and whole layers), attention.cc,
// feed_forward.cc, mixers.cc.
#pragma once

#include <string>
#include <vector>

#include "formats/assemble/assemble.h"

namespace hearth {

// Errors as TensorSet's. REQUIRES: CheckConfig(config) is fine.
struct Assembler {
  const ModelConfig& config;
  const WeightPlan& plan;
  const NameScheme& names;
  TensorSet& tensors;

  Result<std::vector<float>> NormWeight(Role role, int layer,
                                        std::int64_t n) const;
  Result<NormWeights> Norm(Role role, int layer) const;
  // The tensor of a weight or a bias without one, of `n` numbers however they
  // are laid out: some writers give vectors more dimensions.
  Result<std::vector<float>> Vector(Role role, int layer, std::int64_t n) const;
  Result<std::vector<float>> Bias(Role role, int layer, std::int64_t n) const;
  Result<Linear> LinearLayer(Role role, int layer, std::int64_t n_out,
                             std::int64_t n_in, bool with_bias,
                             int expert = 0) const;
  Result<LayerWeights> Layer(int i) const;

  // attention.cc
  Result<void> AddAttention(int i, LayerWeights& w) const;
  Result<void> AddLatent(int i, LayerWeights& w) const;
  Result<void> AddLatentHeads(int i, LatentWeights& w) const;
  // feed_forward.cc
  Result<MlpWeights> Dense(int i) const;
  Result<void> AddExperts(int i, LayerWeights& w) const;
  Result<void> AddRouter(int i, LayerWeights& w) const;
  Result<MlpWeights> SharedExpert(int i) const;
  Result<std::vector<MlpWeights>> Experts(int i) const;
  Result<std::vector<Linear>> ExpertLayers(Role role, int layer,
                                           std::int64_t n_out,
                                           std::int64_t n_in) const;
  // mixers.cc
  Result<void> AddMixer(int i, LayerWeights& w) const;
  Result<ConvWeights> Convolution(Role role, int layer,
                                  std::int64_t n_channels) const;
  Result<ShortConvWeights> ShortConv(int i) const;
  Result<DeltaNetWeights> DeltaNet(int i) const;
  Result<Mamba2Weights> Mamba2(int i) const;
};

// The part of CheckConfig that is about mixers. kCorrupt.
Result<void> CheckMixers(const ModelConfig& config, const std::string& label);

}  // namespace hearth
