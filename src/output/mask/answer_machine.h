// The machine over bytes of an answer: a family's program with the request's
// tools in it. Its states are places in the program and what has come so far;
// each is made when a text comes there.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "grammar/automaton/automaton.h"
#include "grammar/schema/json_rules.h"
#include "output/description/program.h"
#include "output/mask/answer_rules.h"
#include "output/mask/argument_rules.h"
#include "output/tools.h"

namespace hearth::output {

class AnswerMachine : public std::enable_shared_from_this<AnswerMachine> {
 public:
  // `automaton` outlives all use of its states; they keep the machine alive.
  AnswerMachine(grammar::Automaton& automaton,
                std::shared_ptr<const Program> program, AnswerRules rules);

  // Compiles what the tools and the body's form give. kUnsupported,
  // kInvalidArgument: as the schema's compiler; kInvalidArgument too when the
  // program has no answer of this form.
  Result<grammar::StateId> Compile(const ToolSet& tools, bool in_thought,
                                   std::vector<std::string>& notes);

 private:
  // Where a text is.
  struct Place {
    int part = kAnswerStart;
    bool inside = false;          // the open part `part`, else behind it
    int tool = -1;                // of the call being written
    int argument = -1;            // of its tags, the newest
    std::vector<bool> seen = {};  // of its tags
    bool called = false;          // a call has begun
    bool has_body = false;        // the constrained body has come

    auto Key() const {
      return std::tie(part, inside, tool, argument, seen, called, has_body);
    }
    friend bool operator<(const Place& a, const Place& b) {
      return a.Key() < b.Key();
    }
  };

  Result<grammar::StateId> CompileBody(std::vector<std::string>& notes);
  grammar::StateId StateOf(const Place& place);
  void Fill(grammar::StateId state, const Place& place);
  void AddPart(grammar::StateId from, const Place& place, int next);
  void AddName(grammar::StateId from, const Place& after);
  void AddKey(grammar::StateId from, const Place& after);
  void AddValue(grammar::StateId from, Place after);
  void AddShape(grammar::StateId from, const Place& after);
  grammar::Fragment CallOf(const Shape& shape, int tool);
  // The text of the open part the place is in, up to what may follow.
  void AddText(grammar::StateId state, const Place& place);

  Place After(const Place& place, int next) const;
  bool MayCome(const Place& place, int next) const;
  bool MayEnd(const Place& place) const;
  bool BeginsThought(int part) const;
  // Of the argument that the place is at. REQUIRES: there is one.
  TagForm FormAt(const Place& place) const;
  bool Done(bool called, bool has_body) const;
  // Whether an answer can be brought to its end from behind a part.
  void FindEndings();
  bool CanEnd(int part, bool called, bool has_body) const;
  void Link(grammar::StateId from, grammar::Fragment fragment,
            grammar::StateId to);
  const Part& at(int part) const { return program_->at(part); }

  grammar::Automaton& automaton_;
  std::shared_ptr<const Program> program_;
  AnswerRules rules_;
  grammar::JsonRules json_;
  grammar::StateId blanks_ = -1, digit_ = -1, id_char_ = -1, body_ = -1;
  std::vector<ToolRules> tools_;
  std::map<Place, grammar::StateId> states_;
  std::vector<bool> can_end_;  // [part][called][has_body]
};

}  // namespace hearth::output
