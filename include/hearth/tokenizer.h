// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"

namespace hearth {

class TextCodec {
 public:
  virtual ~TextCodec() = default;
  // `special`: adds what the model expects around a text (BOS, ...) and reads
  // special tokens written in it.
  virtual Result<std::vector<std::int32_t>> Encode(std::string_view text,
                                                   bool special) const = 0;
  // Valid UTF-8. kInvalidArgument for an id outside the vocabulary.
  virtual Result<std::string> Decode(
      std::span<const std::int32_t> ids) const = 0;
  virtual std::string Describe() const = 0;
  virtual int vocab_size() const = 0;
};

// `path`: a model of any kind, or a tokenizer.json file. Empty: the embedded
// model's.
Result<std::unique_ptr<TextCodec>> OpenTextCodec(const std::string& path);

}  // namespace hearth
