// Which number format each tensor of a quantised model gets. A type such as
// Q4_K_M names a mixture: most matrices in one format, those that matter more
// in wider ones. The mixtures are the ones that people know by these names from
// llama.cpp, so that a file's size and quality are what its name leads one to
// expect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/config.h"
#include "tensor/dtype.h"

namespace hearth {

struct QuantizeType {
  std::string_view name;    // "Q4_K_M"
  DType main;               // what most matrices get
  std::uint32_t file_type;  // GGUF's general.file_type
};

// In any case; "Q3_K", "Q4_K" and "Q5_K" are the M mixtures. nullptr when
// unknown.
const QuantizeType* FindQuantizeType(std::string_view name);

// All names, for messages: "F32, F16, ..., Q8_0".
std::string QuantizeTypeNames();

// What the choice for a matrix depends on besides its name.
struct MixtureFacts {
  int n_layers = 0;
  int heads_per_kv_head = 1;
  int n_experts = 0;
  // The embedding is the output matrix too.
  bool tied_head = false;
};
MixtureFacts FactsOf(const ModelConfig& config);

// Vectors, learned positions and routers of experts keep their format.
bool IsQuantised(std::string_view gguf_name, std::size_t n_dims);

// The format for a tensor for which IsQuantised, by its GGUF name, whatever its
// width.
DType MixtureFormat(const QuantizeType& type, const MixtureFacts& facts,
                    std::string_view gguf_name);

// The format for rows of n values: `wanted`, or the nearest whose blocks fit;
// nothing when no block format does.
std::optional<DType> FormatForWidth(DType wanted, std::uint64_t n);

}  // namespace hearth
