// A small rotary model and its forward pass in double precision, written to be
// read, not to be fast: no cache, every position from scratch. KV storage is
// played through: keys and values of a position are seen by positions of later
// blocks as the format keeps them, by those of its own block as they are (when
// the format quantises).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "cache/kv_spec.h"
#include "model/weights.h"
#include "tensor/half.h"

namespace hearth {

struct ReferenceShape {
  int n_layers = 4;
  int n_heads = 4;
  int n_kv_heads = 2;
  int head_dim = 12;
  int d_mlp = 24;
  int vocab = 31;
  int context = 4096;
};

// Owns the weights' memory: keep it as long as the model is used.
class ReferenceModel {
 public:
  explicit ReferenceModel(const ReferenceShape& s, unsigned seed = 1)
      : rng_(seed) {
    ModelConfig& c = model.config;
    c.architecture = "llama";
    c.name = "reference";
    c.n_layers = s.n_layers;
    c.n_heads = s.n_heads;
    c.n_kv_heads = s.n_kv_heads;
    c.head_dim = s.head_dim;
    c.d_model = s.n_heads * s.head_dim;
    c.d_mlp = s.d_mlp;
    c.vocab_size = s.vocab;
    c.context_length = s.context;
    c.tied_head = true;
    c.attention_scale = static_cast<float>(
        1.0 / std::sqrt(double{static_cast<double>(s.head_dim)}));
    c.rope.rotary_dim = s.head_dim;
    for (int i = 0; i < s.head_dim / 2; ++i) {
      c.rope.inv_freq.push_back(
          static_cast<float>(std::pow(10000.0, -2.0 * i / s.head_dim)));
    }
    Weights& w = model.weights;
    w.token_embedding = Matrix(s.vocab, c.d_model, 1.0f);
    w.head.w = w.token_embedding;
    w.final_norm.weight = Norm(c.d_model);
    for (int i = 0; i < s.n_layers; ++i) {
      LayerWeights layer;
      layer.attention_norm.weight = Norm(c.d_model);
      layer.q.w = Matrix(c.d_model, c.d_model, 0.2f);
      layer.k.w = Matrix(s.n_kv_heads * s.head_dim, c.d_model, 0.2f);
      layer.v.w = Matrix(s.n_kv_heads * s.head_dim, c.d_model, 0.15f);
      layer.o.w = Matrix(c.d_model, c.d_model, 0.15f);
      layer.mlp_norm.weight = Norm(c.d_model);
      layer.mlp.gate.w = Matrix(s.d_mlp, c.d_model, 0.15f);
      layer.mlp.up.w = Matrix(s.d_mlp, c.d_model, 0.15f);
      layer.mlp.down.w = Matrix(c.d_model, s.d_mlp, 0.15f);
      w.layers.push_back(std::move(layer));
    }
  }

  // The second half attends to layer `anchor`.
  void ShareKv(int anchor) {
    model.config.kv_anchor = anchor;
    for (int i = anchor + 1; i < model.config.n_layers; ++i) {
      model.weights.layers[static_cast<std::size_t>(i)].k = {};
      model.weights.layers[static_cast<std::size_t>(i)].v = {};
    }
  }

  // Logits of every position, [ids.size()][vocab].
  std::vector<double> Logits(const std::vector<std::int32_t>& ids,
                             const KvSpec& spec) const;

  LoadedModel model;

 private:
  using Rows = std::vector<std::vector<double>>;

  WeightMatrix Matrix(int n_out, int n_in, float deviation) {
    std::normal_distribution<float> normal(0.0f, deviation);
    auto& values = memory_.emplace_back();
    for (int i = 0; i < n_out * n_in; ++i) values.push_back(normal(rng_));
    WeightMatrix w;
    w.n_out = n_out;
    w.n_in = n_in;
    w.data = reinterpret_cast<const std::byte*>(values.data());
    return w;
  }
  std::vector<float> Norm(int n) {
    std::normal_distribution<float> normal(1.0f, 0.1f);
    std::vector<float> values;
    for (int i = 0; i < n; ++i) values.push_back(normal(rng_));
    return values;
  }

  static std::vector<double> Times(const WeightMatrix& w,
                                   const std::vector<double>& x) {
    const auto* values = reinterpret_cast<const float*>(w.data);
    std::vector<double> y(static_cast<std::size_t>(w.n_out), 0.0);
    for (std::size_t n = 0; n < y.size(); ++n) {
      for (std::size_t k = 0; k < x.size(); ++k) {
        y[n] += double{values[n * x.size() + k]} * x[k];
      }
    }
    return y;
  }
  std::vector<double> Normalized(const NormWeights& norm,
                                 std::vector<double> x) const {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double scale =
        1.0 / std::sqrt(squares / static_cast<double>(x.size()) +
                        double{model.config.norm_eps});
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] *= scale * double{norm.weight[i]};
    }
    return x;
  }
  void Rotate(std::vector<double>& heads, int position) const {
    const auto dim = static_cast<std::size_t>(model.config.head_dim);
    for (std::size_t h = 0; h < heads.size(); h += dim) {
      for (std::size_t i = 0; i < dim / 2; ++i) {
        const double angle = position * double{model.config.rope.inv_freq[i]};
        const double a = heads[h + i], b = heads[h + i + dim / 2];
        heads[h + i] = a * std::cos(angle) - b * std::sin(angle);
        heads[h + i + dim / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }

  // --- Storage ---------------------------------------------------------------
  static double Rounded(KvFormat format, double x) {
    const auto f = static_cast<float>(x);
    if (format == KvFormat::kF16) return ToFloat(ToF16(f));
    if (format == KvFormat::kBF16) return ToFloat(ToBF16(f));
    return f;
  }
  // A row of numbers that share a scale and a zero, as they come back.
  static void Quantise(KvFormat format, std::vector<double*> row) {
    const double levels = format == KvFormat::kInt8 ? 255 : 15;
    double low = *row[0], high = *row[0];
    for (const double* x : row) {
      low = std::min(low, *x);
      high = std::max(high, *x);
    }
    // The zero below, the scale above what is needed, both float16.
    double zero = Rounded(KvFormat::kF16, low);
    while (zero > low) zero -= std::ldexp(1.0, std::ilogb(zero) - 11);
    zero = Rounded(KvFormat::kF16, zero);
    double scale = Rounded(KvFormat::kF16, (high - zero) / levels);
    if (scale < (high - zero) / levels) {
      scale = Rounded(
          KvFormat::kF16,
          scale + std::ldexp(1.0, std::max(-24, std::ilogb(scale) - 10)));
    }
    for (double* x : row) {
      const double code =
          std::clamp(std::nearbyint((*x - zero) / scale), 0.0, levels);
      *x = scale > 0 ? code * scale + zero : zero;
    }
  }
  // What later blocks see. rows: [position][heads * head_dim].
  Rows Kept(const Rows& rows, KvFormat format, bool keys,
            const KvSpec& spec) const {
    Rows kept = rows;
    if (!IsQuantised(format)) {
      for (auto& row : kept) {
        for (double& x : row) x = Rounded(format, x);
      }
      return kept;
    }
    const auto n = static_cast<std::size_t>(spec.block_tokens);
    const auto dim = static_cast<std::size_t>(spec.layer(0).key_dim);
    for (std::size_t first = 0; first + n <= kept.size(); first += n) {
      if (keys) {
        for (std::size_t c = 0; c < kept[first].size(); ++c) {
          std::vector<double*> channel;
          for (std::size_t t = first; t < first + n; ++t) {
            channel.push_back(&kept[t][c]);
          }
          Quantise(format, channel);
        }
      } else {
        for (std::size_t t = first; t < first + n; ++t) {
          for (std::size_t h = 0; h < kept[t].size(); h += dim) {
            std::vector<double*> head;
            for (std::size_t d = 0; d < dim; ++d)
              head.push_back(&kept[t][h + d]);
            Quantise(format, head);
          }
        }
      }
    }
    return kept;
  }

  // --- Layers ----------------------------------------------------------------
  // Of the newest layer that has its own: as they were computed, and as later
  // blocks see them.
  struct Kv {
    Rows keys, values, kept_keys, kept_values;
  };
  struct Sight {
    int window = 0;  // 0: none
    int n_sinks = 0;
  };
  // What the heads of position `t` make of queries `q`, [heads * head_dim].
  std::vector<double> AttendOne(const std::vector<double>& q, std::size_t t,
                                const Sight& sight, const KvSpec& spec,
                                const Kv& kv) const;
  void RunAttention(int i, const KvSpec& spec, Rows& x, Kv& kv) const;
  void RunMlp(const LayerWeights& layer, Rows& x) const;

  std::mt19937 rng_;
  std::vector<std::vector<float>> memory_;
};

inline std::vector<double> ReferenceModel::AttendOne(
    const std::vector<double>& q, std::size_t t, const Sight& sight,
    const KvSpec& spec, const Kv& kv) const {
  const ModelConfig& c = model.config;
  const auto dim = static_cast<std::size_t>(c.head_dim);
  const std::size_t group = static_cast<std::size_t>(c.n_heads) /
                            static_cast<std::size_t>(c.n_kv_heads);
  const auto position = static_cast<int>(t);
  std::vector<double> near = q, far = q;
  Rotate(near, position);
  Rotate(far, std::min(position, sight.n_sinks + sight.window - 1));
  const auto sees = [&](std::size_t j) {
    const int distance = position - static_cast<int>(j);
    return sight.window == 0 || distance < sight.window ||
           static_cast<int>(j) < sight.n_sinks;
  };
  const auto own_block = [&](std::size_t j) {
    const auto n = static_cast<std::size_t>(spec.block_tokens);
    return spec.quantised() && j / n == t / n;
  };
  std::vector<double> out(q.size(), 0.0);
  for (std::size_t h = 0; h < static_cast<std::size_t>(c.n_heads); ++h) {
    const std::size_t first = h / group * dim;
    std::vector<double> weight(t + 1, 0.0);
    double sum = 0;
    for (std::size_t j = 0; j <= t; ++j) {
      if (!sees(j)) continue;
      const auto& key = own_block(j) ? kv.keys[j] : kv.kept_keys[j];
      const auto& query = static_cast<int>(j) < sight.n_sinks ? far : near;
      double score = 0;
      for (std::size_t d = 0; d < dim; ++d) {
        score += query[h * dim + d] * key[first + d];
      }
      weight[j] = std::exp(score * double{c.attention_scale});
      sum += weight[j];
    }
    for (std::size_t j = 0; j <= t; ++j) {
      if (!sees(j)) continue;
      const auto& value = own_block(j) ? kv.values[j] : kv.kept_values[j];
      for (std::size_t d = 0; d < dim; ++d) {
        out[h * dim + d] += weight[j] / sum * value[first + d];
      }
    }
  }
  return out;
}

inline void ReferenceModel::RunAttention(int i, const KvSpec& spec, Rows& x,
                                         Kv& kv) const {
  const ModelConfig& c = model.config;
  const LayerWeights& layer = model.weights.layers[static_cast<std::size_t>(i)];
  const bool owns_kv = !layer.k.empty();
  Rows q;  // not rotated
  if (owns_kv) kv.keys.clear(), kv.values.clear();
  for (std::size_t t = 0; t < x.size(); ++t) {
    const auto normed = Normalized(layer.attention_norm, x[t]);
    q.push_back(Times(layer.q.w, normed));
    if (!owns_kv) continue;
    kv.keys.push_back(Times(layer.k.w, normed));
    Rotate(kv.keys.back(), static_cast<int>(t));
    kv.values.push_back(Times(layer.v.w, normed));
  }
  if (owns_kv) {
    kv.kept_keys = Kept(kv.keys, spec.layer(0).key_format, true, spec);
    kv.kept_values = Kept(kv.values, spec.layer(0).value_format, false, spec);
  }
  const int native = c.KindOf(i).window;
  const bool streams =
      c.stream_window > 0 && (native == 0 || native > c.stream_window);
  const Sight sight{.window = streams ? c.stream_window : native,
                    .n_sinks = streams ? c.sink_tokens : 0};
  for (std::size_t t = 0; t < x.size(); ++t) {
    const auto delta = Times(layer.o.w, AttendOne(q[t], t, sight, spec, kv));
    for (std::size_t k = 0; k < delta.size(); ++k) x[t][k] += delta[k];
  }
}

inline void ReferenceModel::RunMlp(const LayerWeights& layer, Rows& x) const {
  for (auto& row : x) {
    const auto normed = Normalized(layer.mlp_norm, row);
    auto gate = Times(layer.mlp.gate.w, normed);
    const auto up = Times(layer.mlp.up.w, normed);
    for (std::size_t k = 0; k < gate.size(); ++k) {
      gate[k] = gate[k] / (1.0 + std::exp(-gate[k])) * up[k];
    }
    const auto delta = Times(layer.mlp.down.w, gate);
    for (std::size_t k = 0; k < delta.size(); ++k) row[k] += delta[k];
  }
}

inline std::vector<double> ReferenceModel::Logits(
    const std::vector<std::int32_t>& ids, const KvSpec& spec) const {
  const auto* embedding =
      reinterpret_cast<const float*>(model.weights.token_embedding.data);
  const auto d_model = static_cast<std::size_t>(model.config.d_model);
  Rows x;
  for (const std::int32_t id : ids) {
    const float* row = embedding + static_cast<std::size_t>(id) * d_model;
    x.emplace_back(row, row + d_model);
  }
  Kv kv;
  for (int i = 0; i < model.config.n_layers; ++i) {
    RunAttention(i, spec, x, kv);
    RunMlp(model.weights.layers[static_cast<std::size_t>(i)], x);
  }
  std::vector<double> logits;
  for (const auto& row : x) {
    const auto y =
        Times(model.weights.head.w, Normalized(model.weights.final_norm, row));
    logits.insert(logits.end(), y.begin(), y.end());
  }
  return logits;
}

}  // namespace hearth
