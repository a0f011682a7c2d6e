#include "text/split/pre_tokenizer.h"

#include <algorithm>

#include "text/unicode/byte_alphabet.h"
#include "text/unicode/normalizer.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace hearth {
namespace {

// Turns a list of spans, each a match or not, into pieces. Spans arrive in
// order and cover the text.
class Splitter {
 public:
  Splitter(std::string_view text, SplitBehavior behavior, bool invert,
           std::vector<std::string_view>& out)
      : text_(text), behavior_(behavior), invert_(invert), out_(out) {}

  void Span(std::size_t start, std::size_t end, bool match) {
    if (start == end) return;
    match = match != invert_;
    const std::string_view piece = text_.substr(start, end - start);
    switch (behavior_) {
      case SplitBehavior::kRemoved:
        if (!match) out_.push_back(piece);
        break;
      case SplitBehavior::kIsolated:
        out_.push_back(piece);
        break;
      case SplitBehavior::kContiguous:
        if (any_ && match == last_match_) {
          Extend(piece.size());
        } else {
          out_.push_back(piece);
        }
        break;
      case SplitBehavior::kMergedWithPrevious:
        if (match && any_ && !last_match_) {
          Extend(piece.size());
        } else {
          out_.push_back(piece);
        }
        break;
      case SplitBehavior::kMergedWithNext:
        // A match waits for what follows; of several in a row, the last.
        if (!match && any_ && last_match_) {
          Extend(piece.size());
        } else {
          out_.push_back(piece);
        }
        break;
    }
    any_ = true;
    last_match_ = match;
  }

 private:
  void Extend(std::size_t n) {
    out_.back() = {out_.back().data(), out_.back().size() + n};
  }

  std::string_view text_;
  SplitBehavior behavior_;
  bool invert_;
  std::vector<std::string_view>& out_;
  bool any_ = false;
  bool last_match_ = false;
};

bool IsPunctuation(char32_t code, std::uint16_t bits) {
  const bool ascii =
      (code >= 0x21 && code <= 0x2F) || (code >= 0x3A && code <= 0x40) ||
      (code >= 0x5B && code <= 0x60) || (code >= 0x7B && code <= 0x7E);
  return ascii || (bits & kCharPunct) != 0;
}

// Each character for which `is_match` holds is a match of its own.
template <typename IsMatch>
void SplitByChar(std::string_view text, SplitBehavior behavior,
                 std::vector<std::string_view>& out, IsMatch is_match) {
  Splitter splitter(text, behavior, /*invert=*/false, out);
  std::size_t rest = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length;
    const char32_t code = DecodeValidUtf8(text.data() + i, &length);
    if (is_match(code, CharBits(code))) {
      splitter.Span(rest, i, false);
      splitter.Span(i, i + length, true);
      rest = i + length;
    }
    i += length;
  }
  splitter.Span(rest, text.size(), false);
}

void SplitByText(std::string_view text, const std::string& separator,
                 SplitBehavior behavior, bool invert,
                 std::vector<std::string_view>& out) {
  Splitter splitter(text, behavior, invert, out);
  std::size_t rest = 0;
  while (!separator.empty()) {
    const std::size_t hit = text.find(separator, rest);
    if (hit == std::string_view::npos) break;
    splitter.Span(rest, hit, false);
    splitter.Span(hit, hit + separator.size(), true);
    rest = hit + separator.size();
  }
  splitter.Span(rest, text.size(), false);
}

// Words (\w+) and runs of other visible characters.
void SplitWhitespace(std::string_view text,
                     std::vector<std::string_view>& out) {
  const auto kind_of = [](std::uint16_t bits) {
    return (bits & kCharWord) != 0 ? 1 : (bits & kCharSpace) != 0 ? 0 : 2;
  };
  std::size_t start = 0;
  int running = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length;
    const char32_t code = DecodeValidUtf8(text.data() + i, &length);
    const int kind = kind_of(CharBits(code));
    if (kind != running) {
      if (running != 0) out.push_back(text.substr(start, i - start));
      start = i;
      running = kind;
    }
    i += length;
  }
  if (running != 0) out.push_back(text.substr(start));
}

void SplitByPattern(std::string_view text, SplitPattern pattern,
                    std::vector<std::string_view>& out) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = NextPiece(pattern, text, i);
    out.push_back(text.substr(i, end - i));
    i = end;
  }
}

// With the alphabet of byte-level BPE where `spells`, in memory of the scratch.
void SplitByteLevel(const Step& step,
                    const std::optional<SplitPattern>& pattern, bool spells,
                    std::string_view piece, SplitScratch& scratch) {
  std::vector<std::string_view>& out = scratch.others;
  if (step.a != 0 && !piece.starts_with(' ')) {
    scratch.storage.push_back(' ' + std::string(piece));
    piece = scratch.storage.back();
  }
  const std::size_t first = out.size();
  if (pattern) {
    SplitByPattern(piece, *pattern, out);
  } else {
    out.push_back(piece);
  }
  if (!spells) return;
  // One reserved buffer, so that the views stay valid while it fills.
  scratch.storage.emplace_back();
  std::string& spelled = scratch.storage.back();
  spelled.reserve(piece.size() * 2);
  for (std::size_t i = first; i < out.size(); ++i) {
    const std::size_t start = spelled.size();
    AppendSpelled(spelled, out[i]);
    out[i] = std::string_view(spelled).substr(start);
  }
}

void SplitBySpace(std::string_view piece, std::vector<std::string_view>& out) {
  SplitByChar(
      piece, SplitBehavior::kRemoved, out,
      [](char32_t, std::uint16_t bits) { return (bits & kCharSpace) != 0; });
}

// Words, and each punctuation character alone.
void SplitBert(std::string_view piece, std::vector<std::string_view>& out) {
  const std::size_t first = out.size();
  SplitBySpace(piece, out);
  const std::vector<std::string_view> words(
      out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
  out.resize(first);
  for (const std::string_view word : words) {
    SplitByChar(word, SplitBehavior::kIsolated, out, IsPunctuation);
  }
}

// `\s+$`: a run of white space at the end of a line or of the text. By hand,
// because an engine that looks at every start of a long run is quadratic.
void SplitTrailingSpace(std::string_view text, Splitter& splitter) {
  std::size_t rest = 0, i = 0;
  while (i < text.size()) {
    const std::size_t run = i;
    std::size_t match_end = 0, length;
    while (i < text.size() &&
           (CharBits(DecodeValidUtf8(text.data() + i, &length)) & kCharSpace)) {
      if (text[i] == '\n' && i > run) match_end = i;
      i += length;
    }
    if (i == text.size() && i > run) match_end = i;
    if (match_end > run) {
      splitter.Span(rest, run, false);
      splitter.Span(run, match_end, true);
      rest = match_end;
    }
    if (i < text.size()) i += Utf8Length(text[i]);
  }
  splitter.Span(rest, text.size(), false);
}

constexpr std::string_view kTrailingSpace = "\\s+$";

SplitBehavior BehaviorOf(const Step& step) {
  return static_cast<SplitBehavior>(step.a);
}

Result<void> SplitByRegex(std::string_view text, const Regex& regex,
                          Splitter& splitter, RegexScratch& scratch) {
  std::size_t rest = 0;
  while (rest < text.size()) {
    HEARTH_ASSIGN(const RegexMatch match, regex.Find(text, rest, scratch));
    if (!match.found) break;
    splitter.Span(rest, match.start, false);
    splitter.Span(match.start, match.end, true);
    rest = match.end;
  }
  splitter.Span(rest, text.size(), false);
  return {};
}

void SplitMetaspace(const Step& step, std::string_view piece, bool at_start,
                    SplitScratch& scratch) {
  const auto scheme = static_cast<PrependScheme>(step.a);
  std::string text = ReplaceAll(piece, " ", step.text);
  const bool wanted = scheme == PrependScheme::kAlways ||
                      (scheme == PrependScheme::kFirst && at_start);
  if (wanted && !text.starts_with(step.text)) text.insert(0, step.text);
  scratch.storage.push_back(std::move(text));
  if (step.b != 0) {
    SplitByText(scratch.storage.back(), step.text,
                SplitBehavior::kMergedWithNext, /*invert=*/false,
                scratch.others);
  } else {
    scratch.others.push_back(scratch.storage.back());
  }
}

}  // namespace

Result<PreTokenizer> PreTokenizer::Make(std::span<const Step> steps,
                                        const std::string& what) {
  PreTokenizer made;
  for (const Step& step : steps) {
    Runnable runnable{step, std::nullopt, {}, false};
    if (step.kind == StepKind::kSplitRegex && step.text != kTrailingSpace) {
      // Matchers cover all text, so only these two behaviours equal a plain
      // list of pieces.
      const bool plain =
          BehaviorOf(step) == SplitBehavior::kIsolated ||
          (BehaviorOf(step) == SplitBehavior::kRemoved && step.b != 0);
      if (plain) runnable.pattern = RecognizePattern(step.text);
      if (!runnable.pattern) {
        HEARTH_ASSIGN(Regex regex, Regex::Compile(step.text, what));
        runnable.regex.push_back(std::move(regex));
      }
    } else if (step.kind == StepKind::kByteLevel) {
      if (step.b != 0) runnable.pattern = SplitPattern::kGpt2;
      runnable.spell = &step != &steps.back();
      made.spells_bytes_ |= runnable.spell;
    }
    made.steps_.push_back(std::move(runnable));
  }
  // Neutral: a ByteLevel at the end that neither splits nor adds a space.
  std::size_t n = made.steps_.size();
  if (n == 2 && made.steps_[1].step.kind == StepKind::kByteLevel &&
      made.steps_[1].step.a == 0 && !made.steps_[1].pattern) {
    n = 1;
  }
  if (n == 1 && (made.steps_[0].step.kind == StepKind::kSplitRegex ||
                 (made.steps_[0].step.kind == StepKind::kByteLevel &&
                  made.steps_[0].step.a == 0))) {
    made.only_pattern_ = made.steps_[0].pattern;
  }
  return made;
}

Result<void> PreTokenizer::Apply(const Runnable& runnable,
                                 std::string_view piece, bool at_start,
                                 SplitScratch& scratch) const {
  const Step& step = runnable.step;
  std::vector<std::string_view>& out = scratch.others;
  switch (step.kind) {
    case StepKind::kByteLevel:
      SplitByteLevel(step, runnable.pattern, runnable.spell, piece, scratch);
      return {};
    case StepKind::kSplitRegex: {
      if (runnable.pattern) {
        SplitByPattern(piece, *runnable.pattern, out);
        return {};
      }
      Splitter splitter(piece, BehaviorOf(step), step.b != 0, out);
      if (runnable.regex.empty()) {
        SplitTrailingSpace(piece, splitter);
        return {};
      }
      return SplitByRegex(piece, runnable.regex.front(), splitter,
                          scratch.regex);
    }
    case StepKind::kSplitText:
      SplitByText(piece, step.text, BehaviorOf(step), step.b != 0, out);
      return {};
    case StepKind::kDigits:
      SplitByChar(
          piece,
          step.a != 0 ? SplitBehavior::kIsolated : SplitBehavior::kContiguous,
          out, [](char32_t, std::uint16_t bits) {
            return (bits & kCharNumber) != 0;
          });
      return {};
    case StepKind::kPunctuation:
      SplitByChar(piece, BehaviorOf(step), out, IsPunctuation);
      return {};
    case StepKind::kMetaspace:
      SplitMetaspace(step, piece, at_start, scratch);
      return {};
    case StepKind::kWhitespace:
      SplitWhitespace(piece, out);
      return {};
    case StepKind::kWhitespaceSplit:
      SplitBySpace(piece, out);
      return {};
    case StepKind::kBertSplit:
      SplitBert(piece, out);
      return {};
    default:
      return {};
  }
}

Result<void> PreTokenizer::Split(std::string_view text, bool at_start,
                                 SplitScratch& scratch) const {
  scratch.storage.clear();
  scratch.pieces.clear();
  if (!text.empty()) scratch.pieces.push_back(text);
  for (const Runnable& runnable : steps_) {
    scratch.others.clear();
    bool first = at_start;
    for (const std::string_view piece : scratch.pieces) {
      HEARTH_TRY(Apply(runnable, piece, first, scratch));
      first = false;
    }
    scratch.pieces.swap(scratch.others);
  }
  return {};
}

}  // namespace hearth
