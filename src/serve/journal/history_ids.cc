#include "serve/journal/history_ids.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace hearth::serve {
namespace {

constexpr std::size_t kPiece = 1024;

// A text's bytes as their tokens come: whole characters, as an answer has them.
class Pieces {
 public:
  explicit Pieces(const TextCodec& codec) : codec_(codec) {}

  // Empty while a character is not complete.
  std::string Push(std::int32_t id) {
    held_.push_back(id);
    const std::string before = Decode({&last_, last_ >= 0 ? 1u : 0u});
    std::vector<std::int32_t> ids;
    if (last_ >= 0) ids.push_back(last_);
    ids.insert(ids.end(), held_.begin(), held_.end());
    const std::string all = Decode(ids);
    // U+FFFD at the end: more of the character is to come, at most 3 bytes.
    if (all.ends_with("\xef\xbf\xbd") && held_.size() < 4) return "";
    last_ = held_.back();
    held_.clear();
    return all.size() >= before.size() ? all.substr(before.size()) : all;
  }

 private:
  std::string Decode(std::span<const std::int32_t> ids) const {
    if (ids.empty()) return "";
    auto text = codec_.Decode(ids);
    return text.ok() ? *std::move(text) : "";
  }

  const TextCodec& codec_;
  std::int32_t last_ = -1;  // a word's blank depends on what is before it
  std::vector<std::int32_t> held_;
};

// An answer's meaning as text: blanks inside the JSON of calls do not count.
class Meaning {
 public:
  void Add(const AnswerEvent& event) {
    using Kind = AnswerEvent::Kind;
    switch (event.kind) {
      case Kind::kReasoning:
        return Run('r', event.text);
      case Kind::kText:
        return Run('t', event.text);
      case Kind::kCallBegin:
        Run('c', event.text);
        arguments_.clear();
        return;
      case Kind::kCallArguments:
        arguments_ += event.text;
        return;
      case Kind::kCallEnd:
        return Run('a', Compact(arguments_));
      case Kind::kFault:
        return Run('f', "");
    }
  }
  const std::string& text() const { return text_; }

 private:
  static std::string Compact(const std::string& json) {
    const auto parsed = nlohmann::ordered_json::parse(json, nullptr, false);
    if (parsed.is_discarded()) return json;
    return parsed.dump(-1, ' ', false,
                       nlohmann::ordered_json::error_handler_t::replace);
  }
  // Pieces of one kind are one text, however they were cut.
  void Run(char kind, const std::string& text) {
    if (kind != kind_ || kind == 'c' || kind == 'a') {
      text_ += '\0';
      text_ += kind;
    }
    kind_ = kind;
    text_ += text;
  }

  std::string text_, arguments_;
  char kind_ = '\0';
};

std::optional<std::string> MeaningOf(const HistoryReading& reading,
                                     std::span<const std::int32_t> answer) {
  auto reader =
      reading.dialogue.Reader(reading.request, AnswerForm{}, reading.prompt);
  if (!reader.ok()) return std::nullopt;
  Meaning meaning;
  Pieces pieces(reading.codec);
  for (const std::int32_t id : answer) {
    const std::string text = pieces.Push(id);
    Token token;
    token.id = id;
    token.text = text;
    for (const AnswerEvent& event : (*reader)->Feed(token)) meaning.Add(event);
  }
  for (const AnswerEvent& event : (*reader)->Finish()) meaning.Add(event);
  return meaning.text();
}

}  // namespace

PrefixName::PrefixName(const std::string& space)
    : chain_(Sha256().Field("hearth journal").Field(space).Finish()) {}

void PrefixName::Add(std::span<const std::int32_t> ids) {
  while (!ids.empty()) {
    const std::size_t n = std::min(ids.size(), kPiece - rest_.size());
    rest_.insert(rest_.end(), ids.begin(),
                 ids.begin() + static_cast<std::ptrdiff_t>(n));
    ids = ids.subspan(n);
    if (rest_.size() < kPiece) return;
    chain_ = Now();
    rest_.clear();
  }
}

Digest PrefixName::Now() const {
  return Sha256().Field(chain_).Field(std::as_bytes(std::span(rest_))).Finish();
}

std::optional<Digest> AnswerName(const HistoryReading& reading,
                                 const PrefixName& before,
                                 std::span<const std::int32_t> answer) {
  const auto meaning = MeaningOf(reading, answer);
  if (!meaning.has_value()) return std::nullopt;
  return Sha256().Field(before.Now()).Field(*meaning).Finish();
}

HistoryUse UseSampledIds(Journal& journal, const Dialogue& dialogue,
                         const TextCodec& codec, const DialogueRequest& request,
                         const std::string& space, RenderedPrompt& prompt) {
  HistoryUse use;
  if (prompt.answers.empty()) return use;
  const std::vector<std::int32_t> rendered = std::move(prompt.ids);
  const std::vector<int> ends = prompt.message_ends, marks = prompt.marks;
  const std::span<const std::int32_t> all(rendered);
  prompt.ids.clear();
  PrefixName before(space);
  const auto add = [&](std::span<const std::int32_t> ids) {
    prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
    before.Add(ids);
  };
  const HistoryReading reading = {dialogue, codec, request, prompt};
  std::size_t at = 0;
  for (IdRange& one : prompt.answers) {
    const auto begin = static_cast<std::size_t>(one.begin);
    const auto end = static_cast<std::size_t>(one.end);
    add(all.subspan(at, begin - at));
    at = end;
    ++use.answers;
    const auto answer = all.subspan(begin, end - begin);
    const auto name = AnswerName(reading, before, answer);
    const auto sampled = name.has_value() ? journal.Find(*name) : std::nullopt;
    one.begin = static_cast<int>(prompt.ids.size());
    use.found += sampled.has_value() ? 1 : 0;
    add(sampled.has_value() ? std::span<const std::int32_t>(sampled->ids)
                            : answer);
    one.end = static_cast<int>(prompt.ids.size());
    const int moved = one.end - static_cast<int>(end);
    for (const auto& [from, to] :
         {std::pair{&ends, &prompt.message_ends}, {&marks, &prompt.marks}}) {
      for (std::size_t i = 0; i < from->size(); ++i) {
        if ((*from)[i] >= static_cast<int>(end)) (*to)[i] = (*from)[i] + moved;
      }
    }
  }
  add(all.subspan(at));
  return use;
}

}  // namespace hearth::serve
