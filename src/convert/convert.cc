#include "hearth/convert.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/output.h"
#include "convert/gguf/convert_tokenizer.h"
#include "convert/gguf/gguf_export.h"
#include "convert/huggingface/convert_huggingface.h"
#include "convert/tinygpt/convert_tinygpt.h"
#include "formats/loader.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"
#include "tensor/quantize.h"

namespace hearth {
namespace {

// --- Number formats ---------------------------------------------------------
// A row of any GGUF format as floats.
void RowAsFloats(DType dtype, const std::byte* row, std::int64_t n,
                 float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (dtype == DType::kF32) out[i] = LoadLe<float>(row + 4 * i);
    if (dtype == DType::kF16) {
      out[i] = ToFloat(F16{LoadLe<std::uint16_t>(row + 2 * i)});
    }
    if (dtype == DType::kBF16) {
      out[i] = ToFloat(BF16{LoadLe<std::uint16_t>(row + 2 * i)});
    }
  }
  if (IsBlockQuantised(dtype)) DequantizeBlocks(dtype, row, n, out);
}

// Takes a tensor's bytes in pieces of any size and hands on requantised rows.
class RowQuantizer {
 public:
  RowQuantizer(std::string name, DType from, DType to, std::int64_t n,
               GgufSink sink)
      : name_(std::move(name)),
        from_(from),
        to_(to),
        n_(n),
        sink_(std::move(sink)),
        row_(*BytesOf(from, static_cast<std::uint64_t>(n))),
        floats_(static_cast<std::size_t>(n)),
        out_(*BytesOf(to, static_cast<std::uint64_t>(n))) {}

  Result<void> Take(ByteSpan bytes) {
    while (!bytes.empty()) {
      const std::size_t piece = std::min(bytes.size(), row_.size() - filled_);
      std::copy_n(bytes.begin(), piece, row_.begin() + filled_);
      filled_ += static_cast<std::ptrdiff_t>(piece);
      bytes = bytes.subspan(piece);
      if (static_cast<std::size_t>(filled_) == row_.size()) {
        filled_ = 0;
        HEARTH_TRY(PutRow());
      }
    }
    return {};
  }

 private:
  Result<void> PutRow() {
    constexpr float kHalfMax = 65504.0f;
    RowAsFloats(from_, row_.data(), n_, floats_.data());
    for (const float x : floats_) {
      if (!(std::abs(x) <= kHalfMax)) {
        return {Code::kInvalidArgument,
                "tensor \"" + name_ + "\" holds " + std::to_string(x) +
                    ", which block formats cannot express"};
      }
    }
    QuantizeRow(to_, floats_.data(), n_, out_.data());
    return sink_(out_);
  }

  std::string name_;
  DType from_, to_;
  std::int64_t n_;
  GgufSink sink_;
  std::vector<std::byte> row_;
  std::ptrdiff_t filled_ = 0;
  std::vector<float> floats_;
  std::vector<std::byte> out_;
};

bool Fits(DType dtype, std::uint64_t n) {
  return n % static_cast<std::uint64_t>(InfoOf(dtype).block_elements) == 0;
}

// The type for rows of n values: `wanted`, or the next wider one whose blocks
// fit; nothing when none does.
std::optional<DType> TypeFor(DType wanted, std::uint64_t n) {
  if (Fits(wanted, n)) return wanted;
  const DType wider = wanted == DType::kQ4_K ? DType::kQ5_0 : DType::kQ8_0;
  if (Fits(wider, n)) return wider;
  return std::nullopt;
}

// Small, or too sensitive to lose bits.
bool StaysAsItIs(const GgufTensorSource& t) {
  return t.shape.size() < 2 || !t.name.ends_with(".weight") ||
         t.name == "position_embd.weight" ||
         t.name.ends_with("ffn_gate_inp.weight");
}

bool IsEmbeddingOrOutput(const GgufTensorSource& t) {
  return t.name == "token_embd.weight" || t.name == "output.weight";
}

std::string NameOf(DType dtype) { return std::string(InfoOf(dtype).name); }

void Requantize(GgufTensorSource& tensor, DType to) {
  const DType from = tensor.dtype;
  if (from == to) return;
  const auto n = static_cast<std::int64_t>(tensor.shape.back());
  tensor.dtype = to;
  tensor.write = [name = tensor.name, from, to, n,
                  write = std::move(tensor.write)](const GgufSink& sink) {
    RowQuantizer rows(name, from, to, n, sink);
    return write([&rows](ByteSpan bytes) { return rows.Take(bytes); });
  };
}

// The types that QuantizeModel writes, and GGUF's number for such a file.
struct FileType {
  DType dtype;
  std::uint32_t id;
};
std::optional<FileType> FileTypeNamed(std::string_view name) {
  for (const FileType type :
       {FileType{DType::kQ8_0, 7}, FileType{DType::kQ4_0, 2},
        FileType{DType::kQ4_K, 14}, FileType{DType::kQ6_K, 18}}) {
    if (InfoOf(type.dtype).name == name) return type;
  }
  return std::nullopt;
}

void QuantizeAll(DType type, std::vector<GgufTensorSource>& tensors,
                 ConvertReport& report) {
  std::set<std::string> before;
  const DType wide = type == DType::kQ8_0 ? type : DType::kQ6_K;
  for (GgufTensorSource& tensor : tensors) {
    if (StaysAsItIs(tensor)) continue;
    const DType wanted = IsEmbeddingOrOutput(tensor) ? wide : type;
    const std::uint64_t n = tensor.shape.back();
    const std::optional<DType> to = TypeFor(wanted, n);
    if (to != wanted) {
      report.notes.push_back(tensor.name + ": rows of " + std::to_string(n) +
                             " do not fit " + NameOf(wanted) +
                             (to ? "; written as " + NameOf(*to)
                                 : "; stays " + NameOf(tensor.dtype)));
    }
    if (!to) continue;
    if (IsBlockQuantised(tensor.dtype) && tensor.dtype != *to) {
      before.insert(NameOf(tensor.dtype));
    }
    Requantize(tensor, *to);
  }
  if (before.empty()) return;
  std::string types;
  for (const std::string& name : before) types += " " + name;
  report.notes.push_back(
      "tensors were quantised before, so their error adds "
      "up:" +
      types);
}

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
void AvoidNameRules(std::vector<GgufMetadata>& metadata,
                    const std::vector<GgufMetadata>& tokenizer) {
  for (const GgufMetadata& entry : tokenizer) {
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

}  // namespace

Result<ConvertReport> QuantizeModel(const std::string& in,
                                    const std::string& out,
                                    std::string_view type,
                                    const WriteOptions& options) {
  const std::optional<FileType> wanted = FileTypeNamed(type);
  if (!wanted) {
    return {Code::kInvalidArgument, "type \"" + std::string(type) +
                                        "\" is none of Q8_0, Q4_0, Q4_K, Q6_K"};
  }
  HEARTH_TRY(CheckTarget(in, out, /*directory=*/false, options));
  HEARTH_ASSIGN(LoadedModel model, LoadModel(in));
  const auto widened = WidenAllInt4(model);
  HEARTH_ASSIGN(std::vector<GgufMetadata> metadata, GgufModelMetadata(model));
  HEARTH_ASSIGN(const auto tokenizer, GgufTokenizerMetadata(model));
  HEARTH_ASSIGN(std::vector<GgufTensorSource> tensors, GgufModelTensors(model));
  AvoidNameRules(metadata, tokenizer);
  ConvertReport report;
  report.n_tensors = tensors.size();
  QuantizeAll(wanted->dtype, tensors, report);
  metadata.push_back({"general.file_type", wanted->id});
  metadata.push_back({"general.quantization_version", std::uint32_t{2}});
  metadata.insert(metadata.end(), tokenizer.begin(), tokenizer.end());
  HEARTH_TRY(WriteGguf(out, metadata, tensors, options, FilesOf(model)));
  return report;
}

Result<ConvertReport> ConvertModel(const std::string& in,
                                   const std::string& out,
                                   const WriteOptions& options) {
  HEARTH_TRY(CheckTarget(in, out, IsDirectoryTarget(out), options));
  HEARTH_ASSIGN(LoadedModel model, LoadModel(in));
  if (HasSuffix(out, ".tinygpt")) {
    HEARTH_TRY(WriteTinygpt(model, out, options));
    return ConvertReport{.notes = {}, .n_tensors = model.tensors.size()};
  }
  const auto widened = WidenAllInt4(model);
  if (IsDirectoryTarget(out)) {
    HEARTH_TRY(WriteHuggingFace(model, out, options));
    return ConvertReport{.notes = {}, .n_tensors = model.tensors.size()};
  }
  HEARTH_ASSIGN(std::vector<GgufMetadata> metadata, GgufModelMetadata(model));
  HEARTH_ASSIGN(const auto tokenizer, GgufTokenizerMetadata(model));
  HEARTH_ASSIGN(const std::vector<GgufTensorSource> tensors,
                GgufModelTensors(model));
  AvoidNameRules(metadata, tokenizer);
  metadata.insert(metadata.end(), tokenizer.begin(), tokenizer.end());
  HEARTH_TRY(WriteGguf(out, metadata, tensors, options, FilesOf(model)));
  ConvertReport report;
  report.n_tensors = tensors.size();
  return report;
}

}  // namespace hearth
