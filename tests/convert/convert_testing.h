// What tests of written models share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "hearth/engine.h"
#include "testing/model_paths.h"

namespace hearth {

inline const std::string kTinyQ2K = kTestData + "/gguf/tinyl-Q2_K.gguf";

inline std::vector<std::int32_t> SomeIds(int vocab_size) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 40; ++i) ids.push_back((i * i * 7 + 11) % vocab_size);
  return ids;
}

inline std::vector<float> LogitsOf(const std::string& path) {
  auto engine = Engine::Open({.model_path = path});
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  if (!engine.ok()) return {};
  auto logits = (*engine)->Logits(SomeIds((*engine)->info().vocab_size), {});
  EXPECT_TRUE(logits.ok());
  return std::move(*logits);
}

// Root mean square of the difference over that of `a`.
inline double Distance(const std::vector<float>& a,
                       const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += double{a[i]} * a[i];
  }
  return std::sqrt(difference / size);
}

inline std::map<std::string, std::uint64_t> TypesOf(const std::string& path) {
  const auto info = InspectModel(path);
  EXPECT_TRUE(info.ok()) << info.error().message;
  return {info->tensor_types.begin(), info->tensor_types.end()};
}

inline Json ReadJson(const std::string& path) {
  const auto text = ReadTextFile(path);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? Json::parse(*text) : Json();
}

}  // namespace hearth
