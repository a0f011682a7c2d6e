#include "output/mask/answer_machine.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "grammar/schema/compiler.h"
#include "grammar/text/char_set.h"
#include "grammar/text/gbnf.h"
#include "output/mask/text_until.h"

namespace hearth::output {

using grammar::Automaton;
using grammar::CharSet;
using grammar::Fragment;
using grammar::StateId;

namespace {

constexpr int kBlanksMax = 4;
constexpr int kIdBytes = 9;
constexpr int kCallDigitsMax = 3;

bool Fits(ValueForm written, TagForm wanted) {
  if (written == ValueForm::kString) return wanted != TagForm::kJson;
  return written == ValueForm::kBySchema || wanted != TagForm::kString;
}

}  // namespace

AnswerMachine::AnswerMachine(Automaton& automaton,
                             std::shared_ptr<const Program> program,
                             AnswerRules rules)
    : automaton_(automaton),
      program_(std::move(program)),
      rules_(std::move(rules)),
      json_(automaton) {
  const CharSet blank = {{' ', ' '}, {'\n', '\n'}};
  const CharSet letters = {{'a', 'z'}, {'A', 'Z'}, {'0', '9'}};
  const StateId one = automaton_.Close(RawChar(automaton_, blank));
  blanks_ = automaton_.Close(automaton_.Repeat(one, 0, kBlanksMax));
  digit_ = automaton_.Close(RawChar(automaton_, {{'0', '9'}}));
  id_char_ = automaton_.Close(RawChar(automaton_, letters));
}

Result<StateId> AnswerMachine::CompileBody(std::vector<std::string>& notes) {
  switch (rules_.body) {
    case BodyForm::kText:
      return StateId{-1};
    case BodyForm::kJsonObject:
      return json_.object();
    case BodyForm::kGbnf:
      return grammar::CompileGbnf(rules_.body_grammar, automaton_);
    case BodyForm::kJsonSchema:
      break;
  }
  HEARTH_ASSIGN(const Json schema,
                ParseJson(rules_.body_grammar, "the answer's schema"));
  grammar::SchemaCompiler compiler(automaton_, schema, {});
  HEARTH_ASSIGN(const StateId rule, compiler.Compile(schema, "#"));
  for (std::string& note : compiler.TakeNotes()) {
    notes.push_back("the answer's schema: " + std::move(note));
  }
  return rule;
}

Result<StateId> AnswerMachine::Compile(const ToolSet& tools, bool in_thought,
                                       std::vector<std::string>& notes) {
  // Before anything else: a grammar's check looks at the whole machine.
  HEARTH_ASSIGN(body_, CompileBody(notes));
  bool tags = false;
  for (const Part& part : program_->parts) {
    tags = tags || part.kind == PartKind::kKey;
  }
  if (rules_.calls) {
    for (const Tool& tool : tools.tools()) {
      HEARTH_ASSIGN(ToolRules one,
                    CompileTool(automaton_, tool, tags, rules_.strict, notes));
      tools_.push_back(std::move(one));
    }
  }
  rules_.calls = !tools_.empty();
  FindEndings();
  const int start = in_thought && !program_->After(kThoughtStart).empty()
                        ? kThoughtStart
                        : kAnswerStart;
  if (!CanEnd(start, false, false)) {
    return {Code::kInvalidArgument,
            "answers of the form " + program_->family +
                " cannot be what is asked for: a call needs a tool"};
  }
  Place place;
  place.part = start;
  return StateOf(place);
}

bool AnswerMachine::Done(bool called, bool has_body) const {
  if (rules_.calls_required) return called;
  return rules_.body == BodyForm::kText || called || has_body;
}

bool AnswerMachine::MayEnd(const Place& place) const {
  return program_->MayEnd(place.part) && Done(place.called, place.has_body);
}

// What the rules leave of what may follow.
bool AnswerMachine::MayCome(const Place& place, int next) const {
  const Part& part = at(next);
  if (part.in_calls && !rules_.calls && part.kind != PartKind::kText) {
    return false;
  }
  if (part.begins_call && place.called && !rules_.parallel) return false;
  if (!rules_.thoughts && BeginsThought(next)) return false;
  if (part.kind == PartKind::kText && part.role == TextRole::kContent) {
    if (rules_.calls_required) return false;
    if (rules_.body != BodyForm::kText) {
      return !place.called && !place.has_body;
    }
  }
  // No tag where no argument is left, and in a family that says itself whether
  // a value is a string, only what is true.
  for (const int behind : program_->After(next)) {
    if (place.tool < 0) break;
    const bool value =
        at(behind).kind == PartKind::kValue && place.argument >= 0;
    if (value && !Fits(at(behind).form, FormAt(place))) return false;
    const bool none_left = std::find(place.seen.begin(), place.seen.end(),
                                     false) == place.seen.end();
    if (at(behind).kind == PartKind::kKey && none_left) return false;
  }
  if (part.ends_call && part.kind == PartKind::kFixed && place.tool >= 0) {
    const auto& tool = tools_[static_cast<std::size_t>(place.tool)];
    for (std::size_t i = 0; i < tool.as_tags.size(); ++i) {
      const bool seen = i < place.seen.size() && place.seen[i];
      if (tool.as_tags[i].required && !seen) return false;
    }
  }
  return true;
}

bool AnswerMachine::BeginsThought(int part) const {
  if (at(part).kind != PartKind::kFixed) return false;
  const auto& behind = program_->After(part);
  return std::any_of(behind.begin(), behind.end(), [&](int next) {
    return at(next).kind == PartKind::kText &&
           at(next).role == TextRole::kReasoning;
  });
}

TagForm AnswerMachine::FormAt(const Place& place) const {
  return tools_[static_cast<std::size_t>(place.tool)]
      .as_tags[static_cast<std::size_t>(place.argument)]
      .form;
}

AnswerMachine::Place AnswerMachine::After(const Place& place, int next) const {
  const Part& part = at(next);
  Place after = place;
  after.part = next;
  after.inside = false;
  if (part.begins_call) {
    after.called = true;
    after.tool = after.argument = -1;
    after.seen.clear();
  }
  if (part.ends_call && part.kind == PartKind::kFixed) {
    after.tool = after.argument = -1;
    after.seen.clear();
  }
  if (part.kind == PartKind::kText && part.role == TextRole::kContent) {
    after.has_body = rules_.body != BodyForm::kText;
  }
  return after;
}

void AnswerMachine::FindEndings() {
  const std::size_t n = program_->parts.size();
  can_end_.assign(4 * n, false);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < 4 * n; ++i) {
      if (can_end_[i]) continue;
      Place place;
      place.part = static_cast<int>(i / 4);
      place.called = (i & 2) != 0;
      place.has_body = (i & 1) != 0;
      bool ends = MayEnd(place);
      for (const int next : program_->After(place.part)) {
        if (!MayCome(place, next)) continue;
        const Place after = After(place, next);
        ends = ends || CanEnd(next, after.called, after.has_body);
      }
      can_end_[i] = ends;
      changed = changed || ends;
    }
  }
}

bool AnswerMachine::CanEnd(int part, bool called, bool has_body) const {
  return can_end_[4 * static_cast<std::size_t>(part) + (called ? 2u : 0u) +
                  (has_body ? 1u : 0u)];
}

StateId AnswerMachine::StateOf(const Place& place) {
  const auto known = states_.find(place);
  if (known != states_.end()) return known->second;
  const StateId state = automaton_.AddLateState(
      [self = shared_from_this(), place](Automaton&, StateId id) {
        self->Fill(id, place);
      });
  states_.emplace(place, state);
  return state;
}

void AnswerMachine::Link(StateId from, Fragment fragment, StateId to) {
  automaton_.AddEmpty(from, fragment.in);
  automaton_.AddEmpty(fragment.out, to);
}

void AnswerMachine::Fill(StateId state, const Place& place) {
  if (place.inside) return AddText(state, place);
  if (MayEnd(place)) automaton_.at(state).final = true;
  for (const int next : program_->After(place.part)) {
    if (!MayCome(place, next)) continue;
    const Place after = After(place, next);
    if (CanEnd(next, after.called, after.has_body)) AddPart(state, after, next);
  }
}

void AnswerMachine::AddPart(StateId from, const Place& after, int next) {
  const Part& part = at(next);
  Automaton& a = automaton_;
  Place inside = after;
  inside.inside = true;
  switch (part.kind) {
    case PartKind::kStart:
      return;
    case PartKind::kFixed: {
      const Fragment fixed = a.Literal(part.fixed);
      Link(from,
           part.blanks_before ? a.Sequence(a.Call(blanks_), fixed) : fixed,
           StateOf(after));
      return;
    }
    case PartKind::kText:
      if (part.role == TextRole::kContent && body_ >= 0) {
        const Fragment body = a.Call(body_);
        Link(from,
             part.blanks_before ? a.Sequence(a.Call(blanks_), body) : body,
             StateOf(after));
      } else {
        a.AddEmpty(from, StateOf(inside));
      }
      return;
    case PartKind::kName:
      return AddName(from, after);
    case PartKind::kKey:
      return AddKey(from, after);
    case PartKind::kValue:
      return AddValue(from, after);
    case PartKind::kJson:
      return AddShape(from, after);
    case PartKind::kDigits:
      return Link(from, a.Repeat(digit_, 1, kCallDigitsMax), StateOf(after));
    case PartKind::kId:
      return Link(from, a.Repeat(id_char_, kIdBytes, kIdBytes), StateOf(after));
  }
}

void AnswerMachine::AddText(StateId state, const Place& place) {
  std::vector<std::pair<std::string, StateId>> patterns;
  for (const int next : program_->After(place.part)) {
    if (!MayCome(place, next)) continue;
    const Place after = After(place, next);
    if (!CanEnd(next, after.called, after.has_body)) continue;
    patterns.emplace_back(at(next).fixed, StateOf(after));
  }
  AddTextUntil(automaton_, state, patterns, MayEnd(place));
}

void AnswerMachine::AddName(StateId from, const Place& after) {
  for (std::size_t i = 0; i < tools_.size(); ++i) {
    Place named = after;
    named.tool = static_cast<int>(i);
    named.seen.assign(tools_[i].as_tags.size(), false);
    Link(from, automaton_.Literal(tools_[i].name), StateOf(named));
  }
}

void AnswerMachine::AddKey(StateId from, const Place& after) {
  if (after.tool < 0) return;
  const auto& tags = tools_[static_cast<std::size_t>(after.tool)].as_tags;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    if (after.seen[i]) continue;
    Place with = after;
    with.argument = static_cast<int>(i);
    with.seen[i] = true;
    Link(from, automaton_.Literal(tags[i].name), StateOf(with));
  }
}

void AnswerMachine::AddValue(StateId from, Place after) {
  if (after.tool < 0 || after.argument < 0) return;
  Automaton& a = automaton_;
  const Part& part = at(after.part);
  const ArgumentRule& rule =
      tools_[static_cast<std::size_t>(after.tool)]
          .as_tags[static_cast<std::size_t>(after.argument)];
  const auto lines = [&](Fragment value) {
    if (!part.lines) return value;
    return a.Sequence(a.Literal("\n"), a.Sequence(value, a.Literal("\n")));
  };
  if (rule.form == TagForm::kJson) {
    return Link(from, lines(a.Call(rule.value)), StateOf(after));
  }
  if (part.form == ValueForm::kJson) {
    return Link(from, lines(a.Call(json_.any())), StateOf(after));
  }
  if (!rule.constants.empty()) {
    std::vector<Fragment> choices;
    for (const std::string& one : rule.constants) {
      choices.push_back(a.Literal(one));
    }
    return Link(from, lines(a.Choice(choices)), StateOf(after));
  }
  after.inside = true;
  if (part.lines) {
    Link(from, a.Literal("\n"), StateOf(after));
  } else {
    a.AddEmpty(from, StateOf(after));
  }
}

// One call as models write it: the members in the description's order.
Fragment AnswerMachine::CallOf(const Shape& shape, int tool) {
  Automaton& a = automaton_;
  const ToolRules& rules = tools_[static_cast<std::size_t>(tool)];
  const auto member = [&](const std::string& key) {
    return a.Sequence(json_.Token("\"" + key + "\""), json_.Token(":"));
  };
  const auto spaced = [&](Fragment value) {
    return a.Sequence(value, a.Call(json_.blank()));
  };
  const std::string name = Json(rules.name).dump();
  Fragment call = json_.Token("{");
  if (shape.kind == ShapeKind::kNamedCalls) {
    call = a.Sequence(call, a.Sequence(json_.Token(name), json_.Token(":")));
  } else {
    call = a.Sequence(
        call, a.Sequence(member(shape.name_key), spaced(a.Literal(name))));
    call = a.Sequence(call, json_.Token(","));
    call = a.Sequence(call, member(shape.arguments_key));
  }
  call = a.Sequence(call, spaced(a.Call(rules.arguments)));
  if (!shape.id_key.empty()) {
    const Fragment id = a.Sequence(
        a.Literal("\""),
        a.Sequence(a.Repeat(id_char_, kIdBytes, kIdBytes), a.Literal("\"")));
    call = a.Sequence(call,
                      a.Sequence(json_.Token(","),
                                 a.Sequence(member(shape.id_key), spaced(id))));
  }
  return a.Sequence(call, a.Literal("}"));
}

void AnswerMachine::AddShape(StateId from, const Place& after) {
  Automaton& a = automaton_;
  const Part& part = at(after.part);
  const StateId to = StateOf(after);
  Fragment lead = part.blanks_before ? a.Call(blanks_) : a.Empty();
  if (part.shape.kind == ShapeKind::kArguments) {
    if (after.tool < 0) return;
    const auto& tool = tools_[static_cast<std::size_t>(after.tool)];
    return Link(from, a.Sequence(lead, a.Call(tool.arguments)), to);
  }
  std::vector<Fragment> calls;
  for (std::size_t i = 0; i < tools_.size(); ++i) {
    calls.push_back(CallOf(part.shape, static_cast<int>(i)));
  }
  Fragment call = a.Choice(calls);
  if (part.shape.kind != ShapeKind::kCall) {
    const StateId one = a.Close(call);
    const auto spaced = [&] {
      return a.Sequence(a.Call(one), a.Call(json_.blank()));
    };
    Fragment list = a.Sequence(json_.Token("["), spaced());
    if (rules_.parallel) {
      list = a.Sequence(list, a.Star(a.Sequence(json_.Token(","), spaced())));
    }
    call = a.Sequence(list, a.Literal("]"));
  }
  Link(from, a.Sequence(lead, call), to);
}

}  // namespace hearth::output
