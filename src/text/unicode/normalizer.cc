#include "text/unicode/normalizer.h"

#include <optional>

#include "text/unicode/byte_alphabet.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace hearth {
namespace {

std::string_view StripSpace(std::string_view text, bool left, bool right) {
  std::size_t start = 0, end = text.size();
  while (left && start < end) {
    std::size_t length;
    const char32_t code = DecodeValidUtf8(text.data() + start, &length);
    if ((CharBits(code) & kCharSpace) == 0) break;
    start += length;
  }
  while (right && end > start) {
    std::size_t at = end - 1;
    while (at > start &&
           (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
      --at;
    }
    std::size_t length;
    const char32_t code = DecodeValidUtf8(text.data() + at, &length);
    if ((CharBits(code) & kCharSpace) == 0) break;
    end = at;
  }
  return text.substr(start, end - start);
}

// Nothing when the step leaves the text as it is.
std::optional<std::string> Unicode(StepKind kind, std::string_view text) {
  switch (kind) {
    case StepKind::kNfc:
      if (IsSurelyNfc(text)) return std::nullopt;
      return Normalize(text, NormalForm::kNfc);
    case StepKind::kNfd:
      return Normalize(text, NormalForm::kNfd);
    case StepKind::kNfkc:
      return Normalize(text, NormalForm::kNfkc);
    case StepKind::kNfkd:
      return Normalize(text, NormalForm::kNfkd);
    case StepKind::kLowercase:
      return ToLower(text);
    case StepKind::kStripMarks:
      return StripMarks(text);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string ReplaceAll(std::string_view text, std::string_view from,
                       std::string_view to) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  std::size_t i = 0;
  while (true) {
    const std::size_t hit = text.find(from, i);
    if (hit == std::string_view::npos) break;
    out += text.substr(i, hit - i);
    out += to;
    i = hit + from.size();
  }
  out += text.substr(i);
  return out;
}

Result<std::string> ReplaceMatches(std::string_view text, const Regex& regex,
                                   std::string_view to, RegexScratch& scratch) {
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    HEARTH_ASSIGN(const RegexMatch match, regex.Find(text, i, scratch));
    if (!match.found) break;
    out += text.substr(i, match.start - i);
    out += to;
    i = match.end;
  }
  out += text.substr(i);
  return out;
}

Result<Normalizer> Normalizer::Make(std::span<const Step> steps,
                                    const std::string& what) {
  Normalizer made;
  for (const Step& step : steps) {
    Runnable runnable{step, {}};
    if (step.kind == StepKind::kReplaceRegex) {
      HEARTH_ASSIGN(Regex regex, Regex::Compile(step.text, what));
      runnable.regex.push_back(std::move(regex));
    }
    made.steps_.push_back(std::move(runnable));
  }
  return made;
}

Result<std::string_view> Normalizer::Apply(std::string_view text,
                                           std::string& storage,
                                           RegexScratch& scratch) const {
  for (const Runnable& runnable : steps_) {
    const Step& step = runnable.step;
    std::string next;
    switch (step.kind) {
      case StepKind::kStripSpace:
        next = StripSpace(text, step.a != 0, step.b != 0);
        break;
      case StepKind::kPrepend:
        if (text.empty()) continue;
        next.reserve(step.text.size() + text.size());
        next += step.text;
        next += text;
        break;
      case StepKind::kReplaceText:
        next = ReplaceAll(text, step.text, step.text2);
        break;
      case StepKind::kReplaceRegex: {
        HEARTH_ASSIGN(next, ReplaceMatches(text, runnable.regex.front(),
                                           step.text2, scratch));
        break;
      }
      case StepKind::kSpellBytes:
        AppendSpelled(next, text);
        break;
      default: {
        std::optional<std::string> changed = Unicode(step.kind, text);
        if (!changed) continue;
        next = std::move(*changed);
      }
    }
    storage = std::move(next);
    text = storage;
  }
  return text;
}

}  // namespace hearth
