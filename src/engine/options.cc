#include "hearth/options.h"

#include <array>
#include <cstdlib>

namespace hearth {
namespace {

constexpr std::array<std::string_view, 5> kStorageNames = {
    "fp32", "fp16", "bf16", "int8", "int4"};

constexpr std::array<std::string_view, 3> kDeviceNames = {"auto", "cpu",
                                                          "cuda"};

}  // namespace

std::string_view NameOf(DeviceChoice device) {
  return kDeviceNames[static_cast<std::size_t>(device)];
}

std::optional<DeviceChoice> DeviceChoiceNamed(std::string_view name) {
  for (std::size_t i = 0; i < kDeviceNames.size(); ++i) {
    if (kDeviceNames[i] == name) return static_cast<DeviceChoice>(i);
  }
  return std::nullopt;
}

std::string_view NameOf(KvStorage storage) {
  return kStorageNames[static_cast<std::size_t>(storage)];
}

std::optional<KvStorage> KvStorageNamed(std::string_view name) {
  for (std::size_t i = 0; i < kStorageNames.size(); ++i) {
    if (kStorageNames[i] == name) return static_cast<KvStorage>(i);
  }
  return std::nullopt;
}

std::optional<RopeRounding> RopeRoundingNamed(std::string_view name) {
  if (name == "exact") return RopeRounding::kExact;
  if (name == "bf16") return RopeRounding::kBf16;
  if (name == "fp16") return RopeRounding::kFp16;
  return std::nullopt;
}

AdapterChoice AdapterChoiceOf(std::string_view text) {
  const std::size_t at = text.rfind('=');
  AdapterChoice choice{.path = std::string(text)};
  if (at == std::string_view::npos || at == 0) return choice;
  const std::string number(text.substr(at + 1));
  char* end = nullptr;
  const float scale = std::strtof(number.c_str(), &end);
  if (number.empty() || *end != '\0') return choice;
  return {.path = std::string(text.substr(0, at)), .scale = scale};
}

}  // namespace hearth
