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
extern const Family kPhi3Family;
extern const Family kSmolLm3Family;
extern const Family kGpt2Family;
extern const Family kGptOssFamily;
extern const Family kOlmo2Family;
extern const Family kGraniteFamily;

}  // namespace hearth
