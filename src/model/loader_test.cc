#include "model/loader.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Loader, Smoke) {
  for (const char* name : {"/models/stories260K.gguf", "/fixtures/hf/llama", "/fixtures/hf/qwen2", "/fixtures/gguf/tinyl-Q8_0.gguf"}) {
    const auto model = LoadModel(std::string(HEARTH_SHARED) + name);
    EXPECT_TRUE(model.ok()) << model.error().message;
  }
}

}  // namespace
}  // namespace hearth
