#include "text/decoder.h"

#include <utility>

#include "text/unicode/byte_alphabet.h"
#include "text/unicode/normalizer.h"

namespace hearth {
namespace {

void Strip(std::string& text, std::string_view unit, int left, int right) {
  std::size_t start = 0, end = text.size();
  const std::string_view view = text;
  while (left-- > 0 && view.substr(start, end - start).starts_with(unit)) {
    start += unit.size();
  }
  while (right-- > 0 && view.substr(start, end - start).ends_with(unit)) {
    end -= unit.size();
  }
  text = text.substr(start, end - start);
}

}  // namespace

Result<Decoder> Decoder::Make(std::span<const Step> steps,
                              const std::string& what) {
  Decoder made;
  bool fused = false;
  for (const Step& step : steps) {
    if (step.kind == StepKind::kDecodeFuse) {
      fused = true;
      continue;
    }
    Runnable runnable{step, fused, {}};
    if (fused && !(step.kind == StepKind::kDecodeStrip && step.b == 0)) {
      return {Code::kUnsupported,
              what + ": a decoder other than a Strip of the start behind Fuse"};
    }
    if (step.kind == StepKind::kReplaceRegex) {
      HEARTH_ASSIGN(Regex regex, Regex::Compile(step.text, what));
      runnable.regex.push_back(std::move(regex));
    }
    made.steps_.push_back(std::move(runnable));
  }
  made.byte_level_first_ =
      !made.steps_.empty() &&
      made.steps_[0].step.kind == StepKind::kDecodeByteLevel;
  return made;
}

void Decoder::Append(const Vocab& vocab, std::uint32_t id, bool at_start,
                     std::string& out) const {
  const std::uint8_t flags = vocab.flags[id];
  if ((flags & kPiecePresent) == 0) return;
  const bool raw = (flags & kPieceRawBytes) != 0;
  if ((flags & kPieceLiteral) != 0 ||
      (raw && byte_level_first_ && steps_.size() == 1)) {
    out += vocab.Text(id);
    return;
  }
  std::string text;
  if (raw) {
    AppendSpelled(text, vocab.Text(id));
  } else {
    text = vocab.Text(id);
  }
  AppendText(std::move(text), at_start, out);
}

void Decoder::AppendText(std::string text, bool at_start,
                         std::string& out) const {
  for (const Runnable& runnable : steps_) {
    const Step& step = runnable.step;
    if (runnable.whole_text && !at_start) continue;
    switch (step.kind) {
      case StepKind::kDecodeByteLevel: {
        std::string bytes;
        if (AppendUnspelled(bytes, text)) text = std::move(bytes);
        break;
      }
      case StepKind::kDecodeByteFallback: {
        const int byte = ByteOfPiece(text);
        if (byte >= 0) text.assign(1, static_cast<char>(byte));
        break;
      }
      case StepKind::kReplaceText:
        text = ReplaceAll(text, step.text, step.text2);
        break;
      case StepKind::kReplaceRegex: {
        RegexScratch scratch;
        auto replaced =
            ReplaceMatches(text, runnable.regex.front(), step.text2, scratch);
        if (replaced.ok()) text = std::move(*replaced);
        break;
      }
      case StepKind::kDecodeStrip:
        Strip(text, step.text, step.a, step.b);
        break;
      case StepKind::kDecodeMetaspace: {
        const bool drop = at_start && static_cast<PrependScheme>(step.a) !=
                                          PrependScheme::kNever;
        text = ReplaceAll(text, step.text, drop ? "" : " ");
        break;
      }
      case StepKind::kDecodeJoin:
        if (!at_start) text.insert(0, " ");
        break;
      default:
        break;
    }
  }
  out += text;
}

}  // namespace hearth
