#include "output/description/description.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "output/description/tokens.h"

namespace hearth::output {
namespace {

// Far more than a family needs; a description is not always ours.
constexpr std::size_t kPartsMax = 300;
constexpr int kDepthMax = 40;
constexpr int kItemsMax = 20000;

using Kind = Word::Kind;

// A piece of a rule, as positions: Glushkov's construction.
struct Piece {
  std::vector<int> first, last;
  bool empty = true;  // may be nothing
};

void Append(std::vector<int>& to, const std::vector<int>& from) {
  for (const int part : from) {
    if (std::find(to.begin(), to.end(), part) == to.end()) to.push_back(part);
  }
}

class Compiler {
 public:
  explicit Compiler(std::vector<Word> words) : words_(std::move(words)) {}

  Result<Program> Compile() {
    HEARTH_TRY(FindRules());
    AddPart({});
    AddPart({});
    HEARTH_TRY(Start(kAnswerStart, "answer"));
    if (rules_.count("thought") != 0) {
      HEARTH_TRY(Start(kThoughtStart, "thought"));
    }
    HEARTH_TRY(CheckDecided());
    return std::move(program_);
  }

 private:
  // The lines: what is said of the family, and where each rule begins.
  Result<void> FindRules() {
    std::size_t i = 0;
    while (i < words_.size()) {
      if (words_[i].kind == Kind::kLine) {
        ++i;
        continue;
      }
      const std::size_t begin = i;
      while (words_[i].kind != Kind::kLine) ++i;
      HEARTH_TRY(Line(begin, i));
    }
    if (program_.family.empty()) return Wrong(0, "no family is named");
    if (rules_.count("answer") == 0) return Wrong(0, "no rule \"answer\"");
    return {};
  }

  Result<void> Line(std::size_t begin, std::size_t end) {
    const Word& word = words_[begin];
    const auto is = [&](std::size_t i, Kind kind) {
      return begin + i < end && words_[begin + i].kind == kind;
    };
    if (word.text == "family" && is(1, Kind::kName) && end - begin == 2) {
      program_.family = words_[begin + 1].text;
      return {};
    }
    if (word.text == "thought" && is(1, Kind::kLiteral) &&
        is(2, Kind::kLiteral) && end - begin == 3) {
      program_.thought_begin = words_[begin + 1].text;
      program_.thought_end = words_[begin + 2].text;
      return {};
    }
    if (word.kind != Kind::kName || !is(1, Kind::kSign) ||
        words_[begin + 1].text != "=") {
      return Wrong(begin, "a line is a rule, the family or its thought marks");
    }
    if (!rules_.emplace(word.text, begin + 2).second) {
      return Wrong(begin, "a second rule \"" + word.text + "\"");
    }
    return {};
  }

  Result<void> Start(int part, const std::string& rule) {
    HEARTH_ASSIGN(const Piece piece, Rule(rule, 0));
    const auto at = static_cast<std::size_t>(part);
    program_.follow[at] = piece.first;
    program_.last[at] = piece.empty;
    for (const int last : piece.last) {
      program_.last[static_cast<std::size_t>(last)] = true;
    }
    return {};
  }

  Result<Piece> Rule(const std::string& name, std::size_t from) {
    const auto rule = rules_.find(name);
    if (rule == rules_.end()) {
      return Wrong(from, "no rule and no part is named \"" + name + "\"");
    }
    if (++depth_ > kDepthMax) {
      return Wrong(rule->second, "rules nest too deeply: none may hold itself");
    }
    const std::size_t back = std::exchange(at_, rule->second);
    const std::size_t first_part = program_.parts.size();
    HEARTH_ASSIGN(Piece piece, Choice());
    if (words_[at_].kind != Kind::kLine) {
      return Wrong(at_, "a rule ends here for no reason");
    }
    const bool call = name == "call" || name.starts_with("call_");
    const bool calls = call || name == "calls" || name.starts_with("calls_");
    for (std::size_t i = first_part; i < program_.parts.size(); ++i) {
      Part& part = program_.parts[i];
      part.in_calls = part.in_calls || calls;
      part.in_call = part.in_call || call;
    }
    if (call) {
      for (const int part : piece.first) At(part).begins_call = true;
    }
    at_ = back;
    --depth_;
    return piece;
  }

  Result<Piece> Choice() {
    if (++depth_ > kDepthMax) return Wrong(at_, "brackets nest too deeply");
    HEARTH_ASSIGN(Piece all, Sequence());
    while (TakeSign("|")) {
      HEARTH_ASSIGN(const Piece one, Sequence());
      Append(all.first, one.first);
      Append(all.last, one.last);
      all.empty = all.empty || one.empty;
    }
    --depth_;
    return all;
  }

  Result<Piece> Sequence() {
    std::vector<Piece> pieces;
    std::vector<bool> blanks;  // before each, and one more
    blanks.push_back(false);
    while (true) {
      const Word& word = words_[at_];
      if (word.kind == Kind::kName && word.text == "ws") {
        ++at_;
        blanks.back() = true;
        continue;
      }
      if (word.kind == Kind::kName && word.text == "end") {
        ++at_;
        if (pieces.empty()) return Wrong(at_ - 1, "\"end\" of nothing");
        for (const int part : pieces.back().last) At(part).ends_call = true;
        continue;
      }
      const bool begins =
          word.kind == Kind::kName || word.kind == Kind::kLiteral ||
          (word.kind == Kind::kSign && (word.text == "(" || word.text == "<<"));
      if (!begins) break;
      HEARTH_ASSIGN(Piece piece, Repeated());
      pieces.push_back(std::move(piece));
      blanks.push_back(false);
    }
    Piece all;
    for (std::size_t i = pieces.size(); i-- > 0;) {
      Piece joined = Joined(pieces[i], all);
      all = std::move(joined);
      if (!blanks[i]) continue;
      for (const int part : all.first) At(part).blanks_before = true;
    }
    return all;
  }

  Piece Joined(const Piece& a, const Piece& b) {
    for (const int part : a.last) {
      Append(program_.follow[static_cast<std::size_t>(part)], b.first);
    }
    Piece all{a.first, b.last, a.empty && b.empty};
    if (a.empty) Append(all.first, b.first);
    if (b.empty) Append(all.last, a.last);
    return all;
  }

  Result<Piece> Repeated() {
    HEARTH_ASSIGN(Piece piece, Item());
    while (true) {
      const bool again = PeekSign("*") || PeekSign("+");
      if (!again && !PeekSign("?")) return piece;
      if (again) {
        for (const int part : piece.last) {
          Append(program_.follow[static_cast<std::size_t>(part)], piece.first);
        }
      }
      if (!PeekSign("+")) piece.empty = true;
      ++at_;
    }
  }

  Result<Piece> Item() {
    // Rules that hold nothing could be put in without end.
    if (++n_items_ > kItemsMax) return Wrong(at_, "rules unfold too far");
    const std::size_t begin = at_;
    const Word word = words_[at_++];
    if (word.kind == Kind::kLiteral) {
      return OnePart({.kind = PartKind::kFixed, .fixed = word.text}, begin);
    }
    if (word.kind == Kind::kSign && word.text == "(") {
      HEARTH_ASSIGN(Piece piece, Choice());
      if (!TakeSign(")")) return Wrong(at_, "a bracket that does not close");
      return piece;
    }
    if (word.kind == Kind::kSign) {  // <<
      const Word literal = words_[at_];
      if (literal.kind != Kind::kLiteral) {
        return Wrong(at_, "<< is followed by a literal");
      }
      ++at_;
      if (!TakeSign(">>")) return Wrong(at_, ">> is missing");
      return OnePart(
          {.kind = PartKind::kFixed, .fixed = literal.text, .special = true},
          begin);
    }
    return Named(word, begin);
  }

  Result<Piece> Named(const Word& word, std::size_t begin) {
    if (word.text == "text") {
      TextRole role = TextRole::kDropped;
      if (TakeName("as")) {
        if (TakeName("reasoning")) {
          role = TextRole::kReasoning;
        } else if (TakeName("content")) {
          role = TextRole::kContent;
        } else {
          return Wrong(at_, "text is reasoning or content");
        }
      }
      return OnePart({.kind = PartKind::kText, .role = role}, begin);
    }
    if (word.text == "value") {
      Part part{.kind = PartKind::kValue};
      if (TakeName("as")) {
        if (TakeName("string")) {
          part.form = ValueForm::kString;
        } else if (TakeName("json")) {
          part.form = ValueForm::kJson;
        } else {
          return Wrong(at_, "a value is string or json");
        }
      }
      part.lines = TakeName("lines");
      return OnePart(part, begin);
    }
    if (word.text == "json" && TakeSign("(")) {
      Part part{.kind = PartKind::kJson};
      HEARTH_ASSIGN(part.shape, ShapeOf());
      part.ends_call = true;
      if (!TakeSign(")")) return Wrong(at_, "a bracket that does not close");
      return OnePart(part, begin);
    }
    for (const auto& [name, kind] :
         {std::pair{"name", PartKind::kName}, std::pair{"key", PartKind::kKey},
          std::pair{"digits", PartKind::kDigits},
          std::pair{"id", PartKind::kId}}) {
      if (word.text == name) return OnePart({.kind = kind}, begin);
    }
    return Rule(word.text, begin);
  }

  Result<Shape> ShapeOf() {
    if (TakeName("arguments")) return Shape{};
    const bool list = TakeSign("[");
    if (!TakeSign("{")) return Wrong(at_, "an object or \"arguments\"");
    Shape shape{.kind = list ? ShapeKind::kCalls : ShapeKind::kCall};
    if (list && TakeName("name")) {
      if (!TakeSign(":") || !TakeName("arguments")) {
        return Wrong(at_, "name: arguments");
      }
      shape.kind = ShapeKind::kNamedCalls;
    } else {
      do {
        HEARTH_TRY(Member(shape));
      } while (TakeSign(","));
      if (shape.name_key.empty() || shape.arguments_key.empty()) {
        return Wrong(at_, "a call has a name and arguments");
      }
    }
    if (!TakeSign("}") || (list && !TakeSign("]"))) {
      return Wrong(at_, "a bracket that does not close");
    }
    return shape;
  }

  Result<void> Member(Shape& shape) {
    const Word key = words_[at_];
    if (key.kind != Kind::kLiteral) return Wrong(at_, "a member's name");
    ++at_;
    if (!TakeSign(":")) return Wrong(at_, "a colon is missing");
    if (TakeName("name")) {
      shape.name_key = key.text;
    } else if (TakeName("arguments")) {
      shape.arguments_key = key.text;
    } else if (TakeName("id")) {
      shape.id_key = key.text;
    } else {
      return Wrong(at_, "a member is name, arguments or id");
    }
    return {};
  }

  Result<Piece> OnePart(Part part, std::size_t begin) {
    if (program_.parts.size() >= kPartsMax) {
      return Wrong(begin, "more than " + std::to_string(kPartsMax) + " parts");
    }
    const bool empty = part.kind == PartKind::kText;
    const int at = AddPart(std::move(part));
    return Piece{{at}, {at}, empty};
  }

  int AddPart(Part part) {
    program_.parts.push_back(std::move(part));
    program_.follow.emplace_back();
    program_.last.push_back(false);
    return static_cast<int>(program_.parts.size()) - 1;
  }

  // What comes next must be clear from its first bytes.
  Result<void> CheckDecided() const {
    for (const std::vector<int>& next : program_.follow) {
      int n_open = 0;
      for (const int a : next) {
        const Part& part = program_.at(a);
        if (part.kind != PartKind::kFixed) {
          if (++n_open > 1) return Undecided("two open parts meet");
          continue;
        }
        for (const int b : next) {
          const Part& other = program_.at(b);
          if (a == b || other.kind != PartKind::kFixed) continue;
          if (other.fixed.starts_with(part.fixed)) {
            return Undecided("\"" + part.fixed + "\" and \"" + other.fixed +
                             "\" begin alike");
          }
        }
      }
    }
    return {};
  }

  Error Undecided(const std::string& problem) const {
    return {Code::kInvalidArgument,
            "description of " + program_.family + ": " + problem};
  }

  Part& At(int part) { return program_.parts[static_cast<std::size_t>(part)]; }
  bool PeekSign(std::string_view sign) const {
    return words_[at_].kind == Kind::kSign && words_[at_].text == sign;
  }
  bool TakeSign(std::string_view sign) {
    if (!PeekSign(sign)) return false;
    ++at_;
    return true;
  }
  bool TakeName(std::string_view name) {
    if (words_[at_].kind != Kind::kName || words_[at_].text != name) {
      return false;
    }
    ++at_;
    return true;
  }
  Error Wrong(std::size_t word, const std::string& problem) const {
    const int line = word < words_.size() ? words_[word].line : 0;
    return WrongDescription(line, problem);
  }

  std::vector<Word> words_;  // ends with kLine
  std::map<std::string, std::size_t> rules_;
  std::size_t at_ = 0;
  int depth_ = 0, n_items_ = 0;
  Program program_;
};

}  // namespace

Result<Program> ParseDescription(std::string_view text) {
  HEARTH_ASSIGN(std::vector<Word> words, WordsOf(text));
  return Compiler(std::move(words)).Compile();
}

}  // namespace hearth::output
