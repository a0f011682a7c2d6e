// What a layer keeps at a sequence's newest position, however many tokens stand
// before it. Numbers in fp32.
#pragma once

#include <cstdint>
#include <vector>

namespace hearth {

// How a token changes a state. Part of stored identities; never renumbered.
enum class StateRule : std::uint8_t {
  // [n][width]: the last n inputs of a causal convolution, the oldest first.
  kLastInputs = 1,
  // [heads][key_dim][value_dim]: the matrices of a gated delta net.
  kDeltaNet = 2,
  // [heads][n_state][head_dim]: the matrices of a Mamba-2 mixer.
  kMamba2 = 3,
};

struct StateShape {
  StateRule rule = StateRule::kLastInputs;
  std::vector<int> dims;  // outermost first, all positive

  std::int64_t n_floats() const {
    std::int64_t n = 1;
    for (const int dim : dims) n *= dim;
    return n;
  }
  // Numbers that a journal keeps of one token (model/state_port.h).
  // kLastInputs: the input. kDeltaNet: of each head its key, value, decay and
  // rate. kMamba2: of each head what its group writes, the input over the time
  // step, and the decay.
  std::int64_t journal_floats() const {
    switch (rule) {
      case StateRule::kLastInputs:
        break;
      case StateRule::kDeltaNet:
        return std::int64_t{dims[0]} * (dims[1] + dims[2] + 2);
      case StateRule::kMamba2:
        return std::int64_t{dims[0]} * (dims[1] + dims[2] + 1);
    }
    return dims[1];
  }

  friend bool operator==(const StateShape&, const StateShape&) = default;
};

}  // namespace hearth
