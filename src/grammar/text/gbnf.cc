#include "grammar/text/gbnf.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "grammar/automaton/left_recursion.h"
#include "grammar/text/char_set.h"
#include "grammar/text/scanner.h"
#include "text/unicode/utf8.h"

namespace hearth::grammar {
namespace {

constexpr int kNestingMax = 200;
constexpr int kRepeatMax = 100000;

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class GbnfReader {
 public:
  GbnfReader(std::string_view text, Automaton& automaton)
      : scan_(text, "the grammar"), automaton_(&automaton) {}

  Result<StateId> Read() {
    SkipBlanks(/*lines=*/true);
    while (!scan_.AtEnd()) {
      HEARTH_TRY(ReadRule());
      SkipBlanks(/*lines=*/true);
    }
    if (!rules_.contains("root")) {
      return {Code::kInvalidArgument,
              "the grammar has no rule named root, where an answer begins"};
    }
    std::vector<StateId> starts;
    std::vector<std::string> names;
    for (const auto& [name, rule] : rules_) {
      if (!rule.defined) {
        return {Code::kInvalidArgument, "the grammar uses the rule " + name +
                                            " and does not define it"};
      }
      starts.push_back(rule.start);
      names.push_back(name);
    }
    const int bad = LeftRecursiveRule(*automaton_, starts);
    if (bad >= 0) {
      return {Code::kInvalidArgument,
              "the grammar's rule " + names[static_cast<std::size_t>(bad)] +
                  " may call itself before it takes anything; write it as a "
                  "repetition, with * or +"};
    }
    return rules_.at("root").start;
  }

 private:
  struct Rule {
    StateId start = -1;
    bool defined = false;
  };

  void SkipBlanks(bool lines) {
    while (!scan_.AtEnd()) {
      const char c = scan_.Peek();
      if (c == '#') {
        while (!scan_.AtEnd() && scan_.Peek() != '\n') scan_.Skip();
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        scan_.Skip();
      } else {
        return;
      }
    }
  }

  std::string ReadName() {
    const std::size_t begin = scan_.position();
    while (IsNameChar(scan_.Peek())) scan_.Skip();
    return std::string(scan_.From(begin));
  }

  Rule& RuleNamed(const std::string& name) {
    Rule& rule = rules_[name];
    if (rule.start < 0) rule.start = automaton_->AddState();
    return rule;
  }

  Result<void> ReadRule() {
    const std::string name = ReadName();
    if (name.empty()) return scan_.Wrong("expected the name of a rule");
    SkipBlanks(false);
    if (!scan_.Take("::=")) return scan_.Wrong("expected ::= after " + name);
    SkipBlanks(true);
    if (RuleNamed(name).defined) {
      return scan_.Wrong("the rule " + name + " is defined twice");
    }
    HEARTH_ASSIGN(const Fragment body, ReadChoice(0));
    if (!scan_.AtEnd() && scan_.Peek() != '\n' && scan_.Peek() != '\r') {
      return scan_.Wrong("expected the end of the rule " + name);
    }
    Rule& rule = RuleNamed(name);
    rule.defined = true;
    automaton_->AddEmpty(rule.start, automaton_->Close(body));
    return {};
  }

  // A rule goes on in the next line only where that begins with "|".
  bool TakeBar(int depth) {
    const Scanner before = scan_;
    SkipBlanks(true);
    if (scan_.Take('|')) return true;
    if (depth == 0) scan_ = before;
    return false;
  }

  Result<Fragment> ReadChoice(int depth) {
    if (depth > kNestingMax) return scan_.Wrong("parentheses nest too deep");
    std::vector<Fragment> choices;
    do {
      SkipBlanks(true);
      HEARTH_ASSIGN(const Fragment sequence, ReadSequence(depth));
      choices.push_back(sequence);
    } while (TakeBar(depth));
    return automaton_->Choice(choices);
  }

  Result<Fragment> ReadSequence(int depth) {
    Fragment whole = automaton_->Empty();
    while (true) {
      SkipBlanks(depth > 0);
      const char c = scan_.Peek();
      const bool begins = c == '"' || c == '[' || c == '(' || c == '.' ||
                          c == '<' || c == '!' || IsNameChar(c);
      if (!begins) return whole;
      HEARTH_ASSIGN(Fragment item, ReadItem(depth));
      HEARTH_ASSIGN(item, ReadRepetition(item));
      whole = automaton_->Sequence(whole, item);
    }
  }

  Result<Fragment> ReadItem(int depth) {
    if (scan_.Take('"')) return ReadLiteral();
    if (scan_.Take('[')) return ReadClass();
    if (scan_.Take('.')) return RawChar(*automaton_, CharSet::All());
    if (scan_.Peek() == '<' || scan_.Peek() == '!') {
      Error error = scan_.Wrong(
          "references to tokens (<[id]>, <text>) are not supported; write the "
          "token's text in quotes");
      error.code = Code::kUnsupported;
      return error;
    }
    if (scan_.Take('(')) {
      HEARTH_ASSIGN(const Fragment inner, ReadChoice(depth + 1));
      SkipBlanks(true);
      if (!scan_.Take(')')) return scan_.Wrong("expected )");
      return inner;
    }
    return automaton_->Call(RuleNamed(ReadName()).start);
  }

  Result<char32_t> ReadEscape() {
    const char c = scan_.Peek();
    scan_.Skip();
    switch (c) {
      case 'n':
        return U'\n';
      case 't':
        return U'\t';
      case 'r':
        return U'\r';
      case 'x':
        return scan_.TakeHex(2);
      case 'u':
        return scan_.TakeHex(4);
      case 'U':
        return scan_.TakeHex(8);
      case '"':
      case '\\':
      case '[':
      case ']':
      case '-':
      case '^':
      case '/':
        return static_cast<char32_t>(c);
      default:
        return scan_.Wrong(std::string("unknown escape \\") + c);
    }
  }

  Result<char32_t> ReadChar() {
    if (scan_.Take('\\')) return ReadEscape();
    return scan_.TakeChar();
  }

  Result<Fragment> ReadLiteral() {
    std::string bytes;
    while (!scan_.Take('"')) {
      if (scan_.AtEnd() || scan_.Peek() == '\n') {
        return scan_.Wrong("the quoted text has no end");
      }
      HEARTH_ASSIGN(const char32_t code, ReadChar());
      AppendUtf8(bytes, code);
    }
    return automaton_->Literal(bytes);
  }

  Result<Fragment> ReadClass() {
    const bool negated = scan_.Take('^');
    CharSet set;
    while (!scan_.Take(']')) {
      if (scan_.AtEnd() || scan_.Peek() == '\n') {
        return scan_.Wrong("the character class has no ]");
      }
      HEARTH_ASSIGN(const char32_t first, ReadChar());
      char32_t last = first;
      if (scan_.Peek() == '-' && scan_.Peek(1) != ']') {
        scan_.Skip();
        HEARTH_ASSIGN(last, ReadChar());
      }
      if (last < first) return scan_.Wrong("a range runs backwards");
      set.Add(first, last);
    }
    if (negated) set = set.Complement();
    if (set.empty()) return scan_.Wrong("the character class has no character");
    return RawChar(*automaton_, set);
  }

  Result<Fragment> ReadRepetition(Fragment item) {
    if (scan_.Take('*')) return automaton_->Star(item);
    if (scan_.Take('+')) return automaton_->Plus(item);
    if (scan_.Take('?')) return automaton_->Optional(item);
    if (!scan_.Take('{')) return item;
    SkipBlanks(true);
    const std::optional<int> n_min = scan_.TakeNumber();
    int n_max = n_min.value_or(0);
    SkipBlanks(true);
    if (scan_.Take(',')) {
      SkipBlanks(true);
      n_max = scan_.TakeNumber().value_or(-1);
      SkipBlanks(true);
    } else if (!n_min.has_value()) {
      return scan_.Wrong("expected a number after {");
    }
    if (!scan_.Take('}')) return scan_.Wrong("expected }");
    if (n_max >= 0 && n_max < n_min.value_or(0)) {
      return scan_.Wrong("the repetition's bounds are in the wrong order");
    }
    if (std::max(n_max, n_min.value_or(0)) > kRepeatMax) {
      return scan_.Wrong("more than " + std::to_string(kRepeatMax) +
                         " repetitions");
    }
    return automaton_->Repeat(automaton_->Close(item), n_min.value_or(0),
                              n_max);
  }

  Scanner scan_;
  Automaton* automaton_;
  std::map<std::string, Rule> rules_;
};

}  // namespace

Result<StateId> CompileGbnf(std::string_view text, Automaton& automaton) {
  return GbnfReader(text, automaton).Read();
}

Result<std::shared_ptr<Grammar>> GrammarFromGbnf(std::string_view text) {
  auto automaton = std::make_unique<Automaton>();
  HEARTH_ASSIGN(const StateId root, CompileGbnf(text, *automaton));
  return Grammar::Make(std::move(automaton), root);
}

}  // namespace hearth::grammar
