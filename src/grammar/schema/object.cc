// Objects whose members come in any order, each at most once.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "grammar/schema/compiler.h"
#include "grammar/text/char_set.h"
#include "text/unicode/utf8.h"

namespace hearth::grammar {
namespace {

using Seen = std::vector<bool>;

// The states of one object, made as texts come to them.
class ObjectStates : public std::enable_shared_from_this<ObjectStates> {
 public:
  ObjectStates(JsonRules rules, ObjectShape shape)
      : rules_(std::move(rules)), shape_(std::move(shape)) {}

  Fragment Build(Automaton& a, JsonRules& rules) {
    const Fragment open = rules.Token("{");
    out_ = a.AddState();
    const Seen none(shape_.members.size());
    if (MayEnd(none)) EndFrom(a, open.out);
    if (AnyLeft(none)) a.AddEmpty(open.out, MemberState(a, none));
    return {open.in, out_};
  }

 private:
  static int CountOf(const Seen& seen) {
    return static_cast<int>(std::count(seen.begin(), seen.end(), true));
  }

  bool MayEnd(const Seen& seen) const {
    if (CountOf(seen) < shape_.n_min) return false;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (shape_.members[i].required && !seen[i]) return false;
    }
    return true;
  }

  // Whether all members that the limit leaves must be required ones.
  bool NoRoomForOptional(const Seen& seen) const {
    if (shape_.n_max < 0) return false;
    int n_missing = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      n_missing += shape_.members[i].required && !seen[i] ? 1 : 0;
    }
    return CountOf(seen) + n_missing >= shape_.n_max;
  }

  void EndFrom(Automaton& a, StateId from) { a.AddEdge(from, '}', '}', out_); }

  // Where a member begins.
  StateId MemberState(Automaton& a, const Seen& seen) {
    const auto it = member_states_.find(seen);
    if (it != member_states_.end()) return it->second;
    const StateId state = a.AddLateState(
        [self = shared_from_this(), seen](Automaton& machine, StateId id) {
          self->FillMember(machine, id, seen);
        });
    member_states_.emplace(seen, state);
    return state;
  }

  // Where a member has ended.
  StateId AfterState(Automaton& a, const Seen& seen) {
    const auto it = after_states_.find(seen);
    if (it != after_states_.end()) return it->second;
    const StateId state = a.AddState();
    after_states_.emplace(seen, state);
    if (MayEnd(seen)) EndFrom(a, state);
    if (AnyLeft(seen)) {
      const StateId comma = a.AddState();
      a.AddEdge(state, ',', ',', comma);
      a.AddCall(comma, rules_.blank(), MemberState(a, seen));
    }
    return state;
  }

  // Whether another member may follow. One that must come keeps its place in
  // the count.
  bool AnyLeft(const Seen& seen) const {
    if (shape_.n_max >= 0 && CountOf(seen) >= shape_.n_max) return false;
    return shape_.other_name >= 0 ||
           std::find(seen.begin(), seen.end(), false) != seen.end();
  }

  void FillMember(Automaton& a, StateId from, const Seen& seen) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i]) continue;
      const ObjectShape::Member& member = shape_.members[i];
      if (!member.required && NoRoomForOptional(seen)) continue;
      const Fragment name = a.Literal(Json(member.name).dump());
      a.AddEmpty(from, name.in);
      Seen after = seen;
      after[i] = true;
      FinishMember(a, name.out, member.value, after);
    }
    if (shape_.other_name < 0) return;
    const StateId named = a.AddState();
    a.AddCall(from, shape_.other_name, named);
    FinishMember(a, named, shape_.other_value, seen);
  }

  // ":" and the value behind a name.
  void FinishMember(Automaton& a, StateId named, StateId value,
                    const Seen& after) {
    const StateId colon = a.AddState();
    const StateId begin = a.AddState();
    const StateId end = a.AddState();
    const StateId spaced = a.AddState();
    a.AddCall(named, rules_.blank(), colon);
    a.AddEdge(colon, ':', ':', begin);
    a.AddCall(begin, rules_.blank(), end);
    a.AddCall(end, value, spaced);
    a.AddCall(spaced, rules_.blank(), AfterState(a, after));
  }

  JsonRules rules_;
  ObjectShape shape_;
  StateId out_ = -1;
  std::map<Seen, StateId> member_states_, after_states_;
};

struct NameNode {
  std::map<char32_t, std::unique_ptr<NameNode>> next;
  bool ends = false;
};

// From `from`, inside the quotes: every rest of a name that leaves the listed
// ones. An escape is not allowed while the name may still become a listed one,
// since it could spell it.
void AddOtherNames(Automaton& a, JsonRules& rules, const NameNode& node,
                   StateId from, StateId body, StateId out) {
  CharSet own = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  for (const auto& [code, below] : node.next) {
    own.Add(code, code);
    const Fragment one = JsonChar(a, {{code, code}});
    a.AddEmpty(from, one.in);
    AddOtherNames(a, rules, *below, one.out, body, out);
  }
  const Fragment other = RawChar(a, own.Complement());
  a.AddEmpty(from, other.in);
  a.AddEmpty(other.out, body);
  if (!node.ends) a.AddEdge(from, '"', '"', out);
}

}  // namespace

Fragment ObjectOf(Automaton& automaton, JsonRules& rules, ObjectShape shape) {
  const auto states = std::make_shared<ObjectStates>(rules, std::move(shape));
  return states->Build(automaton, rules);
}

StateId NameOtherThan(Automaton& automaton, JsonRules& rules,
                      const std::vector<std::string>& names) {
  if (names.empty()) return rules.string();
  NameNode root;
  for (const std::string& name : names) {
    NameNode* node = &root;
    for (std::size_t i = 0; i < name.size();) {
      const Utf8Char c = DecodeUtf8(name, i);
      i += c.length;
      std::unique_ptr<NameNode>& next = node->next[c.code];
      if (next == nullptr) next = std::make_unique<NameNode>();
      node = next.get();
    }
    node->ends = true;
  }
  const Fragment quote = automaton.Literal("\"");
  const StateId out = automaton.AddState();
  const StateId body = automaton.AddState();
  automaton.AddCall(body, rules.string_char(), body);
  automaton.AddEdge(body, '"', '"', out);
  AddOtherNames(automaton, rules, root, quote.out, body, out);
  return automaton.Close({quote.in, out});
}

}  // namespace hearth::grammar
