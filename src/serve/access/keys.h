// Who may ask: secrets and the names of those who have them.
//
// Threads  any.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hearth/result.h"

namespace hearth::serve {

class KeyRing {
 public:
  // `path`: lines "name key"; blank ones and those that begin with # are left
  // out. Empty: no file. `single`: one more key, named "key"; empty: none.
  // kInvalidArgument names the line, and refuses a file that others may read.
  // `note` is told when a changed file cannot be used: then the keys before
  // stay.
  static Result<std::unique_ptr<KeyRing>> Open(
      const std::string& path, const std::string& single,
      std::function<void(const std::string&)> note);
  virtual ~KeyRing() = default;

  // Without keys nobody is asked for one.
  virtual int n_keys() const = 0;
  // Whose the secret is. The time does not depend on how much of it is right.
  virtual std::optional<std::string> NameOf(std::string_view secret) = 0;
  // Reads the file again.
  virtual void Reload() = 0;
};

}  // namespace hearth::serve
