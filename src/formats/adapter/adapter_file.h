// LoRA adapters as their files have them: docs/lora.md. Read, but not yet put
// beside a model's weights (apply_adapters.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "hearth/result.h"
#include "tensor/dtype.h"

namespace hearth {

// Whose names and row orders a file has.
enum class AdapterForm : std::uint8_t { kGguf, kHuggingFace };

// A plain matrix where it lies: [n_out, n_in], row by row.
struct AdapterMatrix {
  DType dtype = DType::kF32;  // kF32, kF16 or kBF16
  std::int64_t n_out = 0, n_in = 0;
  ByteSpan bytes;
};

// y += factor * up(down x) for the layer `name`.
struct AdapterPair {
  std::string name;  // "blk.0.attn_q", "model.layers.0.self_attn.q_proj"
  AdapterMatrix down, up;
  double factor = 1;  // alpha / rank
};

struct AdapterFile {
  std::string path;  // starts messages
  AdapterForm form = AdapterForm::kGguf;
  std::string architecture;        // GGUF's name of it; empty: not said
  std::vector<AdapterPair> pairs;  // ordered by name
  std::vector<MappedFile> files;   // what the matrices lie in
};

// `path`: a GGUF adapter, or a PEFT directory. kNotFound, kIo, kCorrupt;
// kUnsupported, with the cause and the remedy, for what is no such adapter or
// changes a model in another way.
Result<AdapterFile> ReadAdapter(const std::string& path);

// The same of what is in memory, which is borrowed: a GGUF file, or
// adapter_config.json and adapter_model.safetensors.
Result<AdapterFile> ParseGgufAdapter(ByteSpan bytes, const std::string& label);
Result<AdapterFile> ParsePeftAdapter(const Json& config, ByteSpan tensors,
                                     const std::string& label);

// --- For the two readers -----------------------------------------------------

// One tensor of a pair. `shape`: outermost first.
struct AdapterTensor {
  std::string name;  // in the file
  std::string type;
  std::optional<DType> dtype;
  std::vector<std::uint64_t> shape;
  ByteSpan bytes;
};

// kUnsupported for another number format, kCorrupt for no matrix of possible
// sizes.
Result<AdapterMatrix> MatrixOf(const AdapterTensor& tensor,
                               const std::string& label);
// kCorrupt when the two matrices do not fit together.
Result<void> CheckPair(const AdapterPair& pair, const std::string& label);
// What to do with an adapter that is not read.
inline constexpr char kMergeIt[] =
    "merge it into the model (PEFT's merge_and_unload) and give that model";

}  // namespace hearth
