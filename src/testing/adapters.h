// LoRA adapters with numbers made in memory, in both forms that files have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/huggingface/safetensors.h"
#include "testing/gguf_builder.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {

// Of one layer, in the order of rows that Hugging Face has.
struct TinyPair {
  std::string hf_name, gguf_name;  // without ".weight"
  TinyTensor down, up;             // [rank, n_in], [n_out, rank]
  int head_dim = 0;  // of queries and keys, whose rows GGUF may order by pairs
};

inline TinyPair MakePair(const std::string& hf_name,
                         const std::string& gguf_name, int n_out, int n_in,
                         int rank, int head_dim = 0, std::uint64_t seed = 7) {
  const auto u = [](int n) { return static_cast<std::uint64_t>(n); };
  return {hf_name, gguf_name,
          MakeTensor(hf_name + ".lora_A", {u(rank), u(n_in)}, seed),
          MakeTensor(hf_name + ".lora_B", {u(n_out), u(rank)}, seed), head_dim};
}

inline std::vector<std::byte> BytesOfFloats(const std::vector<float>& values) {
  std::vector<std::byte> bytes;
  for (const float v : values) AppendLe(bytes, v);
  return bytes;
}

// As PEFT saves it, in the place of what is there. `config`: members of
// adapter_config.json.
inline Result<void> WritePeft(const std::string& dir,
                              const std::vector<TinyPair>& pairs,
                              const std::string& config) {
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  WriteTextFile(dir + "/adapter_config.json", "{" + config + "}");
  std::vector<std::vector<std::byte>> bytes;
  std::vector<SafetensorsTensor> tensors;
  bytes.reserve(2 * pairs.size());
  for (const TinyPair& pair : pairs) {
    for (const auto& [tensor, end] :
         {std::pair{&pair.down, ".lora_A"}, std::pair{&pair.up, ".lora_B"}}) {
      bytes.push_back(BytesOfFloats(tensor->values));
      tensors.push_back({"base_model.model." + pair.hf_name + end + ".weight",
                         "F32", tensor->shape, bytes.back()});
    }
  }
  return WriteSafetensors(dir + "/adapter_model.safetensors", tensors);
}

// As a converter for llama.cpp writes it. `by_pairs`: the rows of queries and
// keys in the order (2i, 2i + 1).
inline GgufBuilder GgufAdapter(const std::vector<TinyPair>& pairs,
                               const std::string& architecture, float alpha,
                               bool by_pairs) {
  GgufBuilder b;
  b.Text("general.type", "adapter")
      .Text("general.architecture", architecture)
      .Text("adapter.type", "lora")
      .Float("adapter.lora.alpha", alpha);
  for (const TinyPair& pair : pairs) {
    std::vector<float> up = pair.up.values;
    const std::size_t rank = pair.up.shape[1];
    const auto d = static_cast<std::size_t>(pair.head_dim);
    for (std::size_t r = 0; by_pairs && d > 0 && r < pair.up.shape[0]; ++r) {
      // Number i of a head's first half and of its second become neighbours.
      const std::size_t head = r / d, at = r % d;
      const std::size_t to = head * d + at % (d / 2) * 2 + at / (d / 2);
      for (std::size_t k = 0; k < rank; ++k) {
        up[to * rank + k] = pair.up.values[r * rank + k];
      }
    }
    const std::string name = pair.gguf_name + ".weight";
    b.Tensor(name + ".lora_a", pair.down.shape, 0,
             BytesOfFloats(pair.down.values));
    b.Tensor(name + ".lora_b", pair.up.shape, 0, BytesOfFloats(up));
  }
  return b;
}

// Of every linear layer of a llama-like model, its head included.
inline std::vector<TinyPair> PairsOfLlama(int layers, int d, int d_kv,
                                          int d_mlp, int head_dim, int vocab,
                                          int rank, std::uint64_t seed = 7) {
  std::vector<TinyPair> pairs;
  for (int i = 0; i < layers; ++i) {
    const std::string hf = "model.layers." + std::to_string(i) + ".";
    const std::string gguf = "blk." + std::to_string(i) + ".";
    const auto add = [&](const char* a, const char* b, int n_out, int n_in,
                         int head = 0) {
      pairs.push_back(
          MakePair(hf + a, gguf + b, n_out, n_in, rank, head, seed));
    };
    add("self_attn.q_proj", "attn_q", d, d, head_dim);
    add("self_attn.k_proj", "attn_k", d_kv, d, head_dim);
    add("self_attn.v_proj", "attn_v", d_kv, d);
    add("self_attn.o_proj", "attn_output", d, d);
    add("mlp.gate_proj", "ffn_gate", d_mlp, d);
    add("mlp.up_proj", "ffn_up", d_mlp, d);
    add("mlp.down_proj", "ffn_down", d, d_mlp);
  }
  pairs.push_back(MakePair("lm_head", "output", vocab, d, rank, 0, seed));
  return pairs;
}

}  // namespace hearth
