// tokenizer.json from outside: loading must end in a tokenizer or an error, and
// a tokenizer that loaded must encode, decode and compile without harm.
//
// Input: the JSON, a zero byte, then the text to encode. Without a zero byte
// the JSON is also the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/bpe/compiled_vocab.h"
#include "text/json/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = input.find('\0');
  const std::string_view json = input.substr(0, zero);
  std::string_view text =
      zero == std::string_view::npos ? input : input.substr(zero + 1);
  text = text.substr(0, 4096);
  const auto made = hearth::LoadTokenizerJson(json, "", "fuzz");
  if (!made.ok()) return 0;
  const auto ids = (*made)->Encode(text);
  if (!ids.ok()) return 0;
  const std::string whole = (*made)->Decode(*ids);
  hearth::StreamDecoder stream(**made, /*skip_special=*/false);
  std::string streamed;
  for (const std::int32_t id : *ids) streamed += stream.Push(id);
  if (streamed + stream.Flush() != whole) std::abort();

  const hearth::Digest source = hearth::TokenizerSource(json, "");
  const auto compiled = hearth::CompileTokenizer(**made, source);
  if (!compiled.ok()) std::abort();
  const auto copy = hearth::FromCompiled(*compiled, source, "fuzz");
  if (!copy.ok()) std::abort();
  const auto again = (*copy)->Encode(text);
  if (!again.ok() || *again != *ids) std::abort();
  return 0;
}
