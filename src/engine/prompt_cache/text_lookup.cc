#include "engine/prompt_cache/text_lookup.h"

#include <algorithm>
#include <string_view>

#include "store/format/block_pieces.h"

namespace hearth {
namespace {

// Tokens as bytes, and where each begins; the last offset is the end.
struct Spelled {
  std::string bytes;
  std::vector<std::size_t> offsets;
};

Spelled Spell(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  Spelled out;
  out.offsets.reserve(ids.size() + 1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    out.offsets.push_back(out.bytes.size());
    tokenizer.AppendBytes(ids[i], /*at_start=*/i == 0, out.bytes);
  }
  out.offsets.push_back(out.bytes.size());
  return out;
}

// How far a stored prompt has the text that was asked for.
struct Shared {
  std::size_t n_stored = 0,
              n_asked = 0;           // tokens up to the last common boundary
  std::vector<std::size_t> offsets;  // of the stored tokens up to there
};

class Comparison {
 public:
  Comparison(const Tokenizer& tokenizer, std::span<const std::int32_t> asked)
      : tokenizer_(tokenizer),
        asked_(asked),
        spelled_(Spell(tokenizer, asked)) {}

  const std::vector<std::size_t>& offsets() const { return spelled_.offsets; }

  Shared With(std::span<const std::int32_t> stored) const {
    Shared shared;
    const std::string_view text = spelled_.bytes;
    const auto& offsets = spelled_.offsets;
    std::string piece;
    std::size_t at = 0,
                i = 0;  // asked_[i] is the first that begins at or after
    for (std::size_t j = 0; j < stored.size(); ++j) {
      piece.clear();
      tokenizer_.AppendBytes(stored[j], /*at_start=*/j == 0, piece);
      if (text.substr(at, piece.size()) != piece) break;
      if (!SameSpecials(stored[j], at, at + piece.size(), i)) break;
      shared.offsets.push_back(at);
      at += piece.size();
      while (i < asked_.size() && offsets[i] < at) ++i;
      if (offsets[i] == at) {
        shared.n_stored = j + 1;
        shared.n_asked = i;
      }
    }
    shared.offsets.push_back(at);
    return shared;
  }

 private:
  // Whether [begin, end) holds the special tokens that `id` stands for: itself,
  // or none. `next`: the first asked token at or after `begin`.
  bool SameSpecials(std::int32_t id, std::size_t begin, std::size_t end,
                    std::size_t next) const {
    const auto& offsets = spelled_.offsets;
    if (tokenizer_.IsSpecial(id)) {
      return next < asked_.size() && offsets[next] == begin &&
             asked_[next] == id;
    }
    // The one before may reach into it.
    for (std::size_t i = next > 0 ? next - 1 : 0;
         i < asked_.size() && offsets[i] < end; ++i) {
      if (offsets[i + 1] > begin && tokenizer_.IsSpecial(asked_[i]))
        return false;
    }
    return true;
  }

  const Tokenizer& tokenizer_;
  std::span<const std::int32_t> asked_;
  Spelled spelled_;
};

}  // namespace

std::string SpellTokens(const Tokenizer& tokenizer,
                        std::span<const std::int32_t> ids) {
  return Spell(tokenizer, ids).bytes;
}

std::optional<TextMatch> FindByText(
    const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
    std::span<const std::vector<std::int32_t>> stored, int n_covered,
    const KvSpec& spec) {
  const Comparison comparison(tokenizer, ids);
  const auto& offsets = comparison.offsets();
  const auto step = static_cast<std::size_t>(spec.block_tokens);
  std::optional<TextMatch> best;
  std::size_t most = static_cast<std::size_t>(n_covered) + step - 1;
  for (const std::vector<std::int32_t>& prompt : stored) {
    const Shared shared = comparison.With(prompt);
    // The beginning of a block serves, unless it cannot be cut.
    const std::size_t full = shared.n_stored / step * step;
    const std::size_t in_block = std::min(prompt.size() - full, step);
    const std::size_t usable =
        CanBePiece(spec, in_block) ? shared.n_stored : full;
    if (usable == 0) continue;
    // Asked tokens that need not be computed.
    const auto n_spared = static_cast<std::size_t>(
        std::upper_bound(offsets.begin(), offsets.end(),
                         shared.offsets[usable]) -
        offsets.begin() - 1);
    if (n_spared <= most) continue;
    most = n_spared;
    const auto rest = ids.subspan(shared.n_asked);
    best.emplace();
    best->n_from_store = static_cast<int>(shared.n_stored);
    best->n_usable = static_cast<int>(usable);
    best->ids.assign(
        prompt.begin(),
        prompt.begin() + static_cast<std::ptrdiff_t>(shared.n_stored));
    best->ids.insert(best->ids.end(), rest.begin(), rest.end());
  }
  return best;
}

}  // namespace hearth
