#include "model/identity.h"

#include <algorithm>
#include <bit>
#include <cstdint>
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

void AddRope(Sha256& sha, const RopeConfig& rope) {
  sha.Field(static_cast<std::uint64_t>(rope.rotary_dim));
  sha.Field(std::uint64_t{rope.interleaved});
  sha.Field(std::uint64_t{rope.inv_freq.size()});
  for (const float f : rope.inv_freq) AddFloat(sha, f);
  AddFloat(sha, rope.cos_sin_factor);
}

// Of models whose layers differ in them. Nothing for others, whose ids are
// older than these fields.
void AddOwnShapes(Sha256& sha, const ModelConfig& c) {
  const bool differ = std::any_of(
      c.layer_kinds.begin(), c.layer_kinds.end(), [](const LayerKind& kind) {
        return kind.n_kv_heads > 0 || kind.head_dim > 0 || kind.kv_source >= 0;
      });
  if (!differ) return;
  sha.Field("layer shapes");
  for (int i = 0; i < c.n_layers; ++i) {
    for (const int number : {c.KvHeads(i), c.HeadDim(i), c.KvSourceOf(i)}) {
      sha.Field(static_cast<std::uint64_t>(number));
    }
  }
}

}  // namespace

Digest ContentDigest(const LoadedModel& model, ThreadPool& pool) {
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
  std::vector<Checksum128Value> sums(chunks.size());
  pool.ParallelFor(static_cast<std::int64_t>(chunks.size()),
                   [&](std::int64_t i, int) {
                     sums[static_cast<std::size_t>(i)] =
                         Checksum128(chunks[static_cast<std::size_t>(i)]);
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

Digest ModelId(const ModelConfig& c, const Digest& content,
               const Numerics& numerics) {
  Sha256 sha;
  sha.Field("hearth model id 3").Field(std::uint64_t{numerics.version});
  sha.Field(content).Field(c.architecture);
  for (const int size :
       {c.n_layers, c.d_model, c.n_heads, c.n_kv_heads, c.head_dim, c.d_mlp,
        c.vocab_size, c.n_experts, c.n_experts_used, c.d_expert}) {
    sha.Field(static_cast<std::uint64_t>(size));
  }
  for (const auto choice :
       {static_cast<int>(c.norm), static_cast<int>(c.norm_placement),
        static_cast<int>(c.mlp), static_cast<int>(c.learned_positions),
        static_cast<int>(c.tied_head), static_cast<int>(c.attention_sinks),
        static_cast<int>(c.qk_norm), static_cast<int>(c.router)}) {
    sha.Field(static_cast<std::uint64_t>(choice));
  }
  for (const float number :
       {c.norm_eps, c.attention_scale, c.attention_softcap, c.embedding_scale,
        c.residual_scale, c.logit_scale, c.logit_softcap}) {
    AddFloat(sha, number);
  }
  AddRope(sha, c.rope);
  AddRope(sha, c.local_rope);
  for (int i = 0; i < c.n_layers; ++i) {
    const LayerKind kind = c.KindOf(i);
    sha.Field(static_cast<std::uint64_t>(kind.window));
    sha.Field(static_cast<std::uint64_t>(kind.rope));
  }
  for (const int number : {c.sink_tokens, c.stream_window, c.kv_anchor}) {
    sha.Field(static_cast<std::uint64_t>(number));
  }
  AddOwnShapes(sha, c);
  if (!numerics.profile.empty()) {
    sha.Field("numerics").Field(numerics.profile);
  }
  return sha.Finish();
}

}  // namespace hearth
