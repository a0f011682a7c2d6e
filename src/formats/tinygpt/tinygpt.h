// .tinygpt files, version 2: docs/formats/tinygpt.md.
//
//   file := "TGPT" u32 version, u32 header_bytes, header, i32 step, body
//
// The header is JSON: a configuration and a manifest of the tensors in the
// body, which is laid out in one of four ways (BodyLayout).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// Borrows `bytes`: the caller keeps them for as long as the model lives.
// `directory`: where the file lies, for a tokenizer that its header names
// relative to it; empty when it lies nowhere.
Result<LoadedModel> LoadTinygpt(ByteSpan bytes, const std::string& label,
                                const std::string& directory = "");

// --- The parts, for tests and tools -----------------------------------------

enum class BodyLayout : std::uint8_t {
  kTrainingF32,  // per entry: weight, Adam m, Adam v, each float
  kF32,          // one float buffer, entries at floatOffset
  kF16,          // one half buffer, entries at floatOffset
  kInt4,         // block scales of all entries, then nibbles of all entries
};

struct TinygptEntry {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::optional<std::uint64_t> float_offset;  // in numbers
  std::uint64_t n_elements = 0;
};

struct TinygptHeader {
  int layers = 0, d_model = 0, heads = 0, n_kv_heads = 0, d_mlp = 0;
  int context = 0, vocab_size = 256;
  int window = 0;     // of every layer's attention; 0: none
  bool yoco = false;  // the second half attends to the middle layer's KV
  std::string tokenizer_source;  // a directory; empty: bytes
  std::vector<std::int32_t> eos_bytes;
  BodyLayout layout = BodyLayout::kTrainingF32;
  std::uint64_t int4_scales_bytes = 0, int4_packed_bytes = 0;
  std::vector<TinygptEntry> manifest;
  ByteSpan body;
};

// Checks everything that the header says of itself, but for the places of
// tensors in the body. Flags that change the forward pass are refused by name.
Result<TinygptHeader> ParseTinygptHeader(ByteSpan bytes,
                                         const std::string& label);

// The forward pass of a file with this header, sizes unchecked.
ModelConfig TinygptConfig(const TinygptHeader& header);

inline constexpr int kTinygptInt4Block = 64;
inline constexpr int kTinygptBytesVocab = 256;

}  // namespace hearth
