#include "formats/huggingface/hf_quantization.h"

#include <optional>

#include "formats/describe.h"

namespace hearth {
namespace {

constexpr std::uint64_t kBlockSideMax = 1 << 20;

Error NotRead(const std::string& label, const std::string& scheme) {
  return {Code::kUnsupported,
          label + ": quantization_config: weights quantised by " + scheme +
              " are not read in a Hugging Face directory of this family; get "
              "the model unquantised, in FP8 or NVFP4, or as GGUF"};
}

// The two sides of a block; nothing for null or no member.
Result<void> ReadBlock(const Json& in, const char* key,
                       const std::string& label, HfQuantization& out) {
  const Json* sides = JsonFind(in, key);
  if (sides == nullptr || sides->is_null()) return {};
  const auto side = [&](std::size_t i) -> std::uint64_t {
    const Json& n = (*sides)[i];
    return n.is_number_unsigned() ? n.get<std::uint64_t>() : 0;
  };
  if (sides->is_array() && sides->size() == 2) {
    out.block_rows = side(0);
    out.block_columns = side(1);
  }
  if (out.block_rows < 1 || out.block_rows > kBlockSideMax ||
      out.block_columns < 1 || out.block_columns > kBlockSideMax) {
    return {Code::kCorrupt,
            label + ": member \"" + key + "\" is not the two sides of a block"};
  }
  return {};
}

// "fp8": DeepSeek's blocks and what transformers made of them.
Result<HfQuantization> ReadFineGrained(const Json& in,
                                       const std::string& label) {
  HfQuantization out{.method = HfQuantMethod::kFloat};
  HEARTH_ASSIGN(const std::string format, JsonText(in, "fmt", label, "e4m3"));
  if (format != "e4m3")
    return NotRead(label, "fp8 of format " + Quoted(format));
  HEARTH_TRY(ReadBlock(in, "weight_block_size", label, out));
  return out;
}

bool IsEmpty(const Json* json) {
  return json == nullptr || json->is_null() || json->empty();
}

// One group of layers of compressed-tensors.
Result<void> ReadGroup(const Json& group, const std::string& whole_format,
                       const std::string& label, HfQuantization& out) {
  const Json* weights =
      group.is_object() ? JsonFind(group, "weights") : nullptr;
  if (weights == nullptr || !weights->is_object()) {
    return {Code::kCorrupt,
            label + ": a group of quantization_config has no \"weights\""};
  }
  std::string format = whole_format;
  if (format == "mixed-precision") {
    HEARTH_ASSIGN(format, JsonText(group, "format", label, whole_format));
  }
  if (format == "nvfp4-pack-quantized") {
    out.divides_by_global = true;
    return {};
  }
  if (format != "float-quantized") {
    return NotRead(label, "compressed-tensors as " + Quoted(format));
  }
  return ReadBlock(*weights, "block_structure", label, out);
}

Result<HfQuantization> ReadCompressedTensors(const Json& in,
                                             const std::string& label) {
  HfQuantization out{.method = HfQuantMethod::kFloat};
  HEARTH_ASSIGN(const std::string format, JsonText(in, "format", label, ""));
  if (const Json* sparse = JsonFind(in, "sparsity_config");
      !IsEmpty(sparse) && (!sparse->is_object() ||
                           sparse->value("format", Json("dense")) != "dense")) {
    return NotRead(label, "compressed-tensors with sparsity");
  }
  if (!IsEmpty(JsonFind(in, "transform_config"))) {
    return NotRead(label, "compressed-tensors with transforms");
  }
  const Json* groups = JsonFind(in, "config_groups");
  if (groups == nullptr || !groups->is_object() || groups->empty()) {
    return {Code::kCorrupt,
            label + ": quantization_config has no \"config_groups\""};
  }
  for (const Json& group : *groups) {
    HEARTH_TRY(ReadGroup(group, format, label, out));
  }
  return out;
}

Result<HfQuantization> ReadModelOptimizer(const Json& in,
                                          const std::string& label) {
  HEARTH_ASSIGN(const std::string algorithm,
                JsonText(in, "quant_algo", label, ""));
  if (algorithm != "FP8" && algorithm != "FP8_PER_CHANNEL_PER_TOKEN" &&
      algorithm != "NVFP4") {
    return NotRead(label, "modelopt as " + Quoted(algorithm));
  }
  HEARTH_ASSIGN(const std::int64_t group, JsonInt(in, "group_size", label, 16));
  if (algorithm == "NVFP4" && group != 16) {
    return NotRead(label, "NVFP4 in groups of " + std::to_string(group));
  }
  return HfQuantization{.method = HfQuantMethod::kFloat};
}

}  // namespace

Result<HfQuantization> ReadHfQuantization(const Json& config,
                                          const std::string& label,
                                          const Family& family) {
  if (JsonFind(config, "quantization") != nullptr) {
    return Error{Code::kUnsupported,
                 label +
                     ": the weights are quantised by MLX (member "
                     "\"quantization\"), which is not read; get the model "
                     "unquantised or as GGUF"};
  }
  const Json* in = JsonFind(config, "quantization_config");
  if (in == nullptr || in->is_null()) return HfQuantization{};
  std::string method;
  if (in->is_object()) {
    HEARTH_ASSIGN(method, JsonText(*in, "quant_method", label, ""));
  }
  if (method == "mxfp4" && family.hf_mxfp4) {
    return HfQuantization{.method = HfQuantMethod::kMxfp4};
  }
  if (method == "fp8") return ReadFineGrained(*in, label);
  if (method == "fbgemm_fp8") {
    return HfQuantization{.method = HfQuantMethod::kFloat};
  }
  if (method == "compressed-tensors") return ReadCompressedTensors(*in, label);
  if (method == "modelopt") return ReadModelOptimizer(*in, label);
  return NotRead(label, method.empty() ? "an unnamed method" : Quoted(method));
}

Result<HfQuantization> ReadHfQuantFile(const Json& file,
                                       const std::string& label) {
  const Json* in = file.is_object() ? JsonFind(file, "quantization") : nullptr;
  if (in == nullptr || !in->is_object()) {
    return {Code::kCorrupt, label + ": has no \"quantization\""};
  }
  const Json* algorithm = JsonFind(*in, "quant_algo");
  if (algorithm == nullptr || algorithm->is_null()) return HfQuantization{};
  return ReadModelOptimizer(*in, label);
}

}  // namespace hearth
