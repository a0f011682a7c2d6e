// The formats of JSON Schema that a regular expression can hold to.
#include <cstring>

#include "grammar/schema/compiler.h"

namespace hearth::grammar {
namespace {

#define HEARTH_DATE                                            \
  "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|" \
  "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
#define HEARTH_TIME                            \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]" \
  "(?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define HEARTH_LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define HEARTH_OCTET "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

struct NamedPattern {
  const char* name;
  const char* pattern;
};

// Narrower than the standard where that keeps the expression readable: dates
// have no 29th of February, IPv6 addresses no short form.
constexpr NamedPattern kFormats[] = {
    {"date", "^" HEARTH_DATE "$"},
    {"time", "^" HEARTH_TIME "$"},
    {"date-time", "^" HEARTH_DATE "T" HEARTH_TIME "$"},
    {"duration",
     "^P(?:[0-9]{1,9}W|[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|"
     "[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D|"
     "T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|"
     "[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))$"},
    {"uuid",
     "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-"
     "[0-9a-fA-F]{12}$"},
    {"email",
     "^[A-Za-z0-9_+-]{1,32}(?:\\.[A-Za-z0-9_+-]{1,32}){0,3}@" HEARTH_LABEL
     "(?:\\." HEARTH_LABEL "){1,4}$"},
    {"hostname", "^" HEARTH_LABEL "(?:\\." HEARTH_LABEL "){0,3}$"},
    {"ipv4", "^" HEARTH_OCTET "(?:\\." HEARTH_OCTET "){3}$"},
    {"ipv6", "^[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){7}$"},
    {"uri",
     "^[a-zA-Z][a-zA-Z0-9+.-]{0,15}:(?:[A-Za-z0-9._~:/?#@!$&'()*+,;=-]|"
     "%[0-9A-Fa-f]{2})+$"},
    {"json-pointer", "^(?:/(?:[^~/]|~[01])*)*$"},
};

}  // namespace

const char* PatternOfFormat(const std::string& format) {
  for (const NamedPattern& known : kFormats) {
    if (format == known.name) return known.pattern;
  }
  return nullptr;
}

}  // namespace hearth::grammar
