#include "output/reader/walker.h"

#include <algorithm>
#include <utility>

#include "output/reader/tag_value.h"

namespace hearth::output {
namespace {

using EventKind = AnswerEvent::Kind;

constexpr std::size_t kNameBytesMax = 256;

bool IsNameByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' ||
         c == '/' || (byte >= 0x80 && c != kTokenByte);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Walker::Walker(std::shared_ptr<const Program> program,
               std::shared_ptr<const ToolSet> tools, bool in_thought)
    : program_(std::move(program)),
      tools_(std::move(tools)),
      at_(in_thought ? kThoughtStart : kAnswerStart) {}

void Walker::Push(std::string_view bytes) {
  held_ += bytes;
  while (!held_.empty() && Decide()) {
  }
}

std::vector<AnswerEvent> Walker::Take() { return std::exchange(events_, {}); }

bool Walker::Decide() {
  if (faulted_) {
    Emit(EventKind::kText, program_->Spelled(held_));
    held_.clear();
    return true;
  }
  if (inside_ && here().kind == PartKind::kJson) {
    TakeOpen();
    return true;
  }
  if (inside_ && here().kind == PartKind::kName && IsNameByte(held_.front())) {
    TakeOpen();
    return true;
  }
  const auto not_blank = std::find_if_not(held_.begin(), held_.end(), IsBlank);
  const auto n_blanks = static_cast<std::size_t>(not_blank - held_.begin());
  bool may_come = false;
  if (TakeFixed(n_blanks, may_come)) return true;
  if (may_come && n_blanks <= kBlanksMax && !over_) return false;
  if (inside_) {
    TakeOpen();
    return true;
  }
  const int open = OpenAfter();
  const bool blanks =
      open >= 0 ? program_->at(open).blanks_before : BlanksMayCome();
  if (n_blanks > 0 && blanks) {
    if (!head_.empty()) head_.append(held_, 0, n_blanks);
    held_.erase(0, n_blanks);
  } else if (open >= 0) {
    at_ = open;
    inside_ = true;
    word_.clear();
    CallSink& self = *this;
    if (here().kind == PartKind::kJson) shape_.emplace(here().shape, self);
    if (here().kind == PartKind::kValue) BeginValue();
  } else {
    Fault("the answer leaves the form of " + program_->family);
  }
  return true;
}

bool Walker::TakeFixed(std::size_t n_blanks, bool& may_come) {
  const std::string_view held = held_;
  for (const int next : program_->After(at_)) {
    const Part& part = program_->at(next);
    if (part.kind != PartKind::kFixed) continue;
    // More blanks are text, however many came in one piece.
    const bool skips = part.blanks_before && n_blanks <= kBlanksMax;
    const std::size_t n_skipped = skips ? n_blanks : 0;
    for (const std::size_t skip : {std::size_t{0}, n_skipped}) {
      const std::string_view rest = held.substr(skip);
      if (rest.starts_with(part.fixed)) {
        Enter(next, skip);
        return true;
      }
      may_come = may_come || part.fixed.starts_with(rest);
    }
  }
  return false;
}

int Walker::OpenAfter() const {
  for (const int next : program_->After(at_)) {
    if (program_->at(next).kind != PartKind::kFixed) return next;
  }
  return -1;
}

bool Walker::BlanksMayCome() const {
  const std::vector<int>& after = program_->After(at_);
  // Blanks behind all that may come are no fault either.
  return after.empty() ||
         std::any_of(after.begin(), after.end(), [&](int next) {
           return program_->at(next).blanks_before;
         });
}

void Walker::Enter(int part, std::size_t n_blanks) {
  // Blanks between two parts belong to none, as in Decide.
  const bool blanks_count = inside_ || !head_.empty();
  const std::string blanks = blanks_count ? held_.substr(0, n_blanks) : "";
  if (inside_ && !Leave()) return;
  at_ = part;
  inside_ = false;
  held_.erase(0, n_blanks + here().fixed.size());
  if (here().in_calls) head_ += blanks + here().fixed;
  if (here().begins_call) in_call_ = true;
  if (here().ends_call && in_call_) {
    if (tool_ == nullptr) return Fault("a call has no name");
    Arguments(n_tags_ == 0 ? "{}" : "}");
    EndCall();
    in_call_ = false;
  }
}

void Walker::TakeOpen() {
  const std::size_t n = held_.front() == kTokenByte ? 2 : 1;
  const std::string bytes = held_.substr(0, n);
  const Part& part = here();
  switch (part.kind) {
    case PartKind::kText:
      held_.erase(0, n);
      TakeText(bytes);
      return;
    case PartKind::kValue:
      held_.erase(0, n);
      TakeValue(bytes);
      return;
    case PartKind::kJson: {
      const int n_before = n_emitted_;
      const auto got = shape_->Push(bytes.front());
      if (got == ShapeReader::Got::kBad) {
        return Fault(std::string(shape_->problem()));
      }
      held_.erase(0, n);
      if (n_emitted_ == n_before && tool_ == nullptr) head_ += bytes;
      if (got == ShapeReader::Got::kDone) {
        inside_ = in_call_ = false;
        shape_.reset();
      }
      return;
    }
    default:
      break;
  }
  const bool fits = part.kind == PartKind::kName     ? IsNameByte(bytes.front())
                    : part.kind == PartKind::kDigits ? IsDigit(bytes.front())
                    : part.kind == PartKind::kId     ? IsNameByte(bytes.front())
                                                 : bytes.front() != kTokenByte;
  if (!fits || word_.size() >= kNameBytesMax) {
    return Fault("a call's head has another form");
  }
  held_.erase(0, n);
  head_ += bytes;
  word_ += bytes;
}

void Walker::TakeText(std::string_view bytes) {
  if (here().role == TextRole::kDropped) return;
  Emit(here().role == TextRole::kReasoning ? EventKind::kReasoning
                                           : EventKind::kText,
       program_->Spelled(bytes));
}

bool Walker::Leave() {
  switch (here().kind) {
    case PartKind::kName:
      if (!BeginCall(word_)) {
        Fault("no tool is named \"" + word_ + "\"");
        return false;
      }
      break;
    case PartKind::kKey:
      if (word_.empty() || tool_ == nullptr) {
        Fault("an argument has no name");
        return false;
      }
      key_ = word_;
      break;
    case PartKind::kValue:
      EndValue();
      break;
    default:
      break;
  }
  return true;
}

void Walker::BeginValue() {
  form_ = here().form == ValueForm::kString ? TagForm::kString
          : here().form == ValueForm::kJson ? TagForm::kJson
          : tool_ == nullptr                ? TagForm::kEither
                                            : FormOf(*tool_, key_);
  value_began_ = line_end_held_ = false;
  Arguments((n_tags_++ == 0 ? "{\"" : ", \"") + JsonStringPart(key_) +
            "\": " + (form_ == TagForm::kString ? "\"" : ""));
}

void Walker::TakeValue(std::string_view bytes) {
  std::string text = program_->Spelled(bytes);
  if (here().lines) {
    const bool first = !std::exchange(value_began_, true);
    if (first && text == "\n") return;
    // The last line end belongs to the tag.
    std::string before(line_end_held_ ? "\n" : "");
    line_end_held_ = text == "\n";
    text = before + (line_end_held_ ? "" : text);
  }
  if (form_ == TagForm::kString) {
    Arguments(JsonStringPart(text));
  } else {
    word_ += text;
  }
}

void Walker::EndValue() {
  Arguments(form_ == TagForm::kString ? "\"" : JsonOfValue(word_));
}

bool Walker::BeginCall(const std::string& name) {
  tool_ = tools_->Find(name);
  if (tool_ == nullptr) return false;
  n_tags_ = 0;
  Emit(EventKind::kCallBegin, name, ++call_);
  return true;
}

void Walker::Arguments(std::string_view json) {
  Emit(EventKind::kCallArguments, json, call_);
}

void Walker::EndCall() {
  Emit(EventKind::kCallEnd, "", call_);
  tool_ = nullptr;
}

void Walker::Emit(EventKind kind, std::string_view text, int call) {
  ++n_emitted_;
  head_.clear();
  const bool joins =
      !events_.empty() && events_.back().kind == kind &&
      events_.back().call == call &&
      (kind == EventKind::kReasoning || kind == EventKind::kText ||
       kind == EventKind::kCallArguments);
  if (joins) {
    events_.back().text += text;
  } else {
    events_.push_back({.kind = kind, .call = call, .text = std::string(text)});
  }
}

void Walker::Finish() {
  over_ = true;
  while (!held_.empty()) (void)Decide();
  if (in_call_) Fault("the answer ends inside a call");
}

void Walker::Fault(const std::string& problem) {
  faulted_ = true;
  inside_ = in_call_ = false;
  shape_.reset();
  const std::string head = std::exchange(head_, {});
  Emit(EventKind::kFault, problem);
  if (!head.empty()) Emit(EventKind::kText, program_->Spelled(head));
}

}  // namespace hearth::output
