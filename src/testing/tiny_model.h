// Small models with random weights, made in memory: every file format and
// number format that hearth reads, for the tests of all rooms.
//
// A weight's value depends on its tensor's name, its index and the seed, so the
// same spec in two number formats is the same model up to rounding.
#pragma once

#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "formats/huggingface/safetensors.h"
#include "formats/tensors/tensor_names.h"
#include "tensor/dtype.h"
#include "tensor/half.h"
#include "testing/gguf_builder.h"

namespace hearth {

struct TinySpec {
  int layers = 2;
  int d_model = 64;
  int heads = 4;
  int kv_heads = 2;
  int d_mlp = 96;
  int vocab = 256;
  int context = 64;
  std::uint64_t seed = 1;

  int HeadDim() const { return d_model / heads; }
};

// As small as a model with grouped heads can well be.
inline TinySpec SmallestSpec() {
  return {.layers = 1,
          .d_model = 8,
          .heads = 2,
          .kv_heads = 1,
          .d_mlp = 12,
          .vocab = 16,
          .context = 32};
}

struct TinyTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // outermost first
  std::vector<float> values;         // row-major in that shape
};

// Uniform with deviation about 0.12 for matrices, around 1 for norm weights.
inline TinyTensor MakeTensor(std::string name, std::vector<std::uint64_t> shape,
                             std::uint64_t seed) {
  std::uint64_t n = 1;
  for (const std::uint64_t d : shape) n *= d;
  const std::uint64_t stream = Checksum64(AsBytes(name)) + seed;
  const bool norm = shape.size() == 1 && name.ends_with(".weight");
  TinyTensor tensor{std::move(name), std::move(shape), {}};
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t key[] = {stream, i};
    const std::uint64_t bits = Checksum64(std::as_bytes(std::span(key)));
    const float unit = static_cast<float>(bits >> 40) * 0x1p-24f - 0.5f;
    tensor.values.push_back((norm ? 1.0f : 0.0f) + 0.4f * unit);
  }
  return tensor;
}

// The tensors of a model under the names of one format. `gated`: a llama-like
// model, else the from-scratch GPT.
inline std::vector<TinyTensor> TinyTensors(const TinySpec& s,
                                           const NameScheme& names, bool gated,
                                           bool qkv_bias, bool own_head) {
  std::vector<TinyTensor> out;
  const auto u = [](int n) { return static_cast<std::uint64_t>(n); };
  const auto norm = [&](Role role, int i) {
    out.push_back(
        MakeTensor(WeightName(names, role, i), {u(s.d_model)}, s.seed));
    if (!gated) {
      out.push_back(
          MakeTensor(BiasName(names, role, i), {u(s.d_model)}, s.seed));
    }
  };
  const auto linear = [&](Role role, int i, int n_out, int n_in, bool bias) {
    out.push_back(
        MakeTensor(WeightName(names, role, i), {u(n_out), u(n_in)}, s.seed));
    if (bias) {
      out.push_back(MakeTensor(BiasName(names, role, i), {u(n_out)}, s.seed));
    }
  };
  const int d = s.d_model, d_kv = s.kv_heads * s.HeadDim();
  linear(Role::kTokenEmbedding, 0, s.vocab, d, false);
  if (!gated) linear(Role::kPositionEmbedding, 0, s.context, d, false);
  norm(Role::kFinalNorm, 0);
  for (int i = 0; i < s.layers; ++i) {
    norm(Role::kAttentionNorm, i);
    linear(Role::kQ, i, d, d, qkv_bias);
    linear(Role::kK, i, d_kv, d, qkv_bias);
    linear(Role::kV, i, d_kv, d, qkv_bias);
    linear(Role::kO, i, d, d, !gated);
    norm(Role::kMlpNorm, i);
    if (gated) linear(Role::kGate, i, s.d_mlp, d, false);
    linear(Role::kUp, i, s.d_mlp, d, !gated);
    linear(Role::kDown, i, d, s.d_mlp, !gated);
  }
  if (own_head) linear(Role::kHead, 0, s.vocab, d, false);
  return out;
}

// --- .tinygpt ---------------------------------------------------------------

enum class TinygptForm { kTrainingF32, kF32, kF16, kInt4 };

// Puts header and body of a .tinygpt file together.
inline std::vector<std::byte> JoinTinygpt(std::string_view header,
                                          std::span<const std::byte> body,
                                          std::uint32_t version = 2) {
  std::vector<std::byte> out;
  const auto put = [&](ByteSpan bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  put(AsBytes("TGPT"));
  AppendLe(out, version);
  AppendLe(out, static_cast<std::uint32_t>(header.size()));
  put(AsBytes(header));
  AppendLe(out, std::int32_t{0});
  put(body);
  return out;
}

// A tensor's values in the order in which a .tinygpt file stores them: linear
// weights transposed to [in, out].
inline std::vector<float> TinygptOrder(const TinyTensor& t) {
  if (t.shape.size() != 2 || t.name.find("embedding") != std::string::npos) {
    return t.values;
  }
  std::vector<float> out;
  for (std::uint64_t k = 0; k < t.shape[1]; ++k) {
    for (std::uint64_t n = 0; n < t.shape[0]; ++n) {
      out.push_back(t.values[n * t.shape[1] + k]);
    }
  }
  return out;
}

inline void AppendInt4(std::span<const float> values,
                       std::vector<std::byte>& scales,
                       std::vector<std::byte>& packed) {
  for (std::size_t i = 0; i < values.size(); i += 64) {
    const auto block =
        values.subspan(i, std::min<std::size_t>(64, values.size() - i));
    float peak = 0;
    for (const float v : block) peak = std::max(peak, std::abs(v));
    const F16 half = ToF16(peak / 7.0f);
    const float scale = ToFloat(half);
    AppendLe(scales, half.bits);
    const auto nibble = [&](std::size_t k) -> unsigned {
      if (k >= block.size()) return 0;
      const float q = scale > 0 ? std::round(block[k] / scale) : 0.0f;
      return static_cast<unsigned>(std::clamp(q, -7.0f, 7.0f) + 8.0f);
    };
    for (std::size_t k = 0; k < 64; k += 2) {
      packed.push_back(static_cast<std::byte>(nibble(k) | nibble(k + 1) << 4));
    }
  }
}

// `extra_config`: members to add to the header's config, as in ",\"x\":1".
inline std::vector<std::byte> MakeTinygpt(const TinySpec& s, TinygptForm form,
                                          std::string_view extra_config = "") {
  std::vector<std::byte> body, scales;
  std::string manifest;
  std::uint64_t offset = 0;
  const std::vector<TinyTensor> tensors =
      TinyTensors(s, kTinygptNames, false, true, false);
  for (const TinyTensor& t : tensors) {
    const std::vector<float> values = TinygptOrder(t);
    manifest += (manifest.empty() ? "" : ",") + ("{\"name\":\"" + t.name) +
                "\",\"shape\":[" + std::to_string(t.shape[0]) +
                (t.shape.size() > 1 ? "," + std::to_string(t.shape[1]) : "") +
                "],\"floatOffset\":" + std::to_string(offset) + "}";
    offset += values.size();
    switch (form) {
      case TinygptForm::kTrainingF32:
        for (const float v : values) AppendLe(body, v);
        body.resize(body.size() + 8 * values.size());  // Adam's m and v
        break;
      case TinygptForm::kF32:
        for (const float v : values) AppendLe(body, v);
        break;
      case TinygptForm::kF16:
        for (const float v : values) AppendLe(body, ToF16(v).bits);
        break;
      case TinygptForm::kInt4:
        AppendInt4(values, scales, body);
        break;
    }
  }
  std::string header = "{\"config\":{\"layers\":" + std::to_string(s.layers) +
                       ",\"dModel\":" + std::to_string(s.d_model) +
                       ",\"heads\":" + std::to_string(s.heads) +
                       ",\"nKvHeads\":" + std::to_string(s.kv_heads) +
                       ",\"dMlp\":" + std::to_string(s.d_mlp) +
                       ",\"ctx\":" + std::to_string(s.context) +
                       ",\"vocabSize\":" + std::to_string(s.vocab) +
                       std::string(extra_config) + "},\"manifest\":[" +
                       manifest + "]";
  switch (form) {
    case TinygptForm::kTrainingF32:
      header += ",\"weightDtype\":\"fp32\"";
      break;
    case TinygptForm::kF32:
      header += ",\"weightDtype\":\"fp32\",\"includesOptimizerState\":false";
      break;
    case TinygptForm::kF16:
      header += ",\"weightDtype\":\"fp16\",\"includesOptimizerState\":false";
      break;
    case TinygptForm::kInt4:
      header +=
          ",\"weightDtype\":\"int4\",\"int4BlockSize\":64"
          ",\"int4ScalesBytes\":" +
          std::to_string(scales.size()) +
          ",\"int4PackedBytes\":" + std::to_string(body.size());
      break;
  }
  scales.insert(scales.end(), body.begin(), body.end());
  return JoinTinygpt(header + "}", scales);
}

// --- GGUF -------------------------------------------------------------------

inline std::uint32_t GgufTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ8_0:
      return 8;
    case DType::kBF16:
      return 30;
    default:
      return 0;
  }
}

// Shapes and settings of a GGUF model, without tensors or tokenizer.
inline GgufBuilder TinyGgufHeader(const TinySpec& s,
                                  const std::string& architecture) {
  GgufBuilder b;
  const auto u = [](int n) { return static_cast<std::uint32_t>(n); };
  b.Text("general.architecture", architecture)
      .Int(architecture + ".block_count", u(s.layers))
      .Int(architecture + ".context_length", u(s.context))
      .Int(architecture + ".embedding_length", u(s.d_model))
      .Int(architecture + ".feed_forward_length", u(s.d_mlp))
      .Int(architecture + ".attention.head_count", u(s.heads))
      .Int(architecture + ".attention.head_count_kv", u(s.kv_heads))
      .Float(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  return b;
}

// Matrices in `dtype`, vectors in float. Give d_model and d_mlp in multiples of
// 32 for the quantised ones.
inline void AddTinyGgufTensors(GgufBuilder& b, const TinySpec& s, DType dtype,
                               bool qkv_bias, bool own_head) {
  for (const TinyTensor& t :
       TinyTensors(s, kGgufNames, true, qkv_bias, own_head)) {
    const DType used = t.shape.size() == 2 ? dtype : DType::kF32;
    b.Tensor(t.name, t.shape, GgufTypeOf(used), EncodeWeights(used, t.values));
  }
}

// architecture: "llama" or "qwen2".
inline std::vector<std::byte> MakeGguf(
    const TinySpec& s, DType dtype, const std::string& architecture = "llama",
    bool own_head = false) {
  GgufBuilder b = TinyGgufHeader(s, architecture);
  AddTinyGgufTensors(b, s, dtype, architecture == "qwen2", own_head);
  return b.Build();
}

// --- Hugging Face -----------------------------------------------------------

inline void WriteTextFile(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}
inline void WriteBytes(const std::string& path, ByteSpan bytes) {
  WriteTextFile(path, AsText(bytes));
}

// config.json of a llama; `extra`: more members, as in ",\"x\":1".
inline std::string TinyHfConfig(const TinySpec& s,
                                std::string_view extra = "") {
  return "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_act\":\"silu\""
         ",\"hidden_size\":" +
         std::to_string(s.d_model) +
         ",\"intermediate_size\":" + std::to_string(s.d_mlp) +
         ",\"num_hidden_layers\":" + std::to_string(s.layers) +
         ",\"num_attention_heads\":" + std::to_string(s.heads) +
         ",\"num_key_value_heads\":" + std::to_string(s.kv_heads) +
         ",\"vocab_size\":" + std::to_string(s.vocab) +
         ",\"max_position_embeddings\":" + std::to_string(s.context) +
         ",\"rms_norm_eps\":1e-5,\"rope_theta\":10000.0" + std::string(extra) +
         "}";
}

// Writes tensors as F32, F16 or BF16 to one safetensors file.
inline Result<void> WriteTinySafetensors(const std::string& path,
                                         const std::vector<TinyTensor>& tensors,
                                         DType dtype) {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<SafetensorsTensor> out;
  for (const TinyTensor& t : tensors) {
    bytes.push_back(EncodeWeights(dtype, t.values));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    out.push_back({tensors[i].name, std::string(InfoOf(dtype).name),
                   tensors[i].shape, bytes[i]});
  }
  return WriteSafetensors(path, out, {}, {.replace = true});
}

}  // namespace hearth
