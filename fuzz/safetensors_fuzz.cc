// safetensors, and the JSON files of a Hugging Face directory: the same input
// is tried as each of them.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/json.h"
#include "formats/huggingface/hf_dequantize.h"
#include "formats/huggingface/huggingface.h"
#include "formats/huggingface/safetensors.h"

namespace {

// Codes and scales of any shapes, in each way of reading them.
void Dequantize(const hearth::SafetensorsFile& file) {
  for (const hearth::HfQuantization& quantization :
       {hearth::HfQuantization{},
        hearth::HfQuantization{.block_rows = 2, .block_columns = 3},
        hearth::HfQuantization{.divides_by_global = true}}) {
    hearth::TensorSet tensors("fuzz");
    for (const hearth::SafetensorsEntry& t : file.tensors()) {
      if (!tensors.Add({t.name, t.type, t.dtype, t.shape, t.bytes, {}}).ok()) {
        return;
      }
    }
    hearth::LoadedModel model;
    (void)hearth::DequantizeHf(quantization, tensors, model);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const hearth::ByteSpan bytes = std::as_bytes(std::span(data, size));
  volatile unsigned sink = 0;
  const auto file = hearth::SafetensorsFile::Parse(bytes, "fuzz");
  if (file.ok()) {
    for (const hearth::SafetensorsEntry& t : file->tensors()) {
      for (const std::byte b : t.bytes) {
        sink = sink + std::to_integer<unsigned>(b);
      }
    }
  }
  if (file.ok()) Dequantize(*file);
  const auto text = hearth::AsText(bytes);
  (void)hearth::ParseShardIndex(text, "fuzz");
  if (const auto json = hearth::ParseJson(text, "fuzz"); json.ok()) {
    (void)hearth::ReadHuggingFaceConfig(*json, "fuzz");
  }
  return 0;
}
