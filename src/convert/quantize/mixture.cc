#include "convert/quantize/mixture.h"

#include <algorithm>
#include <charconv>

namespace hearth {
namespace {

constexpr QuantizeType kTypes[] = {
    {"F32", DType::kF32, 0},        {"F16", DType::kF16, 1},
    {"BF16", DType::kBF16, 32},     {"Q8_0", DType::kQ8_0, 7},
    {"Q6_K", DType::kQ6_K, 18},     {"Q5_K_M", DType::kQ5_K, 17},
    {"Q5_K_S", DType::kQ5_K, 16},   {"Q5_1", DType::kQ5_1, 9},
    {"Q5_0", DType::kQ5_0, 8},      {"Q4_K_M", DType::kQ4_K, 15},
    {"Q4_K_S", DType::kQ4_K, 14},   {"IQ4_NL", DType::kIQ4_NL, 25},
    {"IQ4_XS", DType::kIQ4_XS, 30}, {"Q4_1", DType::kQ4_1, 3},
    {"Q4_0", DType::kQ4_0, 2},      {"Q3_K_L", DType::kQ3_K, 13},
    {"Q3_K_M", DType::kQ3_K, 12},   {"Q3_K_S", DType::kQ3_K, 11},
    {"Q2_K", DType::kQ2_K, 10}};

constexpr int kLayersOf70B = 80;
constexpr int kExpertsOfMixtral = 8;

bool IsPlain(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// The first and the last eighth of the layers and every third between.
bool IsFavoured(int layer, int n_layers) {
  const int eighth = n_layers / 8;
  return layer < eighth || layer >= 7 * n_layers / 8 ||
         (layer - eighth) % 3 == 2;
}

int LayerOf(std::string_view name) {
  int layer = 0;
  if (name.starts_with("blk.")) {
    std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  }
  return layer;
}

struct Choice {
  const QuantizeType& type;
  const MixtureFacts& facts;
  int layer;

  bool Is(std::string_view name) const { return type.name == name; }
  bool IsIq4() const { return Is("IQ4_NL") || Is("IQ4_XS"); }
  bool favoured() const { return IsFavoured(layer, facts.n_layers); }
  bool mixtral() const { return facts.n_experts == kExpertsOfMixtral; }

  DType Values() const;
  DType Down() const;
  DType AttentionOutput() const;
};

// The matrix of values is small where heads share it, and matters most.
DType Choice::Values() const {
  DType to = type.main;
  if (Is("Q2_K")) {
    to = facts.heads_per_kv_head >= 4 ? DType::kQ4_K : DType::kQ3_K;
  } else if (Is("Q3_K_M")) {
    to = layer < 2 ? DType::kQ5_K : DType::kQ4_K;
  } else if (Is("Q3_K_L")) {
    to = DType::kQ5_K;
  } else if (IsIq4() && facts.heads_per_kv_head >= 4) {
    to = DType::kQ5_K;
  } else if ((Is("Q4_K_M") || Is("Q5_K_M")) && favoured()) {
    to = DType::kQ6_K;
  } else if (Is("Q4_K_S") && layer < 4) {
    to = DType::kQ5_K;
  }
  if (facts.n_layers == kLayersOf70B &&
      (to == DType::kQ3_K || to == DType::kQ4_K)) {
    to = DType::kQ5_K;
  }
  return mixtral() ? DType::kQ8_0 : to;
}

DType Choice::Down() const {
  const bool early = layer < facts.n_layers / 8;
  if (Is("Q2_K")) return DType::kQ3_K;
  if (Is("Q3_K_M")) {
    return layer < facts.n_layers / 16 ? DType::kQ5_K : DType::kQ4_K;
  }
  if (Is("Q3_K_L")) return DType::kQ5_K;
  if ((Is("Q4_K_M") || Is("Q5_K_M")) && favoured()) return DType::kQ6_K;
  if ((Is("Q4_K_S") || IsIq4()) && early) return DType::kQ5_K;
  return type.main;
}

DType Choice::AttentionOutput() const {
  if (mixtral()) {
    const bool narrow = type.main == DType::kQ2_K ||
                        type.main == DType::kQ3_K ||
                        type.main == DType::kQ4_K || IsIq4();
    return narrow && !Is("Q3_K_L") ? DType::kQ5_K : type.main;
  }
  if (Is("Q2_K")) return DType::kQ3_K;
  if (Is("Q3_K_M")) return DType::kQ4_K;
  if (Is("Q3_K_L")) return DType::kQ5_K;
  return type.main;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

}  // namespace

const QuantizeType* FindQuantizeType(std::string_view name) {
  std::string wanted = Upper(name);
  if (wanted == "Q3_K" || wanted == "Q4_K" || wanted == "Q5_K") wanted += "_M";
  for (const QuantizeType& type : kTypes) {
    if (type.name == wanted) return &type;
  }
  return nullptr;
}

std::string QuantizeTypeNames() {
  std::string names;
  for (const QuantizeType& type : kTypes) {
    if (!names.empty()) names += ", ";
    names += type.name;
  }
  return names;
}

MixtureFacts FactsOf(const ModelConfig& config) {
  return {.n_layers = config.n_layers,
          .heads_per_kv_head = config.n_heads / std::max(1, config.n_kv_heads),
          .n_experts = config.n_experts,
          .tied_head = config.tied_head};
}

bool IsQuantised(std::string_view gguf_name, std::size_t n_dims) {
  // Norms, what chooses experts, convolutions, and what a layer's memory decays
  // by: small, and a little error goes far.
  constexpr std::string_view kKept[] = {
      "_norm.weight",      "ffn_gate_inp.weight",   "ffn_gate_inp_shexp.weight",
      "ssm_conv1d.weight", "shortconv.conv.weight", "ssm_alpha.weight",
      "ssm_beta.weight",   "ssm_ba.weight"};
  if (n_dims < 2 || !gguf_name.ends_with(".weight") ||
      gguf_name == "position_embd.weight" ||
      gguf_name == "per_layer_model_proj.weight") {
    return false;
  }
  return std::none_of(
      std::begin(kKept), std::end(kKept),
      [&](std::string_view ending) { return gguf_name.ends_with(ending); });
}

DType MixtureFormat(const QuantizeType& type, const MixtureFacts& facts,
                    std::string_view gguf_name) {
  if (IsPlain(type.main)) return type.main;
  if (gguf_name == "output.weight" ||
      (gguf_name == "token_embd.weight" && facts.tied_head)) {
    return type.main == DType::kQ8_0 ? DType::kQ8_0 : DType::kQ6_K;
  }
  const Choice choice{type, facts, LayerOf(gguf_name)};
  // Values may share a matrix with queries and keys.
  if (gguf_name.ends_with("attn_v.weight") ||
      gguf_name.ends_with("attn_qkv.weight")) {
    return choice.Values();
  }
  if (gguf_name.ends_with("attn_k.weight") && choice.mixtral()) {
    return DType::kQ8_0;
  }
  if (gguf_name.find("ffn_down") != std::string_view::npos) {
    return choice.Down();
  }
  if (gguf_name.ends_with("attn_output.weight")) {
    return choice.AttentionOutput();
  }
  return type.main;
}

std::optional<DType> FormatForWidth(DType wanted, std::uint64_t n) {
  const auto fits = [n](DType dtype) {
    return n % static_cast<std::uint64_t>(InfoOf(dtype).block_elements) == 0;
  };
  if (fits(wanted)) return wanted;
  DType other = DType::kQ8_0;
  switch (wanted) {
    case DType::kQ2_K:
    case DType::kQ3_K:
    case DType::kIQ4_XS:
      other = DType::kIQ4_NL;
      break;
    case DType::kQ4_K:
      other = DType::kQ5_0;
      break;
    case DType::kQ5_K:
      other = DType::kQ5_1;
      break;
    default:
      break;
  }
  if (fits(other)) return other;
  return std::nullopt;
}

}  // namespace hearth
