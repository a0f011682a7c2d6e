// The smallest model of Hugging Face's layout, with settings and tensors as a
// test wants them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "formats/huggingface/huggingface.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {

inline std::vector<TinyTensor> LlamaTensors(bool own_head) {
  return TinyTensors(SmallestSpec(), kHuggingFaceNames, true, false, own_head);
}

inline void WriteModel(const std::string& dir, std::string_view extra,
                       const std::vector<TinyTensor>& tensors) {
  WriteTextFile(dir + "/config.json", TinyHfConfig(SmallestSpec(), extra));
  ASSERT_TRUE(
      WriteTinySafetensors(dir + "/model.safetensors", tensors, DType::kF32)
          .ok());
}

inline Result<LoadedModel> LoadTiny(std::string_view extra,
                                    const std::vector<TinyTensor>& tensors) {
  const TempDir dir;
  WriteModel(dir.path(), extra, tensors);
  return LoadHuggingFace(dir.path());
}

}  // namespace hearth
