#include "formats/families.h"

#include <algorithm>
#include <array>

#include "formats/families/all.h"

namespace hearth {
namespace {

constexpr auto kFamilies = std::to_array<const Family*>(
    {&kLlamaFamily,      &kMistralFamily,      &kQwen2Family,
     &kQwen3Family,      &kQwen3MoeFamily,     &kGemma2Family,
     &kGemma3Family,     &kGemma4Family,       &kPhi3Family,
     &kSmolLm3Family,    &kGpt2Family,         &kGptOssFamily,
     &kOlmo2Family,      &kOlmo3Family,        &kGraniteFamily,
     &kExaone4Family,    &kMinistral3Family,   &kSeedOssFamily,
     &kErnie45Family,    &kGlm4Family,         &kLfm2Family,
     &kLfm2MoeFamily,    &kQwen3VlFamily,      &kMistral4Family,
     &kQwen35Family,     &kQwen35MoeFamily,    &kQwen3NextFamily,
     &kNemotronHFamily,  &kNemotronHMoeFamily, &kGraniteHybridFamily,
     &kFalconH1Family,   &kGlm4MoeFamily,      &kMiniMaxM2Family,
     &kDeepseekV3Family, &kDeepseekV2Family,   &kGlm4MoeLiteFamily});

const Family* FindFamily(std::string_view name,
                         std::string_view Family::*member) {
  if (name.empty()) return nullptr;
  const auto it =
      std::find_if(kFamilies.begin(), kFamilies.end(),
                   [&](const Family* f) { return f->*member == name; });
  return it == kFamilies.end() ? nullptr : *it;
}

}  // namespace

std::span<const Family* const> Families() { return kFamilies; }

const Family* FamilyOfGguf(std::string_view architecture) {
  return FindFamily(architecture, &Family::gguf_architecture);
}

const Family* FamilyOfHfClass(std::string_view hf_class) {
  return FindFamily(hf_class, &Family::hf_class);
}

const Family* FamilyOfHfModelType(std::string_view model_type) {
  return FindFamily(model_type, &Family::hf_model_type);
}

const Family* FamilyNamed(std::string_view architecture) {
  return FindFamily(architecture, &Family::architecture);
}

}  // namespace hearth
