// Models with a reference that hearth had no part in (tests/data/models/hf and
// made): loaded as the engine would, and run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_sequence.h"
#include "engine/kv_setup.h"
#include "formats/huggingface/safetensors.h"
#include "formats/loader.h"
#include "hearth_test_paths.h"
#include "model/cpu/cpu_ops.h"
#include "model/forward.h"
#include "tensor/half.h"
#include "testing/model_paths.h"

namespace hearth {

// How the reference rounded its rotary frequencies.
enum class Rounding { kExact, kBf16, kF16 };

// In the repository, or else where the whole collection lies.
inline std::string DirectoryOf(const std::string& name) {
  for (const std::string& root :
       {kTestData + "/models/hf/", kTestData + "/models/made/",
        std::string(HEARTH_SHARED "/fixtures/hf/"),
        std::string(HEARTH_SHARED "/fixtures/hf-next/")}) {
    if (std::filesystem::exists(root + name + "/reference.safetensors")) {
      return root + name;
    }
  }
  return "";
}

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const char* name) {
  const SafetensorsEntry* entry = file.Find(name);
  EXPECT_NE(entry, nullptr) << name;
  if (entry == nullptr) return {};
  std::vector<T> values(entry->bytes.size() / sizeof(T));
  std::memcpy(values.data(), entry->bytes.data(), entry->bytes.size());
  return values;
}

struct Reference {
  std::vector<std::int32_t> ids, greedy;
  std::vector<float> logits, last_logits;
};

inline Reference ReadReference(const std::string& dir) {
  auto file = SafetensorsFile::Open(dir + "/reference.safetensors");
  EXPECT_TRUE(file.ok()) << file.error().message;
  return {Values<std::int32_t>(*file, "input_ids"),
          Values<std::int32_t>(*file, "greedy"), Values<float>(*file, "logits"),
          Values<float>(*file, "last_logits")};
}

// As the engine prepares a model: the context decides, then the rounding.
inline LoadedModel Load(const std::string& path, Rounding rounding) {
  auto model = LoadModel(path);
  EXPECT_TRUE(model.ok()) << model.error().message;
  if (!model.ok()) return {};
  ModelConfig& config = model->config;
  config.rope.UseForContext(config.context_length);
  for (RopeConfig* rope : {&config.rope, &config.local_rope}) {
    for (float& f : rope->inv_freq) {
      if (rounding == Rounding::kBf16) f = ToFloat(ToBF16(f));
      if (rounding == Rounding::kF16) f = ToFloat(ToF16(f));
    }
  }
  return std::move(*model);
}

// Logits of all tokens, computed in steps of at most `step`.
inline std::vector<float> Logits(const LoadedModel& model,
                                 const std::vector<std::int32_t>& ids, int step,
                                 int threads) {
  ThreadPool pool(threads);
  Forward forward(model, MakeCpuOps(model, pool));
  const KvSpec spec = SpecOf(model.config, KvFormat::kF32, KvFormat::kF32, 16);
  const auto sequence = MakeConcatSequence(spec, static_cast<int>(ids.size()));
  const auto vocab = static_cast<std::size_t>(model.config.vocab_size);
  std::vector<float> logits(ids.size() * vocab);
  for (std::size_t at = 0; at < ids.size();) {
    const std::size_t n =
        std::min(ids.size() - at, static_cast<std::size_t>(step));
    const auto done = forward.Step({.kv = sequence.get(),
                                    .tokens = std::span(ids).subspan(at, n),
                                    .want = LogitRows::kAll,
                                    .logits = logits.data() + at * vocab});
    EXPECT_TRUE(done.ok()) << done.error().message;
    at += n;
  }
  return logits;
}

}  // namespace hearth
