// One step of a tokenizer's pipeline, as plain data: a verb, up to two strings
// and three small numbers. Normalizers, pre-tokenizers and decoders are lists
// of steps; this is what the compiled form stores.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

// Persisted; never renumber.
enum class StepKind : std::uint8_t {
  // Normalizers: whole text in, whole text out.
  kNfc = 1,
  kNfd = 2,
  kNfkc = 3,
  kNfkd = 4,
  kLowercase = 5,
  kStripMarks = 6,
  kStripSpace = 7,     // a: left, b: right
  kPrepend = 8,        // text
  kReplaceText = 9,    // text -> text2; also a decoder
  kReplaceRegex = 10,  // text -> text2; also a decoder
  kSpellBytes = 11,    // to the byte alphabet
  // Pre-tokenizers: pieces in, smaller pieces out.
  kByteLevel = 32,    // a: add_prefix_space, b: split with GPT-2's pattern
  kSplitText = 33,    // text; a: SplitBehavior, b: invert
  kSplitRegex = 34,   // text; a: SplitBehavior, b: invert
  kDigits = 35,       // a: each digit alone
  kPunctuation = 36,  // a: SplitBehavior
  kMetaspace = 37,    // text: replacement; a: PrependScheme, b: split
  kWhitespace = 38,   // \w+|[^\w\s]+
  kWhitespaceSplit = 39,
  kBertSplit = 40,  // white space removed, punctuation alone
  // Decoders: one token's text in, bytes out.
  kDecodeByteLevel = 64,
  kDecodeByteFallback = 65,
  kDecodeFuse = 66,       // what follows acts on the whole text
  kDecodeStrip = 67,      // text: one character; a: at most, left; b: right
  kDecodeMetaspace = 68,  // text: replacement; a: PrependScheme
  kDecodeJoin = 69,       // tokens are separated by spaces
};

enum class SplitBehavior : std::uint8_t {
  kRemoved = 0,
  kIsolated = 1,
  kMergedWithPrevious = 2,
  kMergedWithNext = 3,
  kContiguous = 4,
};

enum class PrependScheme : std::uint8_t { kNever = 0, kFirst = 1, kAlways = 2 };

struct Step {
  StepKind kind;
  std::uint8_t a = 0, b = 0;
  std::string text, text2;
};

}  // namespace hearth
