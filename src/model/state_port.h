// What the forward pass needs of a sequence's states: a step reads what the
// token before it left and writes what its own last token leaves. The rest is
// KvPort's: a step that is abandoned changes no state.
#pragma once

namespace hearth {

// Valid between Extend and Commit or Abandon.
//
// Threads  different states, and different parts of one, may be read and
//          written at once.
class StatePort {
 public:
  virtual ~StatePort() = default;

  // As the newest token left it; zeros before the first.
  virtual const float* Read(int state) const = 0;
  // Where the step leaves it; distinct memory. All of it must be written.
  virtual float* Write(int state) = 0;
  // Room for what each of the step's tokens changes the state by, StateShape::
  // journal_floats() of each, so that the sequence can be cut back to any of
  // them; null when it cannot be anyway.
  virtual float* Journal(int state) = 0;
};

}  // namespace hearth
