// The parts of JSON that every schema is made of, as callable rules.
#pragma once

#include <string_view>

#include "grammar/automaton/automaton.h"

namespace hearth::grammar {

// Numbers have at most 16 digits before the point and 16 behind it, and 3 in
// the exponent; between tokens stands nothing, a blank, or one line end with at
// most 32 blanks: models that may go on with blanks or digits for ever
// sometimes do.
class JsonRules {
 public:
  explicit JsonRules(Automaton& automaton);

  StateId blank() const { return blank_; }
  StateId string() const { return string_; }
  StateId string_char() const { return string_char_; }  // one, escapes included
  StateId integer() const { return integer_; }
  StateId number() const { return number_; }
  StateId boolean() const { return boolean_; }
  StateId null() const { return null_; }
  StateId object() const { return object_; }  // of any members
  StateId array() const { return array_; }    // of any items
  StateId any() const { return any_; }

  // `text`, then blanks.
  Fragment Token(std::string_view text);
  // The rule of open (item ("," item)*)? close.
  StateId List(std::string_view open, StateId item, std::string_view close);

 private:
  void MakeString();
  void MakeNumbers();

  Automaton& automaton_;
  StateId blank_, string_, string_char_, integer_, number_, boolean_, null_,
      object_, array_, any_;
};

}  // namespace hearth::grammar
