// Byte-pair encoding of one word: start from single characters (or bytes) and
// merge the best neighbouring pair until none can be merged; among equal ones
// the leftmost.
//
// Two ways to know the best pair: a table of pairs with ranks (tokenizer.json,
// GGUF "gpt2"), or any two neighbours whose joined text is a piece, best score
// first (GGUF "llama").
//
// Cost    short words quadratic in their length in a few dozen bytes; long ones
//         n log n, so that a megabyte of one character takes part of a second.
// Errors  none; a character that cannot be expressed becomes `unk_id`, or
//         nothing without one.
// Threads const; each thread brings its own BpeScratch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe/vocab.h"
#include "text/bpe/word_cache.h"

namespace hearth {

struct BpeScratch {
  struct Pair {
    std::uint32_t priority, id;  // kNoId: cannot merge
  };
  std::vector<std::uint32_t> ids;     // kNoId: not in the vocabulary
  std::vector<std::uint32_t> starts;  // [symbols + 1], bytes in the word
  std::vector<Pair> pairs;            // of symbol i and the one after it
  std::vector<std::uint32_t> next, previous;
  std::vector<std::uint64_t> heap;  // priority << 32 | symbol
  std::string spelling;
  WordCache cache;
};

struct Bpe {
  Vocab vocab;
  MergeTable merges;
  bool by_score = false;       // merge by text and score, not by table
  bool bytes = false;          // symbols are bytes, not characters
  bool ignore_merges = false;  // a word that is a piece is that piece
  bool byte_fallback = false;  // unknown characters become <0xNN> pieces
  bool fuse_unk = false;       // neighbouring unknown characters: one unk
  std::uint32_t unk_id = kNoId;
  std::string later_prefix;  // continuing_subword_prefix
  std::string last_suffix;   // end_of_word_suffix

  // Appends the ids of `word`. REQUIRES: word.size() < 2^32.
  void EncodeWord(std::string_view word, BpeScratch& scratch,
                  std::vector<std::int32_t>& out) const;

 private:
  void MakeSymbols(std::string_view word, BpeScratch& scratch) const;
  void MakeSymbolsWithUnknown(std::string_view word, BpeScratch& s) const;
  BpeScratch::Pair PairOf(std::string_view word, const BpeScratch& s,
                          std::size_t left, std::size_t right,
                          std::size_t right_end) const;
  void MergeShort(std::string_view word, BpeScratch& s) const;
  void MergeLong(std::string_view word, BpeScratch& s) const;
  void Emit(std::string_view word, const BpeScratch& s,
            std::vector<std::int32_t>& out) const;
};

}  // namespace hearth
