// Small blocks for the store's tests: a tiny spec, and payloads whose every
// byte depends on the tokens, so that a wrong byte is a wrong answer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_layout.h"
#include "store/kv_store.h"

namespace hearth {

inline KvSpec TinySpec(int block_tokens = 16) {
  KvSpec spec;
  spec.n_kv_layers = 2;
  spec.n_kv_heads = 1;
  spec.head_dim = 4;
  spec.SetFormat(KvFormat::kF16);
  spec.block_tokens = block_tokens;
  return spec;
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

// What the model would have computed for this block.
inline std::vector<std::byte> TinyPayload(const KvSpec& spec, const Digest& id,
                                          std::size_t n_tokens) {
  std::vector<std::byte> payload(
      KvLayout(spec, static_cast<int>(n_tokens)).block_bytes());
  std::uint64_t state = LoadLe<std::uint64_t>(id.bytes.data());
  for (std::byte& byte : payload) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return payload;
}

// All blocks of a prompt, ready to be saved.
struct TinyPrompt {
  TinyPrompt(const KvIdentity& of, const KvSpec& shape,
             std::vector<std::int32_t> ids)
      : identity(of), spec(shape), tokens(std::move(ids)) {
    const auto step = static_cast<std::size_t>(spec.block_tokens);
    Digest parent = RootId(identity);
    payloads.reserve(tokens.size() / step + 1);
    for (std::size_t at = 0; at < tokens.size(); at += step) {
      const auto part = std::span<const std::int32_t>(tokens).subspan(
          at, std::min(step, tokens.size() - at));
      const Digest id = ChildId(parent, part);
      payloads.push_back(TinyPayload(spec, id, part.size()));
      blocks.push_back({parent, id, part, payloads.back()});
      parent = id;
    }
  }
  TinyPrompt(const TinyPrompt&) = delete;

  bool has_tail() const {
    return tokens.size() % static_cast<std::size_t>(spec.block_tokens) != 0;
  }
  // Saves as the engine does: full blocks, then the manifest.
  Result<void> SaveTo(KvStore& store, const std::string& preview = "") const {
    for (std::size_t i = 0; i + (has_tail() ? 1 : 0) < blocks.size(); ++i) {
      HEARTH_TRY(store.SaveBlock(identity, spec, blocks[i]));
    }
    return store.SaveManifest(identity, spec, tokens,
                              has_tail() ? &blocks.back() : nullptr, preview);
  }

  KvIdentity identity;
  KvSpec spec;
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<BlockToSave> blocks;
};

// Whether every byte of the match is what the model would have computed for a
// prefix of `tokens`, and the counts agree.
inline bool IsExact(const StoreMatch& match, const KvIdentity& identity,
                    const KvSpec& spec, std::span<const std::int32_t> tokens) {
  Digest parent = RootId(identity);
  std::size_t at = 0;
  for (const StoredBlock& block : match.blocks) {
    const auto n = static_cast<std::size_t>(block.n_tokens);
    if (n == 0 || n > tokens.size() - at) return false;
    parent = ChildId(parent, tokens.subspan(at, n));
    if (block.id != parent) return false;
    const std::vector<std::byte> right = TinyPayload(spec, parent, n);
    if (!std::equal(right.begin(), right.end(), block.payload.begin(),
                    block.payload.end())) {
      return false;
    }
    at += n;
  }
  return at == static_cast<std::size_t>(match.n_tokens);
}

}  // namespace hearth
