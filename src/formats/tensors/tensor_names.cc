#include "formats/tensors/tensor_names.h"

namespace hearth {
namespace {

constexpr std::string_view kHole = "{}";

std::string_view StemOf(const NameScheme& scheme, Role role) {
  return scheme[static_cast<std::size_t>(role)];
}

std::string Name(const NameScheme& scheme, Role role, int layer, int expert,
                 std::string_view suffix, std::string_view whole_suffix) {
  std::string name(StemOf(scheme, role));
  for (const int number : {layer, expert}) {
    const std::size_t hole = name.find(kHole);
    if (hole == std::string::npos) break;
    name.replace(hole, kHole.size(), std::to_string(number));
  }
  if (name.ends_with('#')) {
    name.pop_back();
    return name.append(whole_suffix);
  }
  return name.append(suffix);
}

}  // namespace

std::string WeightName(const NameScheme& scheme, Role role, int layer,
                       int expert) {
  return Name(scheme, role, layer, expert, ".weight", "");
}

std::string BiasName(const NameScheme& scheme, Role role, int layer,
                     int expert) {
  return Name(scheme, role, layer, expert, ".bias", "_bias");
}

bool NamesEachExpert(const NameScheme& scheme, Role role) {
  const std::string_view stem = StemOf(scheme, role);
  return stem.find(kHole) != stem.rfind(kHole);
}

}  // namespace hearth
