#include "convert/huggingface/convert_tokenizer_json.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/files/output.h"
#include "convert/huggingface/files_beside.h"
#include "engine/text/tokenizer_factory.h"
#include "formats/gguf/gguf.h"
#include "text/gguf/gguf_pre.h"
#include "text/gguf/gguf_vocab.h"
#include "text/unicode/byte_alphabet.h"

namespace hearth {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // sentencepiece's space

Error Unsupported(const LoadedModel& model, const std::string& what) {
  return {Code::kUnsupported,
          model.path + ": hearth cannot write " + what + " as tokenizer.json"};
}

Json Sequence(const char* list, Json steps) {
  return {{"type", "Sequence"}, {list, std::move(steps)}};
}

Json ByteLevel() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", false}};
}

Json BpeModel(Json vocab, Json merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

Json TokenizerJson(Json added, Json normalizer, Json pre, Json post,
                   Json decoder, Json bpe) {
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)},
          {"normalizer", std::move(normalizer)},
          {"pre_tokenizer", std::move(pre)},
          {"post_processor", std::move(post)},
          {"decoder", std::move(decoder)},
          {"model", std::move(bpe)}};
}

// --- From GGUF ---------------------------------------------------------------
class GgufVocabulary {
 public:
  explicit GgufVocabulary(const LoadedModel& model)
      : model_(model), gguf_(*model.gguf) {}

  Result<void> Write(const std::string& directory) {
    HEARTH_ASSIGN(const auto tokenizer, MakeTokenizer(model_));
    bos_ = tokenizer->bos_id().value_or(-1);
    eos_ = tokenizer->eos_id().value_or(-1);
    HEARTH_ASSIGN(const auto pipeline, gguf_.Text("hearth.tokenizer", ""));
    if (!pipeline.empty()) {
      HEARTH_ASSIGN(carried_, ParseJson(pipeline, model_.path));
    }
    HEARTH_TRY(ReadTokens());
    HEARTH_ASSIGN(const auto kind, gguf_.Text("tokenizer.ggml.model"));
    Json json;
    if (kind == "gpt2") {
      HEARTH_ASSIGN(json, ByteLevelJson());
    } else if (kind == "llama") {
      HEARTH_ASSIGN(json, SentencePieceJson());
    } else {
      return Unsupported(model_,
                         "the vocabulary \"" + std::string(kind) + "\"");
    }
    for (const char* part :
         {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
      if (const Json* carried = JsonFind(carried_, part)) json[part] = *carried;
    }
    HEARTH_TRY(WriteJsonFile(directory + "/tokenizer.json", json));
    HEARTH_ASSIGN(const Json config, ConfigJson());
    return WriteJsonFile(directory + "/tokenizer_config.json", config);
  }

 private:
  // tokenizer_config.json: which tokens have duties, and the chat templates.
  Result<Json> ConfigJson() const {
    Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                   {"clean_up_tokenization_spaces", false},
                   {"model_max_length", model_.config.context_length}};
    if (IsToken(bos_)) config["bos_token"] = Text(bos_);
    if (IsToken(eos_)) config["eos_token"] = Text(eos_);
    constexpr std::pair<const char*, const char*> kDuties[] = {
        {"pad_token", "tokenizer.ggml.padding_token_id"},
        {"unk_token", "tokenizer.ggml.unknown_token_id"},
        {"sep_token", "tokenizer.ggml.seperator_token_id"},
        {"cls_token", "tokenizer.ggml.cls_token_id"},
        {"mask_token", "tokenizer.ggml.mask_token_id"}};
    for (const auto& [member, key] : kDuties) {
      HEARTH_ASSIGN(const std::int64_t id, gguf_.Int(key, -1));
      if (id > INT32_MAX || !IsToken(static_cast<std::int32_t>(id))) continue;
      config[member] = Text(static_cast<std::int32_t>(id));
    }
    HEARTH_ASSIGN(const auto chat, gguf_.Text("tokenizer.chat_template", ""));
    if (!gguf_.Has("tokenizer.chat_templates")) {
      if (!chat.empty()) config["chat_template"] = chat;
      return config;
    }
    Json list = Json::array();
    if (!chat.empty()) {
      list.push_back({{"name", "default"}, {"template", chat}});
    }
    HEARTH_ASSIGN(const auto names,
                  gguf_.TextArray("tokenizer.chat_templates"));
    for (const std::string_view name : names) {
      HEARTH_ASSIGN(const auto body,
                    gguf_.Text("tokenizer.chat_template." + std::string(name)));
      list.push_back({{"name", name}, {"template", body}});
    }
    config["chat_template"] = std::move(list);
    return config;
  }

  // single_word, lstrip, rstrip and normalized of an added token.
  Result<Json> AttributesOf(std::size_t id) const {
    Json attributes = {{"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false}};
    const Json* list = JsonFind(carried_, "added_tokens");
    if (list == nullptr) {
      HEARTH_ASSIGN(const auto name, gguf_.Text("general.name", ""));
      attributes["rstrip"] = DropsSpaceAfter(name, tokens_[id]);
      return attributes;
    }
    for (const Json& entry : *list) {
      if (JsonFind(entry, "id") == nullptr || entry["id"] != id) continue;
      for (auto& [key, value] : attributes.items()) {
        HEARTH_ASSIGN(const bool set,
                      JsonBool(entry, key.c_str(), model_.path, false));
        value = set;
      }
    }
    return attributes;
  }

  GgufTokenType TypeOf(std::size_t id) const {
    return static_cast<GgufTokenType>(types_[id]);
  }
  bool IsToken(std::int32_t id) const {
    return id >= 0 && static_cast<std::size_t>(id) < tokens_.size();
  }
  std::string Text(std::int32_t id) const {
    return std::string(tokens_[static_cast<std::size_t>(id)]);
  }

  Result<void> ReadTokens() {
    HEARTH_ASSIGN(tokens_, gguf_.TextArray("tokenizer.ggml.tokens"));
    HEARTH_ASSIGN(types_, gguf_.IntArray("tokenizer.ggml.token_type"));
    if (types_.size() != tokens_.size()) {
      return {Code::kCorrupt, model_.path +
                                  ": tokenizer.ggml.token_type and "
                                  ".tokens differ in length"};
    }
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const GgufTokenType type = TypeOf(i);
      // What convert_tokenizer.cc calls an id without a piece.
      if (type == GgufTokenType::kUnused &&
          tokens_[i] == "[PAD" + std::to_string(i) + "]") {
        continue;
      }
      vocab_[std::string(tokens_[i])] = i;
      const bool special =
          type == GgufTokenType::kControl || type == GgufTokenType::kUnknown;
      if (!special && type != GgufTokenType::kUserDefined) continue;
      HEARTH_ASSIGN(Json token, AttributesOf(i));
      token["id"] = i;
      token["content"] = tokens_[i];
      token["special"] = special;
      added_.push_back(std::move(token));
    }
    return {};
  }

  // The ids around every text.
  Result<Json> Template(bool bos_default) const {
    HEARTH_ASSIGN(const bool bos,
                  gguf_.Bool("tokenizer.ggml.add_bos_token", bos_default));
    HEARTH_ASSIGN(const bool eos,
                  gguf_.Bool("tokenizer.ggml.add_eos_token", false));
    Json single = Json::array(), pair = Json::array();
    Json specials = Json::object();
    const auto special = [&](std::int32_t id) {
      const Json step = {{"SpecialToken", {{"id", Text(id)}, {"type_id", 0}}}};
      single.push_back(step);
      pair.push_back(step);
      specials[Text(id)] = {
          {"id", Text(id)}, {"ids", {id}}, {"tokens", {Text(id)}}};
    };
    const auto text = [](const char* name, int type) {
      return Json{{"Sequence", {{"id", name}, {"type_id", type}}}};
    };
    if (bos && IsToken(bos_)) special(bos_);
    single.push_back(text("A", 0));
    pair.push_back(text("A", 0));
    pair.push_back(text("B", 1));
    if (eos && IsToken(eos_)) special(eos_);
    if (specials.empty()) return Json();
    return Json{{"type", "TemplateProcessing"},
                {"single", std::move(single)},
                {"pair", std::move(pair)},
                {"special_tokens", std::move(specials)}};
  }

  Result<Json> ByteLevelJson() {
    HEARTH_ASSIGN(const auto name, gguf_.Text("tokenizer.ggml.pre", ""));
    HEARTH_ASSIGN(const GgufPre pre,
                  FindGgufPre(std::string(name), model_.path));
    HEARTH_ASSIGN(const auto lines, gguf_.TextArray("tokenizer.ggml.merges"));
    Json merges = Json::array();
    for (const std::string_view line : lines) {
      const std::size_t blank = line.find(' ', 1);
      if (blank == std::string_view::npos) continue;
      merges.push_back({line.substr(0, blank), line.substr(blank + 1)});
    }
    Json steps = Json::array();
    for (const std::string_view pattern : pre.patterns) {
      steps.push_back({{"type", "Split"},
                       {"pattern", {{"Regex", pattern}}},
                       {"behavior", "Isolated"},
                       {"invert", false}});
    }
    steps.push_back(ByteLevel());
    Json bpe = BpeModel(std::move(vocab_), std::move(merges));
    bpe["ignore_merges"] = pre.ignore_merges;
    HEARTH_ASSIGN(Json post, Template(pre.add_bos));
    return TokenizerJson(std::move(added_), Json(),
                         Sequence("pretokenizers", std::move(steps)),
                         std::move(post), ByteLevel(), std::move(bpe));
  }

  // Pieces have scores here and merges there: every way to make a piece of two
  // others, best pieces first. Source: transformers' own conversion.
  Result<Json> ScoresAsMerges() const {
    HEARTH_ASSIGN(const auto scores, gguf_.FloatArray("tokenizer.ggml.scores"));
    if (scores.size() != tokens_.size()) {
      return {Code::kCorrupt, model_.path +
                                  ": tokenizer.ggml.scores and .tokens differ "
                                  "in length"};
    }
    std::unordered_map<std::string_view, std::size_t> ids;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (TypeOf(i) == GgufTokenType::kNormal) ids.emplace(tokens_[i], i);
    }
    struct Merge {
      float score;
      std::size_t piece, left;  // left: bytes
    };
    std::vector<Merge> merges;
    for (const auto& [piece, id] : ids) {
      for (std::size_t i = 1; i < piece.size(); ++i) {
        if (ids.contains(piece.substr(0, i)) && ids.contains(piece.substr(i))) {
          merges.push_back({scores[id], id, i});
        }
      }
    }
    std::sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
      return std::tuple(-a.score, a.piece, a.left) <
             std::tuple(-b.score, b.piece, b.left);
    });
    Json list = Json::array();
    for (const Merge& merge : merges) {
      const std::string_view piece = tokens_[merge.piece];
      list.push_back({piece.substr(0, merge.left), piece.substr(merge.left)});
    }
    return list;
  }

  Result<Json> SentencePieceJson() {
    HEARTH_ASSIGN(const bool prefix,
                  gguf_.Bool("tokenizer.ggml.add_space_prefix", true));
    HEARTH_ASSIGN(Json merges, ScoresAsMerges());
    const auto replace = [](std::string_view from, std::string_view to) {
      return Json{{"type", "Replace"},
                  {"pattern", {{"String", from}}},
                  {"content", to}};
    };
    Json normalizers = Json::array(), decoders = Json::array();
    if (prefix) {
      normalizers.push_back({{"type", "Prepend"}, {"prepend", kMark}});
    }
    normalizers.push_back(replace(" ", kMark));
    decoders.push_back(replace(kMark, " "));
    decoders.push_back({{"type", "ByteFallback"}});
    decoders.push_back({{"type", "Fuse"}});
    if (prefix) {
      decoders.push_back(
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    Json bpe = BpeModel(std::move(vocab_), std::move(merges));
    bpe["byte_fallback"] = true;
    bpe["fuse_unk"] = true;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (TypeOf(i) == GgufTokenType::kUnknown) bpe["unk_token"] = tokens_[i];
    }
    HEARTH_ASSIGN(Json post, Template(/*bos_default=*/true));
    return TokenizerJson(
        std::move(added_), Sequence("normalizers", std::move(normalizers)),
        Json(), std::move(post), Sequence("decoders", std::move(decoders)),
        std::move(bpe));
  }

  const LoadedModel& model_;
  const GgufFile& gguf_;
  std::vector<std::string_view> tokens_;
  std::vector<std::int32_t> types_;
  std::int32_t bos_ = -1, eos_ = -1;
  Json carried_ = Json::object();  // hearth.tokenizer
  Json vocab_ = Json::object();
  Json added_ = Json::array();
};

// --- Plain bytes -------------------------------------------------------------
// A byte-level vocabulary without merges: the spelling of byte b has id b.
Result<void> WriteBytes(const std::string& directory) {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    std::string spelling;
    AppendSpelled(spelling, std::string(1, static_cast<char>(byte)));
    vocab[spelling] = byte;
  }
  HEARTH_TRY(WriteJsonFile(
      directory + "/tokenizer.json",
      TokenizerJson(Json::array(), Json(), ByteLevel(), Json(), ByteLevel(),
                    BpeModel(std::move(vocab), Json::array()))));
  return WriteJsonFile(directory + "/tokenizer_config.json",
                       {{"tokenizer_class", "PreTrainedTokenizerFast"}});
}

}  // namespace

Result<void> WriteJsonFile(const std::string& path, const Json& json) {
  const std::string text =
      json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return WriteOutput(path, {}, text);
}

Result<void> WriteTokenizerFiles(const LoadedModel& model,
                                 const std::string& directory,
                                 std::vector<std::string>& notes) {
  switch (model.tokenizer_source) {
    case TokenizerSource::kGguf:
      return GgufVocabulary(model).Write(directory);
    case TokenizerSource::kDirectory:
      return CopyFilesBeside(model, directory, notes);
    case TokenizerSource::kBytes:
      break;
  }
  return WriteBytes(directory);
}

}  // namespace hearth
