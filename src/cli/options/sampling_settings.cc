#include "cli/options/sampling_settings.h"

#include <array>
#include <limits>
#include <random>

#include "cli/options/numbers.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"

namespace hearth::cli {
namespace {

using Values = std::span<const std::string>;
constexpr int kMany = std::numeric_limits<int>::max();
constexpr double kWide = 1e6;  // beyond it a figure is a slip of the finger

template <auto Member, int Low, int High>
Result<void> SetInt(Values values, SamplingOptions& options) {
  HEARTH_ASSIGN(const std::int64_t value,
                ParseInteger(values.back(), Low, High));
  options.*Member = static_cast<int>(value);
  return {};
}

template <auto Member>
std::string ShowInt(const SamplingOptions& options) {
  return std::to_string(options.*Member);
}

Result<void> SetReal(Values values, double low, double high, double& target) {
  HEARTH_ASSIGN(target, ParseNumber(values.back(), low, high));
  return {};
}

template <auto Member>
std::string ShowReal(const SamplingOptions& options) {
  std::string text = Fixed(options.*Member, 6);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// "5+1.5", "5-2", "5-inf": an id and what is added to its logit.
Result<void> AddBias(const std::string& text, SamplingOptions& options) {
  const auto sign = text.find_first_of("+-", 1);
  if (sign == std::string::npos) {
    return Error{
        Code::kInvalidArgument,
        "wants an id and a bias, as in 15043+1 or 15043-inf, not " + text};
  }
  HEARTH_ASSIGN(const std::int64_t id,
                ParseInteger(text.substr(0, sign), 0, kMany));
  double bias = -std::numeric_limits<double>::infinity();
  if (text.substr(sign) != "-inf") {
    HEARTH_ASSIGN(bias, ParseNumber(text.substr(sign + (text[sign] == '+')),
                                    -kWide, kWide));
  }
  options.logit_bias[static_cast<std::int32_t>(id)] = bias;
  return {};
}

Result<void> SetBias(Values values, SamplingOptions& options) {
  options.logit_bias.clear();
  for (const std::string& value : values) {
    if (value == "none") continue;
    for (std::size_t at = 0; at <= value.size();) {
      const std::size_t comma = std::min(value.find(',', at), value.size());
      HEARTH_TRY(AddBias(value.substr(at, comma - at), options));
      at = comma + 1;
    }
  }
  return {};
}

std::string ShowBias(const SamplingOptions& options) {
  std::string text;
  for (const auto& [id, bias] : options.logit_bias) {
    if (!text.empty()) text += ",";
    text += std::to_string(id) + (bias < 0 ? "" : "+") +
            (bias < -kWide ? "-inf" : Fixed(bias, 2));
  }
  return text.empty() ? "none" : text;
}

// \n, \t, \r and \\ as people type them; other text as it is.
std::string Unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t known = text[i] != '\\' || i + 1 == text.size()
                                  ? std::string::npos
                                  : std::string("ntr\\").find(text[i + 1]);
    out += known == std::string::npos ? text[i] : "\n\t\r\\"[known];
    i += known != std::string::npos;
  }
  return out;
}

Result<void> SetBreakers(Values values, SamplingOptions& options) {
  options.dry_sequence_breakers.clear();
  for (const std::string& value : values) {
    if (value.empty()) return Error{Code::kInvalidArgument, "is empty"};
    if (value != "none") {
      options.dry_sequence_breakers.push_back(Unescaped(value));
    }
  }
  return {};
}

std::string ShowBreakers(const SamplingOptions& options) {
  std::string text;
  for (const std::string& breaker : options.dry_sequence_breakers) {
    text += (text.empty() ? "" : " ") + Escaped(breaker);
  }
  return text.empty() ? "none" : text;
}

using O = SamplingOptions;

// A real setting with its range, told apart by Member.
template <auto Member, int Low, int High>
Result<void> SetRange(Values values, SamplingOptions& options) {
  return SetReal(values, Low, High, options.*Member);
}

const std::array<SamplingSetting, 16>& Table() {
  constexpr int kWideInt = static_cast<int>(kWide);
  static const std::array<SamplingSetting, 16> table = {{
      {"temperature", "temp", "0 is greedy", false,
       SetRange<&O::temperature, 0, 1000>, ShowReal<&O::temperature>},
      {"top-k", "", "keep the k likeliest; 0: off", false,
       SetInt<&O::top_k, 0, kMany>, ShowInt<&O::top_k>},
      {"top-p", "", "keep the likeliest that add up to p; 1: off", false,
       SetRange<&O::top_p, 0, 1>, ShowReal<&O::top_p>},
      {"min-p", "", "drop what is rarer than p times the likeliest; 0: off",
       false, SetRange<&O::min_p, 0, 1>, ShowReal<&O::min_p>},
      {"repeat-penalty", "", "makes what came before rarer; 1: off", false,
       [](Values values, O& o) {
         return SetReal(values, 1e-6, kWide, o.repeat_penalty);
       },
       ShowReal<&O::repeat_penalty>},
      {"repeat-last-n", "",
       "newest tokens that the three penalties look at, the prompt's too; 0: "
       "none, -1: all",
       false, SetInt<&O::repeat_last_n, -1, kMany>, ShowInt<&O::repeat_last_n>},
      {"presence-penalty", "", "taken off what came before; 0: off", false,
       SetRange<&O::presence_penalty, -kWideInt, kWideInt>,
       ShowReal<&O::presence_penalty>},
      {"frequency-penalty", "", "the same, for each time it came; 0: off",
       false, SetRange<&O::frequency_penalty, -kWideInt, kWideInt>,
       ShowReal<&O::frequency_penalty>},
      {"logit-bias", "",
       "ID+B or ID-B: added to a token's logit; ID-inf: never", true, SetBias,
       ShowBias},
      {"dry-multiplier", "",
       "DRY: strength of the penalty on going on with a repetition; 0: off",
       false, SetRange<&O::dry_multiplier, 0, kWideInt>,
       ShowReal<&O::dry_multiplier>},
      {"dry-base", "", "DRY: how it grows with each token repeated", false,
       SetRange<&O::dry_base, 1, kWideInt>, ShowReal<&O::dry_base>},
      {"dry-allowed-length", "", "DRY: tokens that may repeat freely", false,
       SetInt<&O::dry_allowed_length, 1, kMany>,
       ShowInt<&O::dry_allowed_length>},
      {"dry-penalty-last-n", "",
       "DRY: newest tokens that it looks at; 0: off, -1: all", false,
       SetInt<&O::dry_penalty_last_n, -1, kMany>,
       ShowInt<&O::dry_penalty_last_n>},
      {"dry-sequence-breaker", "",
       "DRY: a text that ends a repetition; none: there are none", true,
       SetBreakers, ShowBreakers},
      {"xtc-probability", "",
       "XTC: how often the top choices but one are left out; 0: off", false,
       SetRange<&O::xtc_probability, 0, 1>, ShowReal<&O::xtc_probability>},
      {"xtc-threshold", "", "XTC: probability that makes a top choice", false,
       SetRange<&O::xtc_threshold, 0, 1>, ShowReal<&O::xtc_threshold>},
  }};
  return table;
}

std::uint64_t NewSeed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | std::uint64_t{device()};
}

}  // namespace

std::span<const SamplingSetting> SamplingSettings() { return Table(); }

const SamplingSetting* FindSamplingSetting(const std::string& name) {
  for (const SamplingSetting& setting : Table()) {
    if (name == setting.name || (!name.empty() && name == setting.other_name)) {
      return &setting;
    }
  }
  return nullptr;
}

void SamplingArgs::Add(Command& command) {
  command.Group("Sampling (default: what the model recommends, else as shown)");
  for (const SamplingSetting& setting : Table()) {
    std::string names = "--" + setting.name;
    if (!setting.other_name.empty()) names += ",--" + setting.other_name;
    const auto take = [this, &setting](Values values) -> Result<void> {
      SamplingOptions unused;  // tells whether they are well formed
      HEARTH_TRY(setting.set(values, unused));
      given_.push_back({&setting, {values.begin(), values.end()}});
      return {};
    };
    command.TakeEach(names, setting.is_list, take, setting.help)
        .Default(setting.show(DefaultSampling({})));
  }
  command.Seed("--seed,-s", seed_,
               "of the random draws; default, or -1: a new one each run");
}

SamplingOptions SamplingArgs::Over(const SamplingDefaults& model) const {
  SamplingOptions options = DefaultSampling(model);
  for (const Given& given : given_) {
    (void)given.setting->set(given.values, options);  // Add has tried it
  }
  options.seed = seed_.has_value() ? *seed_ : NewSeed();
  return options;
}

}  // namespace hearth::cli
