// Models that tests run: small real ones, part of the repository.
#pragma once

#include <string>
#include <vector>

#if __has_include("hearth_test_paths.h")
#include "hearth_test_paths.h"
#endif

namespace hearth {

#if __has_include("hearth_test_paths.h")
inline const std::string kTestData = HEARTH_TEST_DATA;
inline const std::string kStories260K = kTestData + "/models/stories260K.gguf";
inline const std::string kHfLlama = kTestData + "/models/hf/llama";
inline const std::string kHfQwen2 = kTestData + "/models/hf/qwen2";
#endif

}  // namespace hearth
