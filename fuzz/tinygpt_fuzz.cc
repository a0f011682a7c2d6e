// .tinygpt: parses the header and loads the model.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/tinygpt/tinygpt.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const hearth::ByteSpan bytes = std::as_bytes(std::span(data, size));
  volatile unsigned sink = 0;
  const auto model = hearth::LoadTinygpt(bytes, "fuzz");
  if (model.ok()) {
    for (const hearth::TensorRecord& t : model->tensors) {
      for (const auto span : {t.bytes, t.scales}) {
        for (const std::byte b : span) {
          sink = sink + std::to_integer<unsigned>(b);
        }
      }
    }
  }
  return 0;
}
