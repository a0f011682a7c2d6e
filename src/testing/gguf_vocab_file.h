// Reads the tokenizer metadata of a small, trusted GGUF file for tests of the
// text room, which may not know the model room's reader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "text/gguf/gguf_vocab.h"

namespace hearth {

// The views in the result point into `bytes`. Unknown keys are skipped.
inline GgufVocab ReadGgufVocabForTest(ByteSpan bytes, std::string what) {
  GgufVocab vocab;
  vocab.what = std::move(what);
  ByteReader in(bytes);
  in.Take(8);  // magic, version
  in.Read<std::uint64_t>();
  const auto n_keys = in.Read<std::uint64_t>();
  const auto text = [&in] { return AsText(in.Take(in.Read<std::uint64_t>())); };
  const auto id = [&in] {
    return std::optional<std::int32_t>(in.Read<std::int32_t>());
  };
  constexpr std::size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  for (std::uint64_t k = 0; k < n_keys && in.ok(); ++k) {
    const std::string_view key = text();
    const auto type = in.Read<std::uint32_t>();
    const std::string_view name =
        key.starts_with("tokenizer.ggml.") ? key.substr(15) : key;
    if (type == 8) {
      const std::string value(text());
      if (name == "model") vocab.model = value;
      if (name == "pre") vocab.pre = value;
      if (name == "general.name") vocab.general_name = value;
    } else if (type == 9) {
      const auto element = in.Read<std::uint32_t>();
      const auto n = in.Read<std::uint64_t>();
      for (std::uint64_t i = 0; i < n && in.ok(); ++i) {
        if (element == 8) {
          const std::string_view value = text();
          if (name == "tokens") vocab.tokens.push_back(value);
          if (name == "merges") vocab.merges.push_back(value);
        } else if (element == 6) {
          const float value = in.Read<float>();
          if (name == "scores") vocab.scores.push_back(value);
        } else if (element == 5) {
          const auto value = in.Read<std::int32_t>();
          if (name == "token_type") vocab.token_types.push_back(value);
        } else {
          in.Take(kSizes[element]);
        }
      }
    } else if (type == 7) {
      const bool value = in.Read<std::uint8_t>() != 0;
      if (name == "add_bos_token") vocab.add_bos = value;
      if (name == "add_eos_token") vocab.add_eos = value;
      if (name == "add_space_prefix") vocab.add_space_prefix = value;
    } else if (name == "bos_token_id") {
      vocab.bos = id();
    } else if (name == "eos_token_id") {
      vocab.eos = id();
    } else if (name == "unknown_token_id") {
      vocab.unk = id();
    } else {
      in.Take(kSizes[type]);
    }
  }
  return vocab;
}

}  // namespace hearth
