// GGUF: parses, decodes every value in every way, and loads the model and its
// block for multi-token prediction.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_model.h"

namespace {

// Reads every byte that the parser hands out, so that a span beyond the input
// is seen by the address sanitizer.
unsigned Touch(hearth::ByteSpan bytes) {
  unsigned sum = 0;
  for (const std::byte b : bytes) sum += std::to_integer<unsigned>(b);
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const hearth::ByteSpan bytes = std::as_bytes(std::span(data, size));
  volatile unsigned sink = 0;
  const auto file = hearth::GgufFile::Parse(bytes, "fuzz");
  if (file.ok()) {
    for (const hearth::GgufEntry& e : file->entries()) {
      sink = sink + Touch(e.value);
      (void)file->Int(e.key);
      (void)file->Float(e.key, 0);
      (void)file->Bool(e.key, false);
      (void)file->FloatArray(e.key);
      (void)file->IntArray(e.key);
      if (const auto text = file->Text(e.key); text.ok()) {
        sink = sink + Touch(hearth::AsBytes(*text));
      }
      if (const auto texts = file->TextArray(e.key); texts.ok()) {
        for (const auto text : *texts)
          sink = sink + Touch(hearth::AsBytes(text));
      }
    }
    for (const hearth::GgufTensor& t : file->tensors()) {
      sink = sink + Touch(t.bytes);
    }
  }
  (void)hearth::LoadGguf(bytes, "fuzz");
  (void)hearth::LoadGgufMtp(bytes, "fuzz");
  return 0;
}
