#include "text/bpe/bpe.h"

#include <algorithm>
#include <functional>

#include "text/unicode/utf8.h"

namespace hearth {
namespace {

constexpr std::size_t kShortSymbols = 48;
constexpr BpeScratch::Pair kNoPair{kNoId, kNoId};

}  // namespace

void Bpe::EncodeWord(std::string_view word, BpeScratch& scratch,
                     std::vector<std::int32_t>& out) const {
  if (word.empty()) return;
  const bool cached = word.size() <= WordCache::kTextMax;
  std::uint64_t hash = 0;
  if (cached) {
    hash = HashText(word, vocab.seed);
    if (scratch.cache.Find(word, hash, out)) return;
  }
  const std::size_t before = out.size();
  std::uint32_t whole = kNoId;
  if (ignore_merges) whole = vocab.Find(word);
  if (whole != kNoId) {
    out.push_back(static_cast<std::int32_t>(whole));
  } else {
    MakeSymbols(word, scratch);
    if (scratch.ids.size() <= kShortSymbols) {
      MergeShort(word, scratch);
    } else {
      MergeLong(word, scratch);
    }
    Emit(word, scratch, out);
  }
  if (cached) {
    scratch.cache.Keep(word, hash, out.data() + before, out.size() - before);
  }
}

void Bpe::MakeSymbols(std::string_view word, BpeScratch& s) const {
  s.ids.clear();
  s.starts.clear();
  const bool plain = later_prefix.empty() && last_suffix.empty();
  if (bytes && plain) {
    for (std::size_t i = 0; i < word.size(); ++i) {
      const std::uint32_t id =
          vocab.ByteId(static_cast<unsigned char>(word[i]));
      if (id == kNoId) return MakeSymbolsWithUnknown(word, s);
      s.ids.push_back(id);
      s.starts.push_back(static_cast<std::uint32_t>(i));
    }
    s.starts.push_back(static_cast<std::uint32_t>(word.size()));
    return;
  }
  if (!by_score) return MakeSymbolsWithUnknown(word, s);
  for (std::size_t i = 0; i < word.size();) {
    const std::size_t n = std::min(Utf8Length(word[i]), word.size() - i);
    s.ids.push_back(vocab.Find(word.substr(i, n)));
    s.starts.push_back(static_cast<std::uint32_t>(i));
    i += n;
  }
  s.starts.push_back(static_cast<std::uint32_t>(word.size()));
}

// The reference's order of things: an unknown character is held back until the
// next known one, and byte pieces do not release it.
void Bpe::MakeSymbolsWithUnknown(std::string_view word, BpeScratch& s) const {
  s.ids.clear();
  s.starts.clear();
  std::uint32_t held_start = kNoId;
  const auto put = [&s](std::uint32_t id, std::size_t start) {
    s.ids.push_back(id);
    s.starts.push_back(static_cast<std::uint32_t>(start));
  };
  for (std::size_t i = 0; i < word.size();) {
    const std::size_t n =
        bytes ? 1 : std::min(Utf8Length(word[i]), word.size() - i);
    std::string_view symbol = word.substr(i, n);
    if (!later_prefix.empty() || !last_suffix.empty()) {
      s.spelling = i > 0 ? later_prefix : std::string();
      s.spelling += symbol;
      if (i + n == word.size()) s.spelling += last_suffix;
      symbol = s.spelling;
    }
    const std::uint32_t id = vocab.Find(symbol);
    if (id != kNoId) {
      if (held_start != kNoId) put(unk_id, held_start);
      held_start = kNoId;
      put(id, i);
    } else if (byte_fallback &&
               std::all_of(symbol.begin(), symbol.end(), [this](char c) {
                 return vocab.ByteId(static_cast<unsigned char>(c)) != kNoId;
               })) {
      for (std::size_t k = 0; k < symbol.size(); ++k) {
        put(vocab.ByteId(static_cast<unsigned char>(symbol[k])), i);
      }
    } else if (unk_id != kNoId) {
      if (held_start != kNoId && !fuse_unk) put(unk_id, held_start);
      if (held_start == kNoId || !fuse_unk) {
        held_start = static_cast<std::uint32_t>(i);
      }
    }
    i += n;
  }
  if (held_start != kNoId) put(unk_id, held_start);
  s.starts.push_back(static_cast<std::uint32_t>(word.size()));
}

BpeScratch::Pair Bpe::PairOf(std::string_view word, const BpeScratch& s,
                             std::size_t left, std::size_t right,
                             std::size_t right_end) const {
  if (!by_score) {
    const MergeSlot* merge = merges.Find(s.ids[left], s.ids[right]);
    return merge == nullptr ? kNoPair
                            : BpeScratch::Pair{merge->rank, merge->id};
  }
  const std::size_t start = s.starts[left];
  if (right_end - start > vocab.longest_piece) return kNoPair;
  const std::uint32_t id = vocab.Find(word.substr(start, right_end - start));
  return id == kNoId ? kNoPair : BpeScratch::Pair{vocab.priority[id], id};
}

void Bpe::MergeShort(std::string_view word, BpeScratch& s) const {
  std::size_t n = s.ids.size();
  if (n < 2) return;
  s.pairs.resize(n);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    s.pairs[i] = PairOf(word, s, i, i + 1, s.starts[i + 2]);
  }
  while (n > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < n; ++i) {
      if (s.pairs[i].priority < s.pairs[best].priority) best = i;
    }
    if (s.pairs[best].id == kNoId) break;
    s.ids[best] = s.pairs[best].id;
    const auto gone = static_cast<std::ptrdiff_t>(best) + 1;
    s.ids.erase(s.ids.begin() + gone);
    s.starts.erase(s.starts.begin() + gone);
    s.pairs.erase(s.pairs.begin() + gone);
    --n;
    if (best + 1 < n) {
      s.pairs[best] = PairOf(word, s, best, best + 1, s.starts[best + 2]);
    }
    if (best > 0) {
      s.pairs[best - 1] = PairOf(word, s, best - 1, best, s.starts[best + 1]);
    }
  }
}

void Bpe::MergeLong(std::string_view word, BpeScratch& s) const {
  const auto n = static_cast<std::uint32_t>(s.ids.size());
  s.pairs.assign(n, kNoPair);
  s.next.resize(n);
  s.previous.resize(n);
  s.heap.clear();
  const auto consider = [&](std::uint32_t left) {
    const std::uint32_t right = s.next[left];
    if (right == n) {
      s.pairs[left] = kNoPair;
      return false;
    }
    const std::uint32_t after = s.next[right];
    s.pairs[left] = PairOf(word, s, left, right, s.starts[after]);
    if (s.pairs[left].id == kNoId) return false;
    s.heap.push_back(static_cast<std::uint64_t>(s.pairs[left].priority) << 32 |
                     left);
    return true;
  };
  const auto push = [&](std::uint32_t left) {
    if (consider(left)) {
      std::push_heap(s.heap.begin(), s.heap.end(), std::greater<>());
    }
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    s.next[i] = i + 1;
    s.previous[i] = i - 1;  // symbol 0: wraps to kNoId
  }
  for (std::uint32_t i = 0; i < n; ++i) consider(i);
  std::make_heap(s.heap.begin(), s.heap.end(), std::greater<>());
  while (!s.heap.empty()) {
    const std::uint64_t top = s.heap.front();
    std::pop_heap(s.heap.begin(), s.heap.end(), std::greater<>());
    s.heap.pop_back();
    const auto left = static_cast<std::uint32_t>(top);
    // Out of date: the pair has merged with something else since.
    if (s.pairs[left].id == kNoId || s.pairs[left].priority != top >> 32) {
      continue;
    }
    const std::uint32_t right = s.next[left];
    s.ids[left] = s.pairs[left].id;
    s.pairs[right] = kNoPair;
    s.next[left] = s.next[right];
    if (s.next[left] < n) s.previous[s.next[left]] = left;
    push(left);
    if (s.previous[left] != kNoId) push(s.previous[left]);
  }
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < n; i = s.next[i]) {
    s.ids[kept] = s.ids[i];
    s.starts[kept] = s.starts[i];
    ++kept;
  }
  s.starts[kept] = s.starts[n];
  s.ids.resize(kept);
  s.starts.resize(kept + 1);
}

void Bpe::Emit(std::string_view word, const BpeScratch& s,
               std::vector<std::int32_t>& out) const {
  for (std::size_t i = 0; i < s.ids.size(); ++i) {
    if (s.ids[i] != kNoId) {
      out.push_back(static_cast<std::int32_t>(s.ids[i]));
      continue;
    }
    for (std::size_t k = s.starts[i]; k < s.starts[i + 1]; ++k) {
      const std::uint32_t id =
          vocab.ByteId(static_cast<unsigned char>(word[k]));
      if (id != kNoId) {
        out.push_back(static_cast<std::int32_t>(id));
      } else if (unk_id != kNoId) {
        out.push_back(static_cast<std::int32_t>(unk_id));
      }
    }
  }
}

}  // namespace hearth
