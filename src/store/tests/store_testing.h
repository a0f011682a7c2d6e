// Small blocks for the store's tests: a tiny spec, and payloads whose every
// byte depends on the tokens, so that a wrong byte is a wrong answer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/files/vault.h"
#include "cache/kv_layout.h"
#include "store/kv_store.h"

namespace hearth {

inline KvSpec TinySpec(int block_tokens = 16) {
  return UniformKv{.n_layers = 2,
                   .n_heads = 1,
                   .head_dim = 4,
                   .key_format = KvFormat::kF16,
                   .value_format = KvFormat::kF16,
                   .block_tokens = block_tokens};
}

inline KvIdentity TinyIdentity(const KvSpec& spec,
                               const std::string& model = "tiny") {
  KvIdentity identity;
  identity.model_id = Sha256().Field(model).Finish();
  identity.format_id = FormatId(spec);
  identity.model_name = model;
  return identity;
}

inline std::vector<std::int32_t> TinyTokens(int n, std::int32_t first = 100) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(first + i * 7);
  return tokens;
}

// What the model would have computed for this block: a token's keys and values
// depend on it and on what stands before it, and on nothing behind it.
// REQUIRES: the spec is not quantised.
inline std::vector<std::byte> TinyPayload(
    const KvSpec& spec, const Digest& parent,
    std::span<const std::int32_t> tokens) {
  const KvLayout layout(spec, static_cast<int>(tokens.size()));
  std::vector<std::byte> payload(layout.block_bytes());
  const auto put = [&](std::size_t at, std::uint64_t& state, KvFormat format) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(payload.data() + at, &state,
                static_cast<std::size_t>(KvRowBytes(format, 1)));
  };
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const Digest id = ChildId(parent, tokens.first(t + 1));
    std::uint64_t state = LoadLe<std::uint64_t>(id.bytes.data());
    for (int i = 0; i < spec.n_layers(); ++i) {
      const KvLayer& shape = spec.layer(i);
      const KvLayerLayout& layer = layout.layer(i);
      const auto at = [&](std::size_t tile, KvFormat format, std::size_t n) {
        return layout.offset(i) + tile +
               static_cast<std::size_t>(
                   KvRowBytes(format, static_cast<std::int64_t>(n)));
      };
      const auto key_dim = static_cast<std::size_t>(shape.key_dim);
      const auto value_dim = static_cast<std::size_t>(shape.value_dim);
      for (int head = 0; head < shape.n_heads; ++head) {
        for (std::size_t d = 0; d < std::max(key_dim, value_dim); ++d) {
          if (d < key_dim) {
            put(at(layer.key_tile(head), layer.key_format(),
                   d * tokens.size() + t),
                state, layer.key_format());
          }
          if (d < value_dim) {
            put(at(layer.value_tile(head), layer.value_format(),
                   t * value_dim + d),
                state, layer.value_format());
          }
        }
      }
    }
  }
  return payload;
}

// All blocks of a prompt, ready to be saved.
struct TinyBlock {
  Digest parent, id;
  std::span<const std::int32_t> tokens;
  ByteSpan payload;
};

struct TinyPrompt {
  TinyPrompt(const KvIdentity& of, const KvSpec& shape,
             std::vector<std::int32_t> ids)
      : identity(of),
        spec(shape),
        tokens(std::move(ids)),
        chain(identity, tokens, spec.block_tokens) {
    payloads.reserve(chain.size());
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const BlockRef block = chain[i];
      payloads.push_back(TinyPayload(spec, block.parent, block.tokens));
      blocks.push_back({block.parent, block.id, block.tokens, payloads[i]});
    }
  }
  TinyPrompt(const TinyPrompt&) = delete;

  Result<void> SaveBlock(KvStore& store, std::size_t index) const {
    return store.SaveBlocks(chain, spec, index,
                            std::span(&blocks[index].payload, 1));
  }
  // The first `n` in one call.
  Result<void> SaveBlocks(KvStore& store, std::size_t n) const {
    const std::vector<ByteSpan> all(payloads.begin(), payloads.end());
    return store.SaveBlocks(chain, spec, 0, std::span(all).first(n));
  }
  Result<void> SaveBlocks(KvStore& store) const {
    return SaveBlocks(store, blocks.size());
  }
  // Saves as the engine does: blocks, then the manifest.
  Result<void> SaveTo(KvStore& store, const std::string& preview = "") const {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      HEARTH_TRY(SaveBlock(store, i));
    }
    return store.SaveManifest(chain, spec, preview);
  }

  KvIdentity identity;
  KvSpec spec;
  std::vector<std::int32_t> tokens;
  BlockChain chain;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<TinyBlock> blocks;
};

inline StoreMatch LookUp(KvStore& store, const KvIdentity& identity,
                         const KvSpec& spec,
                         std::span<const std::int32_t> tokens) {
  return store.Lookup(BlockChain(identity, tokens, spec.block_tokens), spec);
}

// Through a store of one file.
inline Result<void> SaveBundle(const std::string& path,
                               const TinyPrompt& prompt,
                               FileOps* file_ops = nullptr,
                               std::shared_ptr<const Vault> vault = nullptr) {
  StoreOptions options;
  options.file_ops = file_ops;
  options.vault = std::move(vault);
  HEARTH_ASSIGN(const auto store, KvStore::OpenFile(path, options));
  return prompt.SaveTo(*store);
}

inline StoreMatch LookupBundle(const std::string& path,
                               const KvIdentity& identity, const KvSpec& spec,
                               std::span<const std::int32_t> tokens,
                               std::shared_ptr<const Vault> vault = nullptr) {
  StoreOptions options;
  options.vault = std::move(vault);
  const auto store = KvStore::OpenFile(path, options);
  if (store.ok()) return LookUp(**store, identity, spec, tokens);
  StoreMatch refused;  // before any work
  refused.miss_reason = store.error().message;
  return refused;
}

// Whether every byte of the match is what the model would have computed for a
// prefix of `tokens`, and the counts agree.
inline bool IsExact(const StoreMatch& match, const KvIdentity& identity,
                    const KvSpec& spec, std::span<const std::int32_t> tokens) {
  Digest parent = RootId(identity);
  std::size_t at = 0;
  for (const StoredBlock& block : match.blocks) {
    const auto n = static_cast<std::size_t>(block.n_tokens);
    if (n == 0 || n > tokens.size() - at) return false;
    const std::vector<std::byte> right =
        TinyPayload(spec, parent, tokens.subspan(at, n));
    parent = ChildId(parent, tokens.subspan(at, n));
    if (block.id != parent) return false;
    if (!std::equal(right.begin(), right.end(), block.payload.begin(),
                    block.payload.end())) {
      return false;
    }
    at += n;
  }
  return at == static_cast<std::size_t>(match.n_tokens);
}

}  // namespace hearth
