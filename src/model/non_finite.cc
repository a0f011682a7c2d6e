#include "model/non_finite.h"

#include <string>
#include <string_view>

#include "kernels/kernels.h"

namespace hearth {
namespace {

bool AreFinite(const std::vector<float>& values) {
  return ActiveKernels().all_finite(values.data(),
                                    static_cast<std::int64_t>(values.size()));
}

// Looks through weights in the order in which a step uses them, for the first
// that is not finite.
class Search {
 public:
  explicit Search(const LoadedModel& model) : model_(model) {}

  void Embedding(const std::vector<std::int32_t>& tokens) {
    const WeightMatrix& w = model_.weights.token_embedding;
    std::vector<float> row(static_cast<std::size_t>(w.n_in));
    for (const std::int32_t token : tokens) {
      ActiveKernels().dequantize_row(w, token, row.data());
      if (!AreFinite(row)) Found(w, "the token embedding");
    }
    Vector(model_.weights.position_embedding, "the position embedding");
    Matrix(model_.weights.layer_projection, "the layers' input weights");
  }

  void Layer(const LayerWeights& w) {
    Norm(w.attention_norm, "the norm before attention");
    Matrix(w.q, "the query weights");
    Matrix(w.k, "the key weights");
    Matrix(w.v, "the value weights");
    Matrix(w.qkv, "the query, key and value weights");
    Vector(w.q_norm, "the norm of queries");
    Vector(w.k_norm, "the norm of keys");
    Vector(w.sinks, "the attention sinks");
    Latent(w.latent);
    Matrix(w.o, "the attention's output weights");
    Mamba2(w.mamba2);
    Norm(w.post_attention_norm, "the norm behind attention");
    Norm(w.mlp_norm, "the norm before the MLP");
    Matrix(w.router, "the router weights");
    Mlp(w.mlp);
    for (const MlpWeights& expert : w.experts) Mlp(expert);
    Mlp(w.shared_expert);
    Norm(w.post_mlp_norm, "the norm behind the MLP");
    Matrix(w.input.gate, "the gate weights of the layer's input");
    Matrix(w.input.up, "the weights of the layer's input");
    Norm(w.input.norm, "the norm of the layer's input");
    Vector(w.scale, "the layer's scale");
  }

  void Head() {
    Norm(model_.weights.final_norm, "the final norm");
    Matrix(model_.weights.head, "the output head");
  }

  // Empty: all are finite.
  const std::string& found() const { return found_; }

 private:
  void Found(const WeightMatrix& w, std::string_view role) {
    if (!found_.empty()) return;
    found_ = role;
    for (const TensorRecord& record : model_.tensors) {
      const std::byte* begin = record.bytes.data();
      if (w.data >= begin && w.data < begin + record.bytes.size()) {
        found_ = "tensor " + record.name;
        return;
      }
    }
  }

  void Vector(const std::vector<float>& values, std::string_view role) {
    if (found_.empty() && !AreFinite(values)) found_ = role;
  }
  void Norm(const NormWeights& norm, std::string_view role) {
    Vector(norm.weight, role);
    Vector(norm.bias, role);
  }
  void Matrix(const Linear& linear, std::string_view role) {
    if (linear.empty() || !found_.empty()) return;
    // Every element once, whatever the layout: as if rows were stored.
    const WeightMatrix& w = linear.w;
    std::vector<float> row(static_cast<std::size_t>(w.n_in));
    for (std::int64_t r = 0; r < w.n_out && found_.empty(); ++r) {
      ActiveKernels().dequantize_row(w, r, row.data());
      if (!AreFinite(row)) Found(w, role);
    }
    Vector(linear.bias, role);
  }
  void Mlp(const MlpWeights& mlp) {
    Matrix(mlp.gate, "the gate weights");
    Matrix(mlp.up, "the up weights");
    Matrix(mlp.gate_up, "the gate and up weights");
    Matrix(mlp.down, "the down weights");
  }

  void Latent(const LatentWeights& w) {
    Matrix(w.q_down, "the query weights");
    Matrix(w.kv_down, "the key and value weights");
    for (const Linear& head : w.keys) Matrix(head, "the key weights");
    for (const Linear& head : w.values) Matrix(head, "the value weights");
  }
  void Mamba2(const Mamba2Weights& w) {
    Matrix(w.in, "the mixer's input weights");
    Vector(w.conv.taps, "the mixer's convolution");
    Vector(w.decay_scale, "the mixer's decays");
    Vector(w.step_bias, "the mixer's time steps");
    Vector(w.norm, "the mixer's norm");
    Matrix(w.out, "the mixer's output weights");
  }

  const LoadedModel& model_;
  std::string found_;
};

}  // namespace

Error NonFiniteError(const LoadedModel& model, int layer,
                     const std::vector<std::int32_t>& tokens) {
  const bool at_head = layer == model.config.n_layers;
  const std::string place =
      at_head ? "the logits" : "layer " + std::to_string(layer);
  Search search(model);
  if (layer == 0) search.Embedding(tokens);
  if (at_head) {
    search.Head();
  } else {
    search.Layer(model.weights.layers[static_cast<std::size_t>(layer)]);
  }
  if (!search.found().empty()) {
    return {Code::kCorrupt,
            model.path + ": " + search.found() + " (" + place +
                ") holds numbers that are NaN or infinite, so no token can be "
                "chosen; the file is damaged or was made wrongly: get or "
                "convert it again"};
  }
  return {Code::kCorrupt,
          model.path + ": " + place +
              " gave numbers that are NaN or infinite for these tokens, from "
              "weights that are finite; use the model in another number "
              "format, or convert it again"};
}

}  // namespace hearth
