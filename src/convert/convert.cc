#include "hearth/convert.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/files/output.h"
#include "base/thread_pool.h"
#include "convert/gguf/carried_keys.h"
#include "convert/gguf/convert_tokenizer.h"
#include "convert/gguf/gguf_export.h"
#include "convert/huggingface/convert_huggingface.h"
#include "convert/imatrix/importance_of_tensors.h"
#include "convert/quantize/mixture.h"
#include "convert/quantize/quantize_tensors.h"
#include "convert/tinygpt/convert_tinygpt.h"
#include "formats/loader.h"
#include "hearth/importance.h"
#include "tensor/half.h"

namespace hearth {
namespace {

// --- .tinygpt int4 ----------------------------------------------------------
// GGUF has no such format: widened, exactly, to F32.
void WidenInt4(WeightMatrix& w, std::vector<std::vector<float>>& kept) {
  if (w.dtype != DType::kTgInt4) return;
  const auto n = static_cast<std::size_t>(w.n_out * w.n_in);
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const F16 scale{LoadLe<std::uint16_t>(w.scales + i / 64 * 2)};
    const int byte = std::to_integer<int>(w.data[i / 2]);
    const int code = (byte >> (i % 2 * 4)) & 15;
    values[i] = ToFloat(scale) * static_cast<float>(code - 8);
  }
  kept.push_back(std::move(values));
  w.dtype = DType::kF32;
  w.data = reinterpret_cast<const std::byte*>(kept.back().data());
  w.scales = nullptr;
}

std::vector<std::vector<float>> WidenAllInt4(LoadedModel& model) {
  std::vector<std::vector<float>> kept;
  WidenInt4(model.weights.token_embedding, kept);
  WidenInt4(model.weights.head.w, kept);
  for (LayerWeights& layer : model.weights.layers) {
    for (Linear* linear :
         {&layer.q, &layer.k, &layer.v, &layer.qkv, &layer.o, &layer.mlp.gate,
          &layer.mlp.up, &layer.mlp.gate_up, &layer.mlp.down}) {
      WidenInt4(linear->w, kept);
    }
  }
  return kept;
}

// llama.cpp takes "phi3" in a model's name for the vocabulary of the released
// models and fails where that token is missing.
void AvoidNameRules(std::vector<GgufMetadata>& metadata) {
  for (const GgufMetadata& entry : metadata) {
    const auto* tokens = std::get_if<std::vector<std::string>>(&entry.value);
    if (entry.key != "tokenizer.ggml.tokens" || tokens == nullptr ||
        std::count(tokens->begin(), tokens->end(), "</s>") > 0) {
      continue;
    }
    for (GgufMetadata& named : metadata) {
      auto* name = std::get_if<std::string>(&named.value);
      if (named.key == "general.name" && name->starts_with("phi3")) {
        *name = "phi" + name->substr(4);
      }
    }
  }
}

// Every key of the file; `type`: the mixture of its numbers, when it is new.
Result<std::vector<GgufMetadata>> AllMetadata(const LoadedModel& model,
                                              const QuantizeType* type,
                                              std::vector<std::string>& notes) {
  HEARTH_ASSIGN(std::vector<GgufMetadata> metadata, GgufModelMetadata(model));
  HEARTH_ASSIGN(std::vector<GgufMetadata> tokenizer,
                GgufTokenizerMetadata(model, notes));
  if (type != nullptr) {
    metadata.push_back({"general.file_type", type->file_type});
    metadata.push_back({"general.quantization_version", std::uint32_t{2}});
  }
  for (GgufMetadata& entry : tokenizer) metadata.push_back(std::move(entry));
  HEARTH_TRY(CarryKeys(model, type != nullptr, metadata, notes));
  AvoidNameRules(metadata);
  return metadata;
}

bool HasSuffix(const std::string& path, std::string_view suffix) {
  return path.size() > suffix.size() && path.ends_with(suffix);
}

bool IsDirectoryTarget(const std::string& out) {
  return !HasSuffix(out, ".tinygpt") && !HasSuffix(out, ".gguf");
}

// Before the model is read: whether the result can be put there.
Result<void> CheckTarget(const std::string& in, const std::string& out,
                         bool directory, const WriteOptions& options) {
  if (out.empty()) return {Code::kInvalidArgument, "no output path"};
  std::error_code missing;
  if (std::filesystem::equivalent(in, out, missing)) {
    return {Code::kInvalidArgument, out + ": input and output are the same"};
  }
  if (directory) return OutputDirectory::Check(out, options.replace);
  return CheckOutput(out, {.replace = options.replace, .inputs = {in}});
}

std::vector<std::string> FilesOf(const LoadedModel& model) {
  std::vector<std::string> paths;
  for (const MappedFile& file : model.files) paths.push_back(file.path());
  return paths;
}

// Of a type that is written; those that are read alone are refused by name.
Result<const QuantizeType*> TypeNamed(std::string_view name) {
  const QuantizeType* type = FindQuantizeType(name);
  if (type != nullptr) return type;
  const std::string quoted = "type \"" + std::string(name) + "\"";
  const std::string start = [&name] {
    std::string upper(name.substr(0, 3));
    for (char& c : upper) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return upper;
  }();
  if (start == "IQ1" || start == "IQ2" || start == "IQ3" || start == "TQ1" ||
      start == "TQ2") {
    return Error{Code::kInvalidArgument,
                 quoted +
                     " is read but not written; use Q2_K, Q3_K_S or IQ4_XS, or "
                     "write it with llama.cpp's llama-quantize"};
  }
  return Error{Code::kInvalidArgument,
               quoted + " is none of " + QuantizeTypeNames()};
}

// As llama-quantize writes them; of the files' paths the names alone.
void AddImportanceKeys(const ImportanceMatrix& matrix, const std::string& path,
                       std::vector<GgufMetadata>& metadata) {
  metadata.push_back({"quantize.imatrix.file",
                      std::filesystem::path(path).filename().string()});
  if (!matrix.datasets.empty()) {
    metadata.push_back({"quantize.imatrix.dataset", matrix.datasets[0]});
  }
  metadata.push_back({"quantize.imatrix.entries_count",
                      static_cast<std::uint32_t>(matrix.entries.size())});
  metadata.push_back({"quantize.imatrix.chunks_count",
                      static_cast<std::uint32_t>(matrix.n_chunks)});
}

}  // namespace

Result<ConvertReport> QuantizeModel(const std::string& in,
                                    const std::string& out,
                                    std::string_view type,
                                    const WriteOptions& options,
                                    const std::string& importance) {
  HEARTH_ASSIGN(const QuantizeType* wanted, TypeNamed(type));
  if (!importance.empty() && !UsesImportance(wanted->main)) {
    return {Code::kInvalidArgument,
            std::string(wanted->name) +
                " makes no use of an importance matrix; leave it out"};
  }
  HEARTH_TRY(CheckTarget(in, out, /*directory=*/false, options));
  std::optional<ImportanceMatrix> matrix;
  if (!importance.empty()) {
    HEARTH_ASSIGN(matrix, ReadImportance(importance));
  }
  HEARTH_ASSIGN(LoadedModel model, LoadModel(in));
  const auto widened = WidenAllInt4(model);
  HEARTH_ASSIGN(std::vector<GgufTensorSource> tensors, GgufModelTensors(model));
  std::optional<ImportanceOfTensors> columns;
  if (matrix.has_value()) {
    HEARTH_ASSIGN(columns,
                  ImportanceOfTensors::Make(*matrix, importance, tensors));
  }
  ThreadPool pool;
  ConvertReport report;
  report.n_tensors = tensors.size();
  report.notes = QuantizeTensors(*wanted, FactsOf(model.config), tensors, pool,
                                 columns.has_value() ? &*columns : nullptr);
  HEARTH_ASSIGN(std::vector<GgufMetadata> metadata,
                AllMetadata(model, wanted, report.notes));
  if (matrix.has_value()) AddImportanceKeys(*matrix, importance, metadata);
  HEARTH_TRY(WriteGguf(out, metadata, tensors, options, FilesOf(model)));
  return report;
}

Result<ConvertReport> ConvertModel(const std::string& in,
                                   const std::string& out,
                                   const WriteOptions& options) {
  HEARTH_TRY(CheckTarget(in, out, IsDirectoryTarget(out), options));
  HEARTH_ASSIGN(LoadedModel model, LoadModel(in));
  if (HasSuffix(out, ".tinygpt")) {
    ConvertReport report{.notes = {}, .n_tensors = model.tensors.size()};
    HEARTH_TRY(WriteTinygpt(model, out, options, report.notes));
    return report;
  }
  const auto widened = WidenAllInt4(model);
  if (IsDirectoryTarget(out)) {
    ConvertReport report{.notes = {}, .n_tensors = model.tensors.size()};
    HEARTH_TRY(WriteHuggingFace(model, out, options, report.notes));
    return report;
  }
  HEARTH_ASSIGN(const std::vector<GgufTensorSource> tensors,
                GgufModelTensors(model));
  ConvertReport report;
  report.n_tensors = tensors.size();
  HEARTH_ASSIGN(const std::vector<GgufMetadata> metadata,
                AllMetadata(model, nullptr, report.notes));
  HEARTH_TRY(WriteGguf(out, metadata, tensors, options, FilesOf(model)));
  return report;
}

}  // namespace hearth
