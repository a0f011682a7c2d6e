// The key hearth.tokenizer of a GGUF file, in a small byte-level vocabulary: it
// must end in a tokenizer or an error, and a tokenizer must encode, decode and
// compile without harm.
//
// Input: the key's text, a zero byte, then the text to encode.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe/compiled_vocab.h"
#include "text/gguf/gguf_vocab.h"
#include "text/unicode/byte_alphabet.h"

namespace {

constexpr std::int32_t kNormal = 1, kControl = 3, kUserDefined = 4;

// 0..255 bytes, "ab", then two added tokens.
hearth::GgufVocab Vocabulary() {
  static const std::vector<std::string> tokens = [] {
    std::vector<std::string> out;
    for (int b = 0; b < 256; ++b) {
      const char c = static_cast<char>(b);
      hearth::AppendSpelled(out.emplace_back(), {&c, 1});
    }
    for (const char* text : {"ab", "<|eot|>", "<tool>"}) out.push_back(text);
    return out;
  }();
  hearth::GgufVocab vocab;
  vocab.what = "fuzz";
  vocab.model = "gpt2";
  vocab.pre = "gpt-2";
  vocab.tokens.assign(tokens.begin(), tokens.end());
  vocab.token_types.assign(tokens.size(), kNormal);
  vocab.token_types[257] = kControl;
  vocab.token_types[258] = kUserDefined;
  vocab.merges = {"a b"};
  vocab.merges_given = true;
  vocab.eos = 257;
  return vocab;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = std::min(input.find('\0'), input.size());
  const std::string_view text =
      input.substr(std::min(zero + 1, input.size())).substr(0, 4096);
  hearth::GgufVocab vocab = Vocabulary();
  vocab.pipeline = input.substr(0, zero);
  const auto made = hearth::MakeGgufTokenizer(vocab);
  if (!made.ok()) return 0;
  const auto ids = (*made)->Encode(text);
  if (!ids.ok()) return 0;
  for (const std::int32_t id : *ids) {
    if (id < 0 || id >= (*made)->vocab_size()) std::abort();
  }
  const std::string whole = (*made)->Decode(*ids);
  hearth::StreamDecoder stream(**made, /*skip_special=*/false);
  std::string streamed;
  for (const std::int32_t id : *ids) streamed += stream.Push(id);
  if (streamed + stream.Flush() != whole) std::abort();

  const hearth::Digest source = hearth::Sha256().Field("fuzz").Finish();
  const auto compiled = hearth::CompileTokenizer(**made, source);
  if (!compiled.ok()) std::abort();
  const auto copy = hearth::FromCompiled(*compiled, source, "fuzz");
  if (!copy.ok()) std::abort();
  const auto again = (*copy)->Encode(text);
  if (!again.ok() || *again != *ids) std::abort();
  return 0;
}
