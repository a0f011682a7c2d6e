// The settings of sampling by name: options of `sample` and `chat`, and what
// /set changes in a conversation.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth::cli {

struct SamplingSetting {
  std::string name;  // "top-k"
  std::string other_name = {};
  const char* help;
  bool is_list = false;  // may be given several times
  // kInvalidArgument without the setting's name, as for an option's value.
  Result<void> (*set)(std::span<const std::string> values,
                      SamplingOptions& options);
  std::string (*show)(const SamplingOptions& options);
};

// Of both names; null when there is none.
std::span<const SamplingSetting> SamplingSettings();
const SamplingSetting* FindSamplingSetting(const std::string& name);

// What a command line says of sampling.
class SamplingArgs {
 public:
  void Add(Command& command);
  // The model's own settings, and those that were given in their place.
  SamplingOptions Over(const SamplingDefaults& model) const;
  bool seed_given() const { return seed_.has_value(); }

 private:
  struct Given {
    const SamplingSetting* setting;
    std::vector<std::string> values;
  };
  std::vector<Given> given_;
  std::optional<std::uint64_t> seed_;
};

}  // namespace hearth::cli
