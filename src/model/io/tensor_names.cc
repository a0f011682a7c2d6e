#include "model/io/tensor_names.h"

namespace hearth {
namespace {

std::string Stem(const NameScheme& scheme, Role role, int layer) {
  std::string stem(scheme[static_cast<std::size_t>(role)]);
  const std::size_t hole = stem.find("{}");
  if (hole != std::string::npos) stem.replace(hole, 2, std::to_string(layer));
  return stem;
}

}  // namespace

std::string WeightName(const NameScheme& scheme, Role role, int layer) {
  return Stem(scheme, role, layer) + ".weight";
}

std::string BiasName(const NameScheme& scheme, Role role, int layer) {
  return Stem(scheme, role, layer) + ".bias";
}

}  // namespace hearth
