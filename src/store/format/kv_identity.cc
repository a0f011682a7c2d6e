#include "store/format/kv_identity.h"

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

std::vector<Digest> ChainIds(const KvIdentity& identity,
                             std::span<const std::int32_t> tokens,
                             int block_tokens) {
  HEARTH_CHECK(block_tokens > 0);
  const auto step = static_cast<std::size_t>(block_tokens);
  std::vector<Digest> ids;
  ids.reserve((tokens.size() + step - 1) / step);
  Digest parent = RootId(identity);
  for (std::size_t at = 0; at < tokens.size(); at += step) {
    parent =
        ChildId(parent, tokens.subspan(at, std::min(step, tokens.size() - at)));
    ids.push_back(parent);
  }
  return ids;
}

}  // namespace hearth
