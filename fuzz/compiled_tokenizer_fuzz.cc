// A tokenizer that an earlier launch left beside the prompt cache: whatever the
// bytes, reading them ends in an error or in a tokenizer that encodes and
// decodes without harm.
//
// Input  one byte that says what to make right first (else random bytes would
//        never get past the checksums), then the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "text/bpe/compiled_vocab.h"

namespace {

using namespace hearth;

// As docs/formats/compiled-tokenizer.md has them.
constexpr std::size_t kAtSource = 16, kAtPayloadChecksum = 88,
                      kAtHeaderChecksum = 248, kHeaderBytes = 256;

// Bytes that begin where the reader wants them to.
struct alignas(16) Line {
  std::byte bytes[16];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t mode = data[0];
  const std::size_t n = size - 1;
  std::vector<Line> lines(n / sizeof(Line) + 1);
  std::memcpy(lines.data(), data + 1, n);
  std::byte* bytes = lines[0].bytes;
  const ByteSpan file(bytes, n);
  Digest source{};
  if (n >= kHeaderBytes) {
    std::memcpy(source.bytes.data(), bytes + kAtSource, source.bytes.size());
    if ((mode & 1) != 0) {
      StoreLe(bytes + kAtPayloadChecksum,
              Checksum64(file.subspan(kHeaderBytes)));
      StoreLe(bytes + kAtHeaderChecksum,
              Checksum64(file.first(kAtHeaderChecksum)));
    }
  }
  const auto made = FromCompiled(file, source, "fuzz");
  if (!made.ok()) {
    if (made.error().message.empty()) std::abort();
    return 0;
  }
  const Tokenizer& tokenizer = **made;
  for (const char* text : {"Hello the 12 worlds", "<|im_start|> caf\xC3\xA9\n",
                           " \xE2\x96\x81  a", "<0x0A>"}) {
    const auto ids = tokenizer.Encode(text);
    if (!ids.ok()) continue;
    for (const std::int32_t id : *ids) {
      if (id < 0 || id >= tokenizer.vocab_size()) std::abort();
      (void)tokenizer.Piece(id);
    }
    const std::string whole = tokenizer.Decode(*ids);
    StreamDecoder stream(tokenizer, /*skip_special=*/false);
    std::string streamed;
    for (const std::int32_t id : *ids) streamed += stream.Push(id);
    if (streamed + stream.Flush() != whole) std::abort();
  }
  return 0;
}
