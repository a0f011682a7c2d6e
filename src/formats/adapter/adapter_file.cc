#include "formats/adapter/adapter_file.h"

#include <filesystem>
#include <utility>

#include "formats/describe.h"
#include "formats/huggingface/python_json.h"
#include "formats/locate/file_kind.h"
#include "formats/tensors/tensor_set.h"

namespace hearth {
namespace {

// Beyond any adapter; keeps products of sizes far within 62 bits.
constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kRankMax = std::uint64_t{1} << 13;
constexpr std::size_t kConfigBytesMax = 4u << 20;
constexpr char kConfigFile[] = "adapter_config.json";
constexpr char kTensorsFile[] = "adapter_model.safetensors";

std::string Join(const std::string& directory, const char* name) {
  return (std::filesystem::path(directory) / name).string();
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Result<AdapterFile> ReadDirectory(const std::string& path) {
  const std::string config_path = Join(path, kConfigFile);
  if (!Exists(config_path)) {
    return {Code::kNotFound,
            path + ": has no " + kConfigFile +
                "; an adapter is a GGUF file, or a PEFT directory with " +
                kConfigFile + " and " + kTensorsFile};
  }
  const std::string tensors_path = Join(path, kTensorsFile);
  if (!Exists(tensors_path) && Exists(Join(path, "adapter_model.bin"))) {
    return {Code::kUnsupported,
            path +
                ": only has PyTorch weights, which can run code when read; "
                "save them as safetensors"};
  }
  HEARTH_ASSIGN(const MappedFile text, MappedFile::Open(config_path));
  if (text.bytes().size() > kConfigBytesMax) {
    return {Code::kCorrupt, config_path + ": longer than 4 MiB"};
  }
  HEARTH_TRY(RefuseDownloadAccident(text.bytes(), config_path));
  HEARTH_ASSIGN(const Json config,
                ParsePythonJson(AsText(text.bytes()), config_path));
  HEARTH_ASSIGN(MappedFile tensors, MappedFile::Open(tensors_path));
  HEARTH_TRY(RefuseDownloadAccident(tensors.bytes(), tensors_path));
  HEARTH_ASSIGN(AdapterFile file,
                ParsePeftAdapter(config, tensors.bytes(), path));
  file.files.push_back(std::move(tensors));
  return file;
}

Result<AdapterFile> ReadFile(const std::string& path) {
  HEARTH_ASSIGN(MappedFile mapped, MappedFile::Open(path));
  const ByteSpan bytes = mapped.bytes();
  HEARTH_TRY(RefuseDownloadAccident(bytes, path));
  if (!AsText(bytes).starts_with("GGUF")) {
    const std::string name = std::filesystem::path(path).filename().string();
    if (name == kConfigFile || name.ends_with(".safetensors")) {
      return {Code::kUnsupported,
              path +
                  ": a part of a PEFT adapter; give the "
                  "directory that holds it with its " +
                  (name == kConfigFile ? kTensorsFile : kConfigFile)};
    }
    return {Code::kUnsupported,
            path +
                ": not an adapter; an adapter is a GGUF file or a PEFT "
                "directory"};
  }
  HEARTH_ASSIGN(AdapterFile file, ParseGgufAdapter(bytes, path));
  file.files.push_back(std::move(mapped));
  return file;
}

}  // namespace

Result<AdapterMatrix> MatrixOf(const AdapterTensor& tensor,
                               const std::string& label) {
  const std::string what = label + ": tensor " + Quoted(tensor.name);
  const auto shape = WithoutOuterOnes(tensor.shape);
  if (shape.empty() || shape.size() > 2) {
    return {Code::kUnsupported, what + " has shape " + ShapeText(tensor.shape) +
                                    "; an adapter's matrices have two "
                                    "dimensions: " +
                                    kMergeIt};
  }
  // Some writers leave out that there is one row.
  const std::uint64_t n_out = shape.size() == 2 ? shape[0] : 1;
  const std::uint64_t n_in = shape.back();
  if (n_out < 1 || n_in < 1 || n_out > kSizeMax || n_in > kSizeMax) {
    return {Code::kCorrupt,
            what + " has the impossible shape " + ShapeText(tensor.shape)};
  }
  if (tensor.dtype != DType::kF32 && tensor.dtype != DType::kF16 &&
      tensor.dtype != DType::kBF16) {
    return {Code::kUnsupported, what + " has type " + tensor.type +
                                    "; an adapter's matrices must be F32, F16 "
                                    "or BF16: get one that is not quantised"};
  }
  const auto n_bytes = BytesOf(*tensor.dtype, n_out * n_in);
  if (!n_bytes.has_value() || *n_bytes != tensor.bytes.size()) {
    return {Code::kCorrupt, what + " does not fill its bytes"};
  }
  return AdapterMatrix{*tensor.dtype, static_cast<std::int64_t>(n_out),
                       static_cast<std::int64_t>(n_in), tensor.bytes};
}

Result<void> CheckPair(const AdapterPair& pair, const std::string& label) {
  if (pair.down.bytes.empty() || pair.up.bytes.empty()) {
    return {Code::kCorrupt, label + ": the adapter of " + Quoted(pair.name) +
                                " has one of its two matrices only"};
  }
  if (pair.down.n_out != pair.up.n_in ||
      static_cast<std::uint64_t>(pair.up.n_in) > kRankMax) {
    return {Code::kCorrupt, label + ": the adapter of " + Quoted(pair.name) +
                                " has ranks " +
                                std::to_string(pair.down.n_out) + " and " +
                                std::to_string(pair.up.n_in)};
  }
  return {};
}

Result<AdapterFile> ReadAdapter(const std::string& path) {
  std::error_code ignored;
  Result<AdapterFile> file = std::filesystem::is_directory(path, ignored)
                                 ? ReadDirectory(path)
                                 : ReadFile(path);
  if (file.ok()) return file;
  return {file.error().code,
          file.error().message + UnfinishedDownloadNote(path)};
}

}  // namespace hearth
