// Every family there is; families.cc lists them.
#pragma once

#include "formats/families.h"

namespace hearth {

extern const Family kLlamaFamily;
extern const Family kMistralFamily;
extern const Family kQwen2Family;
extern const Family kQwen3Family;
extern const Family kQwen3MoeFamily;
extern const Family kGemma2Family;
extern const Family kGemma3Family;
extern const Family kGemma4Family;
extern const Family kPhi3Family;
extern const Family kSmolLm3Family;
extern const Family kGpt2Family;
extern const Family kGptOssFamily;
extern const Family kOlmo2Family;
extern const Family kGraniteFamily;
extern const Family kOlmo3Family;
extern const Family kExaone4Family;
extern const Family kMinistral3Family;
extern const Family kSeedOssFamily;
extern const Family kErnie45Family;
extern const Family kGlm4Family;
extern const Family kLfm2Family;
extern const Family kLfm2MoeFamily;
extern const Family kQwen3VlFamily;
extern const Family kMistral4Family;
extern const Family kQwen35Family;
extern const Family kQwen35MoeFamily;
extern const Family kQwen3NextFamily;
extern const Family kNemotronHFamily;
extern const Family kNemotronHMoeFamily;
extern const Family kGraniteHybridFamily;
extern const Family kFalconH1Family;
extern const Family kGlm4MoeFamily;
extern const Family kMiniMaxM2Family;
extern const Family kDeepseekV3Family;
extern const Family kDeepseekV2Family;
extern const Family kGlm4MoeLiteFamily;

}  // namespace hearth
