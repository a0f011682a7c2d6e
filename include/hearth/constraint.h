// Which tokens an answer may have: asked by a sampler before and after each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace hearth {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // A bit for each id that may come next, [(n_vocab + 63) / 64] words. All zero
  // only when nothing may come any more.
  virtual void Mask(std::span<std::uint64_t> bits) = 0;
  // `id` has come. REQUIRES: its bit was set.
  virtual void Accept(std::int32_t id) = 0;
  // For guesses ahead: tokens accepted so far, and back to such a count.
  virtual int Mark() const = 0;
  virtual void Return(int mark) = 0;
};

// A new constraint at its beginning: several answers to one prompt each have
// their own.
using MakeConstraint = std::function<std::unique_ptr<TokenConstraint>()>;

}  // namespace hearth
