#include "cache/block_chain.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hearth {

Digest RootId(const KvIdentity& identity) {
  return Sha256()
      .Field("hearth kv root")
      .Field(identity.model_id)
      .Field(identity.format_id)
      .Field(identity.name_space)
      .Finish();
}

Digest ChildId(const Digest& parent, std::span<const std::int32_t> tokens) {
  return Sha256()
      .Field("hearth kv block")
      .Field(parent)
      .Field(std::as_bytes(tokens))
      .Finish();
}

void AddFullBlockIds(const Digest& root, std::span<const std::int32_t> tokens,
                     std::size_t step, std::vector<Digest>& ids) {
  ids.reserve(tokens.size() / step);
  while ((ids.size() + 1) * step <= tokens.size()) {
    ids.push_back(ChildId(ids.empty() ? root : ids.back(),
                          tokens.subspan(ids.size() * step, step)));
  }
}

BlockChain::BlockChain(KvIdentity identity,
                       std::span<const std::int32_t> tokens, int block_tokens)
    : identity_(std::move(identity)),
      root_id_(RootId(identity_)),
      step_(static_cast<std::size_t>(block_tokens)),
      tokens_(tokens.begin(), tokens.end()) {
  HEARTH_CHECK(block_tokens > 0);
  AddIds();
}

void BlockChain::Append(std::span<const std::int32_t> tokens) {
  if (ids_.size() > n_full()) ids_.pop_back();  // a partial block grows
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  AddIds();
}

void BlockChain::Truncate(std::size_t n_tokens) {
  HEARTH_CHECK(n_tokens <= tokens_.size());
  if (n_tokens == tokens_.size()) return;
  tokens_.resize(n_tokens);
  ids_.resize(n_full());
  AddIds();
}

BlockRef BlockChain::operator[](std::size_t index) const {
  const std::size_t begin = BeginOf(index);
  return {ParentOf(index), ids_[index],
          tokens().subspan(begin, BeginOf(index + 1) - begin)};
}

std::size_t BlockChain::BeginOf(std::size_t index) const {
  return std::min(index * step_, tokens_.size());
}

void BlockChain::AddIds() {
  AddFullBlockIds(root_id_, tokens_, step_, ids_);
  if (ids_.size() * step_ < tokens_.size()) {
    ids_.push_back(
        ChildId(ParentOf(ids_.size()), tokens().subspan(ids_.size() * step_)));
  }
}

}  // namespace hearth
