#include "model/identity.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace hearth {
namespace {

// Large tensors are cut so that threads share them. The cuts are fixed: the
// digest must not depend on the number of threads.
constexpr std::size_t kChunkBytes = std::size_t{8} << 20;

// Parts of one span, in order. An empty span has none.
void CutInto(ByteSpan bytes, std::vector<ByteSpan>& chunks) {
  for (std::size_t i = 0; i < bytes.size(); i += kChunkBytes) {
    chunks.push_back(bytes.subspan(i, std::min(kChunkBytes, bytes.size() - i)));
  }
}

std::size_t ChunksOf(ByteSpan bytes) {
  return (bytes.size() + kChunkBytes - 1) / kChunkBytes;
}

void AddFloat(Sha256& sha, float value) {
  sha.Field(std::uint64_t{std::bit_cast<std::uint32_t>(value)});
}

// The structured bindings below name every field of their struct, so that a
// field which someone adds does not compile here until it is named too: hashed
// when the forward pass reads it, and only for models that use it when there
// are ids from before it.

void AddRope(Sha256& sha, const RopeConfig& rope) {
  const auto& [rotary_dim, interleaved, inv_freq, cos_sin_factor, long_inv_freq,
               scaling] = rope;
  sha.Field(static_cast<std::uint64_t>(rotary_dim));
  sha.Field(std::uint64_t{interleaved});
  sha.Field(std::uint64_t{inv_freq.size()});
  for (const float f : inv_freq) AddFloat(sha, f);
  AddFloat(sha, cos_sin_factor);
  // Decided already: UseForContext, which inv_freq shows.
  static_cast<void>(long_inv_freq);
  static_cast<void>(scaling);
}

// Of models whose layers differ in them. Nothing for others, whose ids are
// older than these fields.
void AddOwnShapes(Sha256& sha, const ModelConfig& c) {
  const bool differ = std::any_of(
      c.layer_kinds.begin(), c.layer_kinds.end(), [](const LayerKind& kind) {
        const auto& [mixer, window, rope, n_kv_heads, head_dim, kv_source,
                     values_from_keys, ffn, d_mlp] = kind;
        static_cast<void>(mixer);   // AddMixers
        static_cast<void>(window);  // AddConfig has these two of every model
        static_cast<void>(rope);
        static_cast<void>(values_from_keys);  // AddLayerChoices has these
        static_cast<void>(ffn);
        static_cast<void>(d_mlp);
        return n_kv_heads > 0 || head_dim > 0 || kv_source >= 0;
      });
  if (!differ) return;
  sha.Field("layer shapes");
  for (int i = 0; i < c.n_layers; ++i) {
    for (const int number : {c.KvHeads(i), c.HeadDim(i), c.KvSourceOf(i)}) {
      sha.Field(static_cast<std::uint64_t>(number));
    }
  }
}

// Of models whose layers differ in more, likewise.
void AddLayerChoices(Sha256& sha, const ModelConfig& c) {
  const bool differ = std::any_of(
      c.layer_kinds.begin(), c.layer_kinds.end(), [](const LayerKind& kind) {
        return kind.values_from_keys || kind.ffn != Ffn::kUsual ||
               kind.d_mlp > 0;
      });
  if (!differ) return;
  sha.Field("layer choices");
  for (int i = 0; i < c.n_layers; ++i) {
    const LayerKind kind = c.KindOf(i);
    for (const int number : {int{kind.values_from_keys},
                             static_cast<int>(kind.ffn), c.MlpWidth(i)}) {
      sha.Field(static_cast<std::uint64_t>(number));
    }
  }
}

// What single families do beside the usual, likewise.
void AddOwnParts(Sha256& sha, const ModelConfig& c) {
  if (c.value_norm) sha.Field("value norm");
  if (c.d_layer_input > 0) {
    sha.Field("layer input").Field(static_cast<std::uint64_t>(c.d_layer_input));
  }
  if (c.dense_beside_experts) sha.Field("dense beside experts");
  if (c.d_shared_expert > 0 && !c.shared_expert_gate) {
    sha.Field("shared expert without gate");
  }
  if (c.router_rules != RouterRules{}) {
    const auto& [bias, normalize, scale, n_groups, n_groups_used,
                 groups_by_two] = c.router_rules;
    sha.Field("router rules");
    for (const int number : {int{bias}, int{normalize}, n_groups, n_groups_used,
                             int{groups_by_two}}) {
      sha.Field(static_cast<std::uint64_t>(number));
    }
    AddFloat(sha, scale);
  }
  if (c.part_scales != PartScales{}) {
    const auto& [attention_out, mamba_out, mlp_gate, mlp_down, mamba] =
        c.part_scales;
    sha.Field("part scales");
    for (const float scale : {attention_out, mamba_out, mlp_gate, mlp_down}) {
      AddFloat(sha, scale);
    }
    for (const float scale : mamba) AddFloat(sha, scale);
  }
  if (c.latent.kv_rank > 0) {
    const auto& [kv_rank, q_rank, nope_dim, rope_dim, value_dim] = c.latent;
    sha.Field("latent attention");
    for (const int size : {kv_rank, q_rank, nope_dim, rope_dim, value_dim}) {
      sha.Field(static_cast<std::uint64_t>(size));
    }
  }
}

// Of models that mix tokens with more than plain attention, likewise.
void AddMixers(Sha256& sha, const ModelConfig& c) {
  const auto& [beta, tokens] = c.query_growth;
  if (beta != 0) {
    sha.Field("query growth");
    AddFloat(sha, beta);
    sha.Field(static_cast<std::uint64_t>(tokens));
  }
  if (c.attention_gate) sha.Field("attention gate");
  if (c.d_shared_expert > 0) {
    sha.Field("shared expert")
        .Field(static_cast<std::uint64_t>(c.d_shared_expert));
  }
  if (!c.HasStates()) return;
  sha.Field("mixers");
  for (int i = 0; i < c.n_layers; ++i) {
    sha.Field(static_cast<std::uint64_t>(c.KindOf(i).mixer));
  }
  const auto& [n_key_heads, n_value_heads, key_dim, value_dim, tiled] =
      c.delta_net;
  for (const int number : {c.conv_taps, n_key_heads, n_value_heads, key_dim,
                           value_dim, int{tiled}}) {
    sha.Field(static_cast<std::uint64_t>(number));
  }
  if (c.mamba2 == Mamba2Shape{}) return;
  const auto& [n_heads, head_dim, n_groups, n_state, norm] = c.mamba2;
  sha.Field("mamba2");
  for (const int number : {n_heads, head_dim, n_groups, n_state, int{norm}}) {
    sha.Field(static_cast<std::uint64_t>(number));
  }
}

void AddConfig(Sha256& sha, const ModelConfig& c) {
  const auto& [architecture, name, n_layers, d_model, n_heads, n_kv_heads,
               head_dim, d_mlp, vocab_size, context_length, norm,
               norm_placement, norm_eps, mlp, learned_positions, tied_head,
               rope, local_rope, layer_kinds, attention_scale,
               attention_softcap, attention_sinks, qk_norm, value_norm,
               attention_gate, query_growth, delta_net, mamba2, conv_taps,
               latent, d_layer_input, embedding_scale, residual_scale,
               logit_scale, logit_softcap, part_scales, n_experts,
               n_experts_used, d_expert, d_shared_expert, shared_expert_gate,
               router, router_rules, dense_beside_experts, sink_tokens,
               stream_window, kv_anchor] = c;
  sha.Field(architecture);
  for (const int size :
       {n_layers, d_model, n_heads, n_kv_heads, head_dim, d_mlp, vocab_size,
        n_experts, n_experts_used, d_expert}) {
    sha.Field(static_cast<std::uint64_t>(size));
  }
  for (const auto choice :
       {static_cast<int>(norm), static_cast<int>(norm_placement),
        static_cast<int>(mlp), static_cast<int>(learned_positions),
        static_cast<int>(tied_head), static_cast<int>(attention_sinks),
        static_cast<int>(qk_norm), static_cast<int>(router)}) {
    sha.Field(static_cast<std::uint64_t>(choice));
  }
  for (const float number :
       {norm_eps, attention_scale, attention_softcap, embedding_scale,
        residual_scale, logit_scale, logit_softcap}) {
    AddFloat(sha, number);
  }
  AddRope(sha, rope);
  AddRope(sha, local_rope);
  for (int i = 0; i < n_layers; ++i) {
    const LayerKind kind = c.KindOf(i);  // layer_kinds, or the default
    sha.Field(static_cast<std::uint64_t>(kind.window));
    sha.Field(static_cast<std::uint64_t>(kind.rope));
  }
  for (const int number : {sink_tokens, stream_window, kv_anchor}) {
    sha.Field(static_cast<std::uint64_t>(number));
  }
  AddOwnShapes(sha, c);
  AddMixers(sha, c);
  AddLayerChoices(sha, c);
  AddOwnParts(sha, c);
  static_cast<void>(value_norm);
  static_cast<void>(attention_gate);
  static_cast<void>(query_growth);
  static_cast<void>(delta_net);
  static_cast<void>(mamba2);
  static_cast<void>(conv_taps);
  static_cast<void>(latent);
  static_cast<void>(d_layer_input);
  static_cast<void>(part_scales);
  static_cast<void>(d_shared_expert);
  static_cast<void>(shared_expert_gate);
  static_cast<void>(router_rules);
  static_cast<void>(dense_beside_experts);
  // What a model is called and how far it was trained change no key.
  static_cast<void>(name);
  static_cast<void>(context_length);
  static_cast<void>(layer_kinds);
}

}  // namespace

Digest ContentDigest(const LoadedModel& model, ThreadPool& pool,
                     const BytesRead& on_read) {
  // By name: neither the order in a file nor the split into shards matters.
  std::vector<const TensorRecord*> records;
  for (const TensorRecord& record : model.tensors) records.push_back(&record);
  std::sort(records.begin(), records.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });

  std::vector<ByteSpan> chunks;
  for (const TensorRecord* record : records) {
    CutInto(record->bytes, chunks);
    CutInto(record->scales, chunks);
  }
  const std::uint64_t n_bytes = std::transform_reduce(
      chunks.begin(), chunks.end(), std::uint64_t{0}, std::plus<>(),
      [](ByteSpan chunk) { return std::uint64_t{chunk.size()}; });
  std::vector<Checksum128Value> sums(chunks.size());
  std::atomic<std::uint64_t> n_read{0};
  pool.ParallelFor(static_cast<std::int64_t>(chunks.size()),
                   [&](std::int64_t at, int thread) {
                     const auto i = static_cast<std::size_t>(at);
                     sums[i] = Checksum128(chunks[i]);
                     const std::uint64_t done = n_read += chunks[i].size();
                     // One thread tells for all.
                     if (thread == 0 && on_read) on_read(done, n_bytes);
                   });

  Sha256 sha;
  sha.Field("hearth model content 1").Field(std::uint64_t{records.size()});
  auto sum = sums.begin();
  const auto add_bytes = [&](ByteSpan bytes) {
    sha.Field(std::uint64_t{bytes.size()});
    for (std::size_t i = 0; i < ChunksOf(bytes); ++i, ++sum) {
      sha.Field(sum->low).Field(sum->high);
    }
  };
  for (const TensorRecord* record : records) {
    sha.Field(record->name).Field(record->type);
    sha.Field(std::uint64_t{record->shape.size()});
    for (const std::uint64_t d : record->shape) sha.Field(d);
    add_bytes(record->bytes);
    add_bytes(record->scales);
  }
  return sha.Finish();
}

Digest AdaptedContent(const Digest& content,
                      const std::vector<AppliedAdapter>& adapters) {
  if (adapters.empty()) return content;
  Sha256 sha;
  sha.Field("hearth adapted content 1").Field(content);
  sha.Field(std::uint64_t{adapters.size()});
  for (const AppliedAdapter& adapter : adapters) {
    sha.Field(adapter.content);
    AddFloat(sha, adapter.scale);
  }
  return sha.Finish();
}

Digest ModelId(const ModelConfig& c, const Digest& content,
               const Numerics& numerics) {
  Sha256 sha;
  sha.Field("hearth model id 3").Field(std::uint64_t{numerics.version});
  sha.Field(content);
  AddConfig(sha, c);
  if (!numerics.profile.empty()) {
    sha.Field("numerics").Field(numerics.profile);
  }
  return sha.Finish();
}

}  // namespace hearth
