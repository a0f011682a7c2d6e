// Errors by value: every call that a file, a request or a limit can make fail
// returns Result<T>. Nothing in the library throws across its border, prints or
// aborts on input.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace hearth {

enum class Code {
  kInvalidArgument,  // the caller asked for something that cannot be
  kNotFound,         // no such file, prefix or session
  kCorrupt,          // the bytes are there and are wrong
  kIncompatible,     // the bytes are fine, but made by another model or version
  kUnsupported,      // well formed, but hearth has no code for it
  kResourceFull,     // a limit was reached: blocks, disk budget, context
  kIo,               // the operating system said no; message holds its words
  kCancelled,        // the caller's stop flag was raised
};

struct Error {
  Code code;
  std::string message;  // one line, names the file or request and the remedy
};

// A value or an Error. `ok()` first, then `value()` or `error()`.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  Result(Code code, std::string message)
      : state_(std::in_place_index<1>, Error{code, std::move(message)}) {}

  bool ok() const { return state_.index() == 0; }
  // REQUIRES: ok().
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T& operator*() const& { return value(); }
  // REQUIRES: !ok().
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  Result(Code code, std::string message)
      : error_(Error{code, std::move(message)}) {}
  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

// Hands an error of `expr` to the caller; otherwise goes on.
#define HEARTH_TRY(expr)                                           \
  do {                                                             \
    auto hearth_try_result = (expr);                               \
    if (!hearth_try_result.ok()) return hearth_try_result.error(); \
  } while (false)

#define HEARTH_CONCAT_INNER(a, b) a##b
#define HEARTH_CONCAT(a, b) HEARTH_CONCAT_INNER(a, b)
// HEARTH_ASSIGN(auto x, Call()): x is the value, or the error is returned.
#define HEARTH_ASSIGN(declaration, expr)                    \
  auto HEARTH_CONCAT(hearth_result_, __LINE__) = (expr);    \
  if (!HEARTH_CONCAT(hearth_result_, __LINE__).ok())        \
    return HEARTH_CONCAT(hearth_result_, __LINE__).error(); \
  declaration = std::move(HEARTH_CONCAT(hearth_result_, __LINE__)).value()

}  // namespace hearth
