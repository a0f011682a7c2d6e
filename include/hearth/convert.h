// Writing model files: other containers, other number formats, random weights.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"

namespace hearth {

// How a result is written: base/files/output.h has the rule for all writers. A
// result appears whole or not at all.
struct WriteOptions {
  // An existing file, or the model in a directory that is not empty, may be
  // replaced; without it that is kInvalidArgument, before any work.
  bool replace = false;
  // Called now and then with the bytes that are written and those that will be.
  // False stops: kCancelled, and nothing stays.
  std::function<bool(std::uint64_t done, std::uint64_t total)> progress = {};
};

struct ConvertReport {
  // What a reader of the result should know, one line each: tensors that kept
  // or got another number format than asked for, tensors that were quantised
  // before.
  std::vector<std::string> notes;
  std::size_t n_tensors = 0;
};

// Writes any loadable model as GGUF in another number format. `type`, in any
// case: F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q5_K_S, Q5_1, Q5_0, Q4_K_M, Q4_K_S,
// IQ4_NL, IQ4_XS, Q4_1, Q4_0, Q3_K_L, Q3_K_M, Q3_K_S, Q2_K. Q3_K, Q4_K and Q5_K
// are the M mixtures.
//   - Most matrices get the format that the name begins with, those that matter
//     more wider ones: docs/convert.md.
//   - Vectors, positions and routers of experts stay as they are.
//   - Rows that do not fit a format's blocks get the nearest that fits; rows of
//     no whole 32 values stay as they are. Each is noted.
// `importance`: a file of the model's importance matrix (hearth/importance.h),
// by which errors are weighed; empty: none. Tensors that it lacks are noted;
// one of another model, or for a type that makes no use of it, is
// kInvalidArgument.
// kInvalidArgument for another type, and for weights that are not finite or
// beyond what the format can express; kUnsupported, by name, for a model that
// GGUF cannot express. Uses all processors; the bytes do not depend on how many
// there are.
Result<ConvertReport> QuantizeModel(const std::string& in,
                                    const std::string& out,
                                    std::string_view type,
                                    const WriteOptions& options = {},
                                    const std::string& importance = {});

// Writes the model in another container. `out` decides: "x.gguf" keeps the
// formats of the numbers; "x.tinygpt" takes from-scratch models and GPT-2s with
// the exact GELU; anything else is a Hugging Face directory, in which block
// formats become F32. kUnsupported, by name, for what the container cannot
// express.
Result<ConvertReport> ConvertModel(const std::string& in,
                                   const std::string& out,
                                   const WriteOptions& options = {});

// Writes a randomly initialised .tinygpt file of a preset (tiny, small, huge,
// mega, behemoth, titan), for timing. n_kv_heads 0: as many as heads. `yoco`:
// the second half of the layers attends to the middle layer's keys and values.
Result<void> InitModel(const std::string& preset, const std::string& path,
                       int n_kv_heads, bool yoco, std::uint64_t seed,
                       const WriteOptions& options = {});

// Writes [n_rows][n_columns] floats as tensor `name` of a safetensors file. A
// file that this call has written before is replaced without being asked.
Result<void> WriteFloatMatrix(const std::string& path, const std::string& name,
                              std::span<const float> values,
                              std::int64_t n_columns,
                              const WriteOptions& options = {});

// Whether WriteFloatMatrix can write there: for before the work.
Result<void> CheckFloatMatrix(const std::string& path, const std::string& name,
                              const WriteOptions& options = {});

}  // namespace hearth
