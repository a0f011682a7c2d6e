#include "engine/convert_huggingface.h"

#include <cmath>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "model/io/families.h"
#include "model/io/gguf_export.h"
#include "model/io/stream_writer.h"
#include "tensor/dequantize.h"
#include "text/gguf_pre.h"
#include "text/gguf_vocab.h"

namespace hearth {
namespace {

Error Unsupported(const LoadedModel& model, const std::string& what) {
  return {Code::kUnsupported,
          model.path + ": hearth cannot write " + what + " of architecture " +
              model.config.architecture + " as a Hugging Face directory"};
}

// --- config.json -------------------------------------------------------------
struct Target {
  std::string hf_class;
  std::string model_type;
  int window = 0;
};

bool HasUsualForwardPass(const ModelConfig& c, QkNorm qk_norm) {
  return c.norm == NormKind::kRmsNorm &&
         c.norm_placement == NormPlacement::kBefore &&
         c.mlp == MlpKind::kGatedSilu && !c.learned_positions &&
         c.rope.rotary_dim == c.head_dim && c.local_rope.rotary_dim == 0 &&
         c.attention_scale ==
             static_cast<float>(1.0 / std::sqrt(double{1} * c.head_dim)) &&
         c.attention_softcap == 0 && !c.attention_sinks &&
         c.qk_norm == qk_norm && c.embedding_scale == 1 &&
         c.residual_scale == 1 && c.logit_scale == 1 && c.logit_softcap == 0 &&
         c.n_experts == 0;
}

Result<Target> FindTarget(const LoadedModel& model) {
  const ModelConfig& c = model.config;
  const std::string& name = c.architecture;
  const bool llama = name == "llama" || name == "mistral";
  if (!llama && name != "qwen2" && name != "qwen3") {
    return Unsupported(model, "models");
  }
  if (!HasUsualForwardPass(
          c, name == "qwen3" ? QkNorm::kPerHead : QkNorm::kNone)) {
    return Unsupported(model, "a changed forward pass");
  }
  Target target{std::string(FamilyNamed(name)->hf_class), name};
  for (int i = 0; i < c.n_layers; ++i) {
    if (c.KindOf(i) != c.KindOf(0) || c.KindOf(i).rope != RopeUse::kMain) {
      return Unsupported(model, "layers that differ");
    }
  }
  target.window = c.KindOf(0).window;
  if (target.window > 0) {
    if (!llama) return Unsupported(model, "a sliding window");
    target.hf_class = "MistralForCausalLM";
    target.model_type = "mistral";
  }
  return target;
}

Result<Json> RopeSettings(const LoadedModel& model) {
  const RopeScaling& s = model.config.rope.scaling;
  Json json = {{"rope_type", "default"}, {"rope_theta", s.base}};
  switch (s.kind) {
    case RopeScalingKind::kNone:
      return json;
    case RopeScalingKind::kLinear:
      json["rope_type"] = "linear";
      json["factor"] = s.factor;
      return json;
    case RopeScalingKind::kLlama3:
      json["rope_type"] = "llama3";
      json["factor"] = s.factor;
      json["low_freq_factor"] = s.low_freq_factor;
      json["high_freq_factor"] = s.high_freq_factor;
      json["original_max_position_embeddings"] = s.original_context;
      return json;
    default:
      return Unsupported(model, "this rope scaling");
  }
}

Result<Json> ConfigJson(const LoadedModel& model, const Target& target) {
  const ModelConfig& c = model.config;
  const LayerWeights& layer = model.weights.layers[0];
  const bool qkv_bias = !layer.q.bias.empty();
  const bool o_bias = !layer.o.bias.empty();
  const bool mlp_bias = !layer.mlp.down.bias.empty();
  // llama has one switch for all four; qwen2 has biases of q, k, v alone.
  const bool qwen2 = target.model_type == "qwen2";
  if (qwen2 ? (!qkv_bias || o_bias) : qkv_bias != o_bias) {
    return Unsupported(model, "these attention biases");
  }
  if (mlp_bias && target.model_type != "llama") {
    return Unsupported(model, "MLP biases");
  }
  HEARTH_ASSIGN(Json rope, RopeSettings(model));
  Json json = {{"architectures", {target.hf_class}},
               {"model_type", target.model_type},
               {"hidden_size", c.d_model},
               {"intermediate_size", c.d_mlp},
               {"num_hidden_layers", c.n_layers},
               {"num_attention_heads", c.n_heads},
               {"num_key_value_heads", c.n_kv_heads},
               {"head_dim", c.head_dim},
               {"vocab_size", c.vocab_size},
               {"max_position_embeddings", c.context_length},
               {"rms_norm_eps", c.norm_eps},
               {"rope_parameters", std::move(rope)},
               {"hidden_act", "silu"},
               {"tie_word_embeddings", c.tied_head}};
  if (!qwen2 && target.model_type != "mistral") {
    json["attention_bias"] = qkv_bias;
  }
  if (target.model_type == "llama") json["mlp_bias"] = mlp_bias;
  if (target.window > 0) json["sliding_window"] = target.window;
  if (model.bos_id >= 0) json["bos_token_id"] = model.bos_id;
  if (!model.eos_ids.empty()) json["eos_token_id"] = model.eos_ids;
  return json;
}

// --- model.safetensors -------------------------------------------------------
std::unordered_map<std::string, std::string> HfNames(const Family& gguf,
                                                     const Family& hf,
                                                     int n_layers) {
  std::unordered_map<std::string, std::string> names;
  for (std::size_t r = 0; r < kRoleCount; ++r) {
    const auto role = static_cast<Role>(r);
    if (gguf.gguf_names[r].empty() || hf.hf_names[r].empty()) continue;
    for (int i = 0; i < n_layers; ++i) {
      names.emplace(WeightName(gguf.gguf_names, role, i),
                    WeightName(hf.hf_names, role, i));
      names.emplace(BiasName(gguf.gguf_names, role, i),
                    BiasName(hf.hf_names, role, i));
    }
  }
  return names;
}

DType StoredType(DType dtype) {
  return IsBlockQuantised(dtype) ? DType::kF32 : dtype;
}

// The whole tensor, as it is to be stored.
Result<std::vector<std::byte>> ReadTensor(const GgufTensorSource& tensor) {
  std::vector<std::byte> bytes;
  HEARTH_TRY(tensor.write([&bytes](ByteSpan piece) -> Result<void> {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  }));
  if (!IsBlockQuantised(tensor.dtype)) return bytes;
  std::uint64_t n = 1;
  for (const std::uint64_t d : tensor.shape) n *= d;
  std::vector<float> values(n);
  DequantizeBlocks(tensor.dtype, bytes.data(), static_cast<std::int64_t>(n),
                   values.data());
  bytes.resize(4 * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// From interleaved rotary pairs to half-split ones, head by head.
std::vector<std::byte> HalfSplit(const std::vector<std::byte>& rows,
                                 std::size_t n_rows, std::size_t head_dim) {
  const std::size_t row_bytes = rows.size() / n_rows;
  std::vector<std::byte> out(rows.size());
  for (std::size_t r = 0; r < n_rows; ++r) {
    const std::size_t i = r % head_dim;
    const std::size_t half = head_dim / 2;
    const std::size_t from = r - i + (i < half ? 2 * i : 2 * (i - half) + 1);
    std::memcpy(out.data() + r * row_bytes, rows.data() + from * row_bytes,
                row_bytes);
  }
  return out;
}

bool IsQueryOrKey(const std::string& name) {
  return name.find(".attn_q.") != std::string::npos ||
         name.find(".attn_k.") != std::string::npos;
}

Result<void> WriteSafetensors(const LoadedModel& model,
                              const std::string& path) {
  HEARTH_ASSIGN(const Family* gguf, GgufFamilyOf(model));
  const Family* hf = FamilyNamed(model.config.architecture);
  HEARTH_ASSIGN(auto tensors, GgufModelTensors(model));
  // config.json says what these divisors say.
  std::erase_if(tensors, [](const GgufTensorSource& t) {
    return t.name == "rope_freqs.weight";
  });
  const auto names = HfNames(*gguf, *hf, model.config.n_layers);
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t offset = 0;
  for (const GgufTensorSource& t : tensors) {
    const auto name = names.find(t.name);
    if (name == names.end()) return Unsupported(model, "tensor " + t.name);
    std::uint64_t n = 1;
    for (const std::uint64_t d : t.shape) n *= d;
    const std::uint64_t end = offset + *BytesOf(StoredType(t.dtype), n);
    header[name->second] = {{"dtype", InfoOf(StoredType(t.dtype)).name},
                            {"shape", t.shape},
                            {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::vector<std::byte> length;
  AppendLe(length, std::uint64_t{text.size()});
  HEARTH_ASSIGN(StreamWriter file, StreamWriter::Create(path));
  HEARTH_TRY(file.Append(length));
  HEARTH_TRY(file.Append(std::as_bytes(std::span(text))));
  for (const GgufTensorSource& t : tensors) {
    HEARTH_ASSIGN(std::vector<std::byte> bytes, ReadTensor(t));
    if (gguf->gguf_interleaved && IsQueryOrKey(t.name)) {
      bytes = HalfSplit(bytes, t.shape[0],
                        static_cast<std::size_t>(model.config.head_dim));
    }
    HEARTH_TRY(file.Append(bytes));
  }
  return file.Commit();
}

// --- tokenizer.json ----------------------------------------------------------
Result<void> WriteJson(const std::string& path, const Json& json) {
  const std::string text =
      json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return WriteFileAtomically(path, std::as_bytes(std::span(text)));
}

Json Template(const std::string& token, std::int32_t id) {
  const Json special = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  const auto sequence = [](const char* name, int type) {
    return Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", {special, sequence("A", 0)}},
          {"pair", {special, sequence("A", 0), sequence("B", 1)}},
          {"special_tokens",
           {{token, {{"id", token}, {"ids", {id}}, {"tokens", {token}}}}}}};
}

Result<void> WriteTokenizerFromGguf(const LoadedModel& model,
                                    const std::string& directory) {
  const GgufFile& gguf = *model.gguf;
  HEARTH_ASSIGN(const auto kind, gguf.Text("tokenizer.ggml.model"));
  if (kind != "gpt2") {
    return Unsupported(model, "the tokenizer \"" + std::string(kind) + "\"");
  }
  HEARTH_ASSIGN(const auto pre_name, gguf.Text("tokenizer.ggml.pre", ""));
  HEARTH_ASSIGN(const GgufPre pre,
                FindGgufPre(std::string(pre_name), model.path));
  HEARTH_ASSIGN(const auto tokens, gguf.TextArray("tokenizer.ggml.tokens"));
  HEARTH_ASSIGN(const auto types, gguf.IntArray("tokenizer.ggml.token_type"));
  HEARTH_ASSIGN(const auto merges, gguf.TextArray("tokenizer.ggml.merges"));
  if (types.size() != tokens.size()) {
    return {Code::kCorrupt, model.path +
                                ": tokenizer.ggml.token_type and "
                                ".tokens differ in length"};
  }
  Json vocab = Json::object();
  Json added = Json::array();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    vocab[std::string(tokens[i])] = i;
    const auto type = static_cast<GgufTokenType>(types[i]);
    const bool special = type == GgufTokenType::kControl;
    if (!special && type != GgufTokenType::kUserDefined) continue;
    added.push_back({{"id", i},
                     {"content", tokens[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", special}});
  }
  Json pairs = Json::array();
  for (const std::string_view merge : merges) {
    const std::size_t blank = merge.find(' ', 1);
    if (blank == std::string_view::npos) continue;
    pairs.push_back({merge.substr(0, blank), merge.substr(blank + 1)});
  }
  Json steps = Json::array();
  for (const std::string_view pattern : pre.patterns) {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", false}};
  steps.push_back(byte_level);
  const auto token = [&](std::int32_t id) {
    return std::string(tokens[static_cast<std::size_t>(id)]);
  };
  const bool bos = model.bos_id >= 0 &&
                   static_cast<std::size_t>(model.bos_id) < tokens.size();
  HEARTH_ASSIGN(const bool add_bos,
                gguf.Bool("tokenizer.ggml.add_bos_token", pre.add_bos));
  const Json json = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", std::move(added)},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}},
      {"post_processor",
       add_bos && bos ? Template(token(model.bos_id), model.bos_id) : Json()},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", pre.ignore_merges},
        {"vocab", std::move(vocab)},
        {"merges", std::move(pairs)}}}};
  HEARTH_TRY(WriteJson(directory + "/tokenizer.json", json));
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (bos) config["bos_token"] = token(model.bos_id);
  if (!model.eos_ids.empty() &&
      static_cast<std::size_t>(model.eos_ids[0]) < tokens.size()) {
    config["eos_token"] = token(model.eos_ids[0]);
  }
  HEARTH_ASSIGN(const auto chat, gguf.Text("tokenizer.chat_template", ""));
  if (!chat.empty()) config["chat_template"] = chat;
  return WriteJson(directory + "/tokenizer_config.json", config);
}

Result<void> CopyTokenizer(const LoadedModel& model,
                           const std::string& directory) {
  for (const char* name :
       {"/tokenizer.json", "/tokenizer_config.json", "/chat_template.jinja"}) {
    const auto text = ReadTextFile(model.tokenizer_dir + name);
    if (!text.ok() && text.error().code == Code::kNotFound) continue;
    if (!text.ok()) return text.error();
    HEARTH_TRY(
        WriteFileAtomically(directory + name, std::as_bytes(std::span(*text))));
  }
  return {};
}

}  // namespace

Result<void> WriteHuggingFace(const LoadedModel& model,
                              const std::string& directory) {
  HEARTH_ASSIGN(const Target target, FindTarget(model));
  HEARTH_ASSIGN(const Json config, ConfigJson(model, target));
  HEARTH_TRY(MakeDirectories(directory));
  switch (model.tokenizer_source) {
    case TokenizerSource::kGguf:
      HEARTH_TRY(WriteTokenizerFromGguf(model, directory));
      break;
    case TokenizerSource::kDirectory:
      HEARTH_TRY(CopyTokenizer(model, directory));
      break;
    case TokenizerSource::kBytes:
      return Unsupported(model, "a tokenizer of plain bytes");
  }
  HEARTH_TRY(WriteSafetensors(model, directory + "/model.safetensors"));
  // Last: a directory without it is no model.
  return WriteJson(directory + "/config.json", config);
}

}  // namespace hearth
