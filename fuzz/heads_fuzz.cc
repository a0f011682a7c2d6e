// .heads: parses draft heads for a model of the shape that the seeds have.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/tinygpt/heads_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hearth::ModelConfig base;
  base.n_layers = 2;
  base.d_model = 3;
  base.n_heads = 1;
  base.vocab_size = 4;
  base.context_length = 16;
  const hearth::ByteSpan bytes = std::as_bytes(std::span(data, size));
  const auto heads = hearth::ParseDraftHeads(bytes, "fuzz", base);
  if (!heads.ok()) return 0;
  volatile unsigned sink = 0;
  const auto read = [&](const hearth::Linear& linear) {
    const auto n = static_cast<std::size_t>(4 * linear.w.n_out * linear.w.n_in);
    for (std::size_t i = 0; i < n; ++i) {
      sink = sink + std::to_integer<unsigned>(linear.w.data[i]);
    }
  };
  for (const hearth::MedusaHead& head : heads->medusa) {
    read(head.res);
    read(head.out);
  }
  if (heads->kind == hearth::DraftHeadsKind::kEagle) {
    read(heads->eagle.fc1);
    read(heads->eagle.fc2);
    read(heads->eagle.out);
  }
  return 0;
}
