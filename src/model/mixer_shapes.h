// How a layer mixes a token with those before it, and the shapes of the mixers
// that are not plain attention.
#pragma once

#include <cstdint>

namespace hearth {

enum class Mixer : std::uint8_t {
  kAttention = 0,
  kShortConv = 1,  // a gated causal convolution: LFM2
  kDeltaNet = 2,   // a gated delta net: Qwen 3.5, Qwen 3-Next
  kMamba2 = 3,     // a selective state space: Nemotron-H, Granite 4
  kNone = 4,       // the layer is its feed-forward half alone: Nemotron-H
  kAttentionAndMamba2 = 5,  // both read one norm and are added: Falcon-H1
};
constexpr bool Attends(Mixer mixer) {
  return mixer == Mixer::kAttention || mixer == Mixer::kAttentionAndMamba2;
}
constexpr bool HasMamba2(Mixer mixer) {
  return mixer == Mixer::kMamba2 || mixer == Mixer::kAttentionAndMamba2;
}

// The shapes of a model's delta nets. A value head has a matrix [key_dim]
// [value_dim] that every token decays and corrects.
struct DeltaNetShape {
  int n_key_heads = 0, n_value_heads = 0;
  int key_dim = 0, value_dim = 0;
  // Value head h reads key head h % n_key_heads; else heads are in groups, and
  // it reads h / (n_value_heads / n_key_heads).
  bool tiled = false;

  int KeyHeadOf(int value_head) const {
    return tiled ? value_head % n_key_heads
                 : value_head / (n_value_heads / n_key_heads);
  }
  // Numbers that the convolution sees of a token: queries, keys, values.
  int n_channels() const {
    return 2 * n_key_heads * key_dim + n_value_heads * value_dim;
  }

  friend bool operator==(const DeltaNetShape&, const DeltaNetShape&) = default;
};

// The shapes of a model's Mamba-2 mixers. A head has a matrix [n_state]
// [head_dim] that every token decays and adds to; head h reads what group h /
// (n_heads / n_groups) writes and asks.
struct Mamba2Shape {
  int n_heads = 0, head_dim = 0;  // n_heads 0: the model has none
  int n_groups = 0, n_state = 0;
  bool norm = true;  // of each group's results, behind their gates

  int GroupOf(int head) const { return head / (n_heads / n_groups); }
  int width() const { return n_heads * head_dim; }
  // Numbers that the convolution sees of a token: inputs, and what each group
  // writes and asks.
  int n_channels() const { return width() + 2 * n_groups * n_state; }
  // Those that a token's projection gives: gates, channels, time steps.
  int n_projected() const { return width() + n_channels() + n_heads; }

  friend bool operator==(const Mamba2Shape&, const Mamba2Shape&) = default;
};

// Multi-head latent attention. Keys and values of all heads are made from
// kv_rank numbers of a token, and these are what is kept, with rope_dim
// numbers that are rotated: one KV head, whose values are the first kv_rank
// numbers of its keys. Queries are turned into its space.
struct LatentShape {
  int kv_rank = 0;                 // 0: the model has plain attention
  int q_rank = 0;                  // 0: queries come straight from the stream
  int nope_dim = 0, rope_dim = 0;  // a query head's numbers
  int value_dim = 0;               // a head's result

  int kept_dim() const { return kv_rank + rope_dim; }
  int query_dim() const { return nope_dim + rope_dim; }

  friend bool operator==(const LatentShape&, const LatentShape&) = default;
};

}  // namespace hearth
