// Importance matrices: how large the inputs of each linear layer are for a
// text, so that quantising can spend its error where it matters least. Computed
// here, and read and written as llama.cpp has them: docs/formats/imatrix.md.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/convert.h"
#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth {

// Of one tensor of a GGUF file: a matrix, or one for each expert.
struct ImportanceEntry {
  std::string name;
  // [n_matrices][n_columns]: sums of squares of the matrix' inputs.
  std::vector<float> sums;
  // [n_matrices]: rows of inputs that were added up; of older files one for
  // all.
  std::vector<float> counts;
};

struct ImportanceMatrix {
  std::vector<ImportanceEntry> entries;
  std::vector<std::string> datasets;  // names of the texts
  int n_chunks = 0;
  int chunk_tokens = 0;  // 0: the file does not say
};

struct ImportanceOptions {
  // As PerplexityOptions has them.
  int context_tokens = 0;
  int n_chunks_max = 0;
  std::function<bool(std::int64_t done, std::int64_t total)> progress = {};
  std::string dataset = {};  // the text's name
};

struct ImportanceReport {
  ImportanceMatrix matrix;
  std::int64_t n_computed_tokens = 0;
  // What a reader should know, one line each: experts that no token chose.
  std::vector<std::string> notes;
};

// Runs the text through the model, in chunks as MeasurePerplexity cuts them;
// every token of a chunk counts. The layers' matrices (tensors "blk.*") are
// looked at; the output matrix and embeddings are not, as llama.cpp does.
// kUnsupported for a model that is no GGUF, whose tensors have no such names,
// and for an engine that computes on a card; else as MeasurePerplexity.
Result<ImportanceReport> MeasureImportance(
    Engine& engine, std::string_view text,
    const ImportanceOptions& options = {});

// The GGUF form, or the older binary one (.dat), told apart by content. The
// file is untrusted: every length, count and sum is checked. kCorrupt,
// kUnsupported for a GGUF file that is something else, kIo, kNotFound.
Result<ImportanceMatrix> ReadImportance(const std::string& path);
Result<ImportanceMatrix> ReadImportanceFromMemory(
    std::span<const std::byte> bytes, const std::string& label);

// Writes the GGUF form. An existing importance matrix is replaced without being
// asked.
Result<void> WriteImportance(const std::string& path,
                             const ImportanceMatrix& matrix,
                             const WriteOptions& options = {});
// Whether WriteImportance can write there: for before the work.
Result<void> CheckImportanceTarget(const std::string& path,
                                   const WriteOptions& options = {});

}  // namespace hearth
