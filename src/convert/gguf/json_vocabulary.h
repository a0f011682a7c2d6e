// A tokenizer.json as GGUF's keys. Its vocabulary and splits:
// json_vocabulary.cc; the ids with duties: json_vocabulary_ids.cc.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "convert/gguf/gguf_writer.h"
#include "hearth/result.h"
#include "model/weights.h"
#include "text/gguf/gguf_vocab.h"
#include "text/tokenizer.h"

namespace hearth {

class JsonVocabulary {
 public:
  // Both outlive the object.
  JsonVocabulary(const LoadedModel& model, const Json& json)
      : model_(model),
        json_(json),
        label_(model.tokenizer_dir + "/tokenizer.json") {}

  // The tokenizer.* keys; `notes` gets a line about what they cannot say.
  // Throws Json::exception where the file has not the form that MakeTokenizer
  // has checked.
  Result<std::vector<GgufMetadata>> Run(std::vector<std::string>& notes);

 private:
  Error Unsupported(const std::string& what) const {
    return {Code::kUnsupported,
            label_ + ": " + what + " has no form in GGUF that hearth writes"};
  }
  void Add(const char* key, GgufValue value) {
    out_.push_back({std::string("tokenizer.ggml.") + key, std::move(value)});
  }

  // Keeps a member of tokenizer.json that GGUF's own keys cannot say.
  void Carry(const char* member, const std::string& name) {
    carried_[member] = json_[member];
    names_.push_back(name);
  }

  Result<void> AddTokens();
  Result<void> CheckOptions() const;
  void CarryAttributes();
  Result<void> AddByteLevel();
  Result<const char*> PreOfSteps();
  Result<bool> ReadSpacePrefix();
  Result<void> AddSentencePiece();
  Result<void> AddSpecialIds();
  Result<void> AddSurrounding(const Tokenizer& tokenizer, std::int32_t bos,
                              std::int32_t eos);
  void SetType(std::size_t id, GgufTokenType type) {
    types_[id] = static_cast<std::int32_t>(type);
  }

  const LoadedModel& model_;
  const Json& json_;
  const std::string label_;
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> types_;
  std::vector<std::string> merges_;  // "a b"
  std::unordered_map<std::string, std::size_t> ids_;
  Json carried_ = Json::object();   // becomes hearth.tokenizer
  std::vector<std::string> names_;  // of what is in it, for people
  std::vector<GgufMetadata> out_;
};

}  // namespace hearth
