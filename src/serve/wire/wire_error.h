// A refusal in words of HTTP, and a value or such a refusal.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "hearth/result.h"

namespace hearth::serve {

enum class Dialect : std::uint8_t {
  kChat,            // POST /v1/chat/completions
  kCompletions,     // POST /v1/completions
  kResponses,       // POST /v1/responses
  kMessages,        // POST /v1/messages and .../count_tokens
  kOllamaChat,      // POST /api/chat
  kOllamaGenerate,  // POST /api/generate
  kLlamaCompletion  // POST /completion, /completions and /infill
};

struct WireError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string code = {};     // "context_length_exceeded", ...; may be empty
  std::string param = {};    // the field's path; may be empty
  std::string message = {};  // names the cause and the remedy
};

// An error's body in the words of a dialect.
std::string ErrorBody(Dialect dialect, const WireError& error,
                      const std::string& request_id);

// The prompt of `n_prompt` tokens does not fit into a context of `n_context`:
// in the words that each dialect's clients look for, and then compact.
WireError ContextExceeded(Dialect dialect, std::int64_t n_prompt,
                          std::int64_t n_context);

// As Result<T>, HEARTH_TRY and HEARTH_ASSIGN included.
template <typename T>
class [[nodiscard]] Parsed {
 public:
  Parsed(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Parsed(WireError error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  // REQUIRES: ok().
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  // REQUIRES: !ok().
  const WireError& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, WireError> state_;
};

// Nothing, or a refusal.
struct Done {};
using Checked = Parsed<Done>;

}  // namespace hearth::serve
