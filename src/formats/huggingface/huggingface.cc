#include "formats/huggingface/huggingface.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "formats/describe.h"
#include "formats/huggingface/hf_dequantize.h"
#include "formats/huggingface/hf_mxfp4.h"
#include "formats/huggingface/huggingface_kind.h"
#include "formats/huggingface/python_json.h"
#include "formats/huggingface/safetensors.h"
#include "formats/locate/file_kind.h"
#include "formats/mtp.h"
#include "formats/sampling_defaults.h"

namespace hearth {
namespace {

constexpr std::size_t kJsonBytesMax = 32u << 20;
constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string Join(const std::string& directory, const std::string& name) {
  return (std::filesystem::path(directory) / name).string();
}

// Mapped, because mapping refuses pipes and devices, which would never end.
Result<MappedFile> OpenJsonFile(const std::string& path) {
  HEARTH_ASSIGN(MappedFile file, MappedFile::Open(path));
  if (file.bytes().size() > kJsonBytesMax) {
    return {Code::kCorrupt, path + ": longer than 32 MiB"};
  }
  HEARTH_TRY(RefuseDownloadAccident(file.bytes(), path));
  return file;
}

Result<Json> ReadJsonFile(const std::string& path) {
  HEARTH_ASSIGN(const MappedFile file, OpenJsonFile(path));
  return ParsePythonJson(AsText(file.bytes()), path);
}

// Maps one safetensors file and adds its tensors to the set; with an index,
// only those that it places there may be in it.
Result<void> AddFile(const std::string& path, LoadedModel& model,
                     TensorSet& tensors, std::vector<std::string>* names) {
  HEARTH_ASSIGN(MappedFile mapped, MappedFile::Open(path));
  HEARTH_TRY(RefuseDownloadAccident(mapped.bytes(), path));
  HEARTH_ASSIGN(const SafetensorsFile file,
                SafetensorsFile::Parse(mapped.bytes(), path));
  for (const SafetensorsEntry& t : file.tensors()) {
    HEARTH_TRY(tensors.Add({t.name, t.type, t.dtype, t.shape, t.bytes, {}}));
    if (names != nullptr) names->push_back(t.name);
  }
  model.files.push_back(std::move(mapped));
  return {};
}

Result<void> AddShards(const std::string& directory, LoadedModel& model,
                       TensorSet& tensors) {
  const std::string index_path = Join(directory, kIndexFile);
  HEARTH_ASSIGN(const MappedFile text, OpenJsonFile(index_path));
  HEARTH_ASSIGN(const ShardIndex index,
                ParseShardIndex(AsText(text.bytes()), index_path));
  std::unordered_map<std::string, std::string> place;  // tensor -> shard
  for (const auto& [name, file] : index.tensors) place.emplace(name, file);
  for (const std::string& file : index.files) {
    std::vector<std::string> names;
    HEARTH_TRY(AddFile(Join(directory, file), model, tensors, &names));
    for (const std::string& name : names) {
      const auto it = place.find(name);
      if (it == place.end() || it->second != file) {
        return {Code::kCorrupt, index_path + ": does not place tensor " +
                                    Quoted(name) + " in " + Quoted(file) +
                                    ", where it is"};
      }
      place.erase(it);
    }
  }
  if (!place.empty()) {
    const auto& [name, file] = *place.begin();
    return {Code::kCorrupt, index_path + ": tensor " + Quoted(name) +
                                " is not in " + Quoted(file)};
  }
  return {};
}

Result<void> AddTensors(const std::string& directory, LoadedModel& model,
                        TensorSet& tensors) {
  if (Exists(Join(directory, kSingleFile))) {
    return AddFile(Join(directory, kSingleFile), model, tensors, nullptr);
  }
  if (Exists(Join(directory, kIndexFile))) {
    return AddShards(directory, model, tensors);
  }
  if (Exists(Join(directory, "pytorch_model.bin")) ||
      Exists(Join(directory, "pytorch_model.bin.index.json"))) {
    return {Code::kUnsupported,
            directory +
                ": only has PyTorch weights, which can run code when "
                "read; save them as safetensors"};
  }
  return {Code::kNotFound,
          directory + ": has neither " + kSingleFile + " nor " + kIndexFile};
}

// Untied: the head must be there. Tied: it should not, but some exporters write
// it as a copy; a copy is fine, another matrix is a contradiction.
Result<void> CheckHead(const ModelConfig& config, const NameScheme& names,
                       TensorSet& tensors) {
  const std::string head_name = WeightName(names, Role::kHead);
  const SourceTensor* head = tensors.Find(head_name);
  if (!config.tied_head && head == nullptr) {
    return {Code::kCorrupt,
            tensors.label() + ": tensor " + Quoted(head_name) +
                " is missing and config.json does not say that it is tied to "
                "the embedding (tie_word_embeddings)"};
  }
  if (!config.tied_head || head == nullptr) return {};
  const SourceTensor* embedding =
      tensors.Find(WeightName(names, Role::kTokenEmbedding));
  if (embedding == nullptr) return {};  // reported by the assembler
  if (head->type != embedding->type || head->shape != embedding->shape ||
      !std::ranges::equal(head->bytes, embedding->bytes)) {
    return {Code::kCorrupt,
            tensors.label() + ": tensor " + Quoted(head_name) +
                " differs from the embedding, but config.json says that they "
                "are tied"};
  }
  tensors.MarkUsed(head_name);
  return {};
}

// Of a model that sees images or hears besides: the text part's tensors under
// the names that they have alone. The others are skipped by name, and what has
// no known name is refused as a tensor without use.
std::string NameInTextPart(std::string_view name) {
  for (const std::string_view prefix :
       {"vision_tower.", "model.vision_tower.", "vision_model.", "visual.",
        "model.visual.", "multi_modal_projector.",
        "model.multi_modal_projector.", "audio_tower.", "model.audio_tower.",
        "model.embed_vision.", "model.embed_audio."}) {
    if (name.starts_with(prefix)) return "";
  }
  constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
      {"model.language_model.", "model."},
      {"language_model.model.", "model."},
      {"language_model.lm_head.", "lm_head."}};
  for (const auto& [prefix, alone] : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    return std::string(alone).append(name.substr(prefix.size()));
  }
  return std::string(name);
}

// `json`: of the text model.
Result<void> SelectTensors(const HuggingFaceConfig& hf, const Json& json,
                           const std::string& label, TensorSet& tensors) {
  if (hf.text_part) HEARTH_TRY(tensors.Rename(NameInTextPart));
  // Blocks behind the last layer that guess tokens ahead.
  HEARTH_ASSIGN(const std::int64_t n_guessers,
                JsonInt(json, "num_nextn_predict_layers", label, 0));
  for (std::int64_t i = 0; i < std::min<std::int64_t>(n_guessers, 16); ++i) {
    tensors.DropPrefix("model.layers." +
                       std::to_string(hf.config.n_layers + i) + ".");
  }
  const std::string_view skipped = hf.family->hf_skipped_prefix;
  if (!skipped.empty()) tensors.DropPrefix(skipped);
  return {};
}

// Makes what the arithmetic reads of weights that are quantised as the
// configuration says, and refuses all others.
Result<void> ReadQuantised(HfQuantization quantization,
                           const std::string& directory, TensorSet& tensors,
                           LoadedModel& model) {
  const std::string beside = Join(directory, "hf_quant_config.json");
  if (quantization.method == HfQuantMethod::kNone && Exists(beside)) {
    HEARTH_ASSIGN(const Json json, ReadJsonFile(beside));
    HEARTH_ASSIGN(quantization, ReadHfQuantFile(json, beside));
  }
  if (quantization.method == HfQuantMethod::kFloat) {
    HEARTH_TRY(DequantizeHf(quantization, tensors, model));
  }
  HEARTH_TRY(RefuseOtherHfTensors(tensors));
  return quantization.method == HfQuantMethod::kMxfp4
             ? JoinMxfp4(tensors, model)
             : Result<void>();
}

// Checkpoints of the bare model, without its head's class, lack the first part
// of every name: "wte.weight" instead of "transformer.wte.weight".
NameScheme NamesOf(const Family& family, const TensorSet& tensors) {
  NameScheme names = family.hf_names;
  const std::string embedding = WeightName(names, Role::kTokenEmbedding);
  const std::size_t dot = embedding.find('.');
  if (tensors.Has(embedding) || !tensors.Has(embedding.substr(dot + 1))) {
    return names;
  }
  for (std::string_view& stem : names) {
    if (stem.starts_with(embedding.substr(0, dot + 1))) {
      stem.remove_prefix(dot + 1);
    }
  }
  return names;
}

// Buffers that older exporters wrote beside the weights: causal masks and
// rotary frequencies, which config.json implies.
void MarkBuffers(const NameScheme& names, int n_layers, TensorSet& tensors) {
  for (int i = 0; i < std::min(n_layers, 1 << 14); ++i) {
    std::string attention = WeightName(names, Role::kO, i);
    attention.resize(attention.rfind('.', attention.rfind('.') - 1) + 1);
    for (const char* buffer : {"bias", "masked_bias", "rotary_emb.inv_freq"}) {
      tensors.MarkUsed(attention + buffer);
    }
  }
}

// What the block for multi-token prediction consists of, under the names of a
// model of one layer; nothing for all else.
std::string NameInMtp(std::string_view name) {
  constexpr std::string_view kLayer = "mtp.layers.0.", kNorm = "mtp.norm.";
  if (name.starts_with(kLayer)) {
    return std::string("model.layers.0.").append(name.substr(kLayer.size()));
  }
  if (name.starts_with(kNorm)) {
    return std::string("model.norm.").append(name.substr(kNorm.size()));
  }
  const bool shared = name.starts_with("model.embed_tokens.") ||
                      name.starts_with("lm_head.") || name.starts_with("mtp.");
  return shared ? std::string(name) : std::string();
}

// Token ids from config.json and generation_config.json: a number or a list.
// Ids outside the vocabulary end nothing and are left out.
Result<void> AddEosIds(const Json& json, const std::string& label,
                       LoadedModel& model) {
  const Json* eos = JsonFind(json, "eos_token_id");
  if (eos == nullptr) return {};
  const Json list = eos->is_array() ? *eos : Json::array({*eos});
  for (const Json& id : list) {
    if (!id.is_number_integer()) {
      return {Code::kCorrupt,
              label +
                  ": member \"eos_token_id\" is not an integer or a list "
                  "of integers"};
    }
    const auto value = id.get<std::int64_t>();
    if (value < 0 || value >= model.config.vocab_size) continue;
    const auto token = static_cast<std::int32_t>(value);
    if (std::find(model.eos_ids.begin(), model.eos_ids.end(), token) ==
        model.eos_ids.end()) {
      model.eos_ids.push_back(token);
    }
  }
  return {};
}

// Ids that start and end a text, and how to sample.
Result<void> ReadGeneration(const Json& json, const std::string& label,
                            const std::string& directory, LoadedModel& model) {
  HEARTH_TRY(AddEosIds(json, label, model));
  HEARTH_ASSIGN(std::int64_t bos, JsonInt(json, "bos_token_id", label, -1));
  const std::string generation = Join(directory, "generation_config.json");
  if (Exists(generation)) {
    HEARTH_ASSIGN(const Json extra, ReadJsonFile(generation));
    HEARTH_TRY(AddEosIds(extra, generation, model));
    HEARTH_ASSIGN(bos, JsonInt(extra, "bos_token_id", generation, bos));
    HEARTH_ASSIGN(
        model.sampling,
        ReadGenerationConfig(extra, generation, model.config.vocab_size));
  }
  if (bos >= 0 && bos < model.config.vocab_size) {
    model.bos_id = static_cast<std::int32_t>(bos);
  }
  return {};
}

}  // namespace

Result<ShardIndex> ParseShardIndex(std::string_view json,
                                   const std::string& label) {
  HEARTH_ASSIGN(const Json root, ParseJson(json, label));
  const Json* map = JsonFind(root, "weight_map");
  if (map == nullptr || !map->is_object() || map->empty()) {
    return {Code::kCorrupt, label + ": has no \"weight_map\" of tensors"};
  }
  ShardIndex index;
  std::set<std::string> files;
  for (const auto& [name, file] : map->items()) {
    const std::string text =
        file.is_string() ? file.get<std::string>() : std::string();
    // A plain name: nothing that leads out of the directory.
    if (!text.ends_with(".safetensors") ||
        text.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      return {Code::kCorrupt, label + ": tensor " + Quoted(name) +
                                  " is placed in " + Quoted(text) +
                                  ", which is no safetensors file name"};
    }
    files.insert(text);
    index.tensors.emplace_back(name, text);
  }
  index.files.assign(files.begin(), files.end());
  return index;
}

Result<LoadedModel> LoadHuggingFace(const std::string& directory) {
  const std::string config_path = Join(directory, "config.json");
  if (!Exists(config_path)) {
    return {Code::kNotFound,
            directory +
                ": has no config.json; a model directory holds "
                "config.json and model.safetensors"};
  }
  HEARTH_ASSIGN(const Json json, ReadJsonFile(config_path));
  HEARTH_ASSIGN(HuggingFaceConfig hf, ReadHuggingFaceConfig(json, config_path));

  LoadedModel model;
  TensorSet tensors(directory);
  HEARTH_TRY(AddTensors(directory, model, tensors));
  HEARTH_TRY(SelectTensors(hf, hf.text_part ? json["text_config"] : json,
                           config_path, tensors));
  HEARTH_TRY(ReadQuantised(hf.quantization, directory, tensors, model));
  NameScheme names = NamesOf(*hf.family, tensors);
  if (hf.family->adapt_hf != nullptr) {
    hf.family->adapt_hf(tensors, hf.plan, names);
  }
  MarkBuffers(names, hf.config.n_layers, tensors);
  HEARTH_TRY(CheckHead(hf.config, names, tensors));
  HEARTH_ASSIGN(model.weights,
                AssembleWeights(hf.config, hf.plan, names, tensors));
  model.path = directory;
  model.file_format = "safetensors";
  model.config = std::move(hf.config);
  model.tensors = tensors.Records();
  model.n_parameters = tensors.CountParameters();
  model.tokenizer_source = TokenizerSource::kDirectory;
  if (Exists(Join(directory, "tokenizer.json"))) {
    model.tokenizer_dir = directory;
  }
  if (hf.text_part) {
    HEARTH_TRY(AddEosIds(json["text_config"], config_path, model));
  }
  HEARTH_TRY(ReadGeneration(json, config_path, directory, model));
  return model;
}

Result<MtpBlock> LoadHuggingFaceMtp(const std::string& directory) {
  const std::string config_path = Join(directory, "config.json");
  HEARTH_ASSIGN(const Json json, ReadJsonFile(config_path));
  HEARTH_ASSIGN(HuggingFaceConfig hf, ReadHuggingFaceConfig(json, config_path));
  LoadedModel files;
  TensorSet tensors(directory);
  HEARTH_TRY(AddTensors(directory, files, tensors));
  if (hf.text_part) HEARTH_TRY(tensors.Rename(NameInTextPart));
  const Json& text = hf.text_part ? json["text_config"] : json;
  HEARTH_ASSIGN(const std::int64_t n_others,
                JsonInt(text, "num_nextn_predict_layers", config_path, 0));
  HEARTH_TRY(CheckMtp(hf.config.architecture,
                      tensors.Has(kMtpProjection) ? 1 : n_others, directory));
  HEARTH_TRY(tensors.Rename(NameInMtp));
  HEARTH_TRY(ReadQuantised(hf.quantization, directory, tensors, files));
  NameScheme names = hf.family->hf_names;
  if (hf.family->adapt_hf != nullptr) {
    hf.family->adapt_hf(tensors, hf.plan, names);
  }
  HEARTH_TRY(CheckHead(hf.config, names, tensors));
  HEARTH_ASSIGN(MtpBlock block,
                AssembleMtp(std::move(hf.config), hf.plan, names, tensors));
  block.model.files = std::move(files.files);
  block.model.made = std::move(files.made);
  return block;
}

}  // namespace hearth
