// Launches of an engine with a prompt cache, each a new process in miniature,
// and the files they leave.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "testing/model_paths.h"

namespace hearth {

struct Answer {
  SyncReport sync;
  std::string text;
};

// Engine, session, prompt, a few greedy tokens, everything saved.
inline Result<Answer> Ask(const EngineOptions& options,
                          const std::vector<std::int32_t>& ids) {
  HEARTH_ASSIGN(auto engine, Engine::Open(options));
  HEARTH_ASSIGN(auto session, engine->NewSession());
  Answer answer;
  HEARTH_ASSIGN(answer.sync, session->Sync(ids, nullptr));
  HEARTH_ASSIGN(auto report, session->Generate({.n_tokens_max = 8,
                                                .ignore_eos = true,
                                                .sampling = {.temperature = 0}},
                                               nullptr));
  answer.text = report.text;
  HEARTH_TRY(engine->DrainSaves());
  return answer;
}

inline Answer MustAsk(const EngineOptions& options,
                      const std::vector<std::int32_t>& ids) {
  auto answer = Ask(options, ids);
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  return answer.ok() ? *answer : Answer{};
}

// A prompt for stories260K.
inline std::vector<std::int32_t> Ids(int n) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back(3 + (i * 37 + i * i * 11) % 500);
  return ids;
}

// Whether a load pays depends on the speed of the machine; a test does not.
inline EngineOptions WithDir(const std::string& dir) {
  return {.model_path = kStories260K,
          .n_threads = 1,
          .prompt_cache_dir = dir,
          .cache_always = true};
}

inline std::vector<std::string> FilesBelow(const std::string& dir,
                                           const std::string& suffix) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file() && entry.path().string().ends_with(suffix)) {
      files.push_back(entry.path().string());
    }
  }
  return files;
}

inline void FlipByte(const std::string& path, std::size_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ 0x20);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

}  // namespace hearth
