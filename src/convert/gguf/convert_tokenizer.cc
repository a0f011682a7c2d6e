#include "convert/gguf/convert_tokenizer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "engine/text/tokenizer_factory.h"
#include "formats/gguf/gguf.h"
#include "text/gguf/gguf_vocab.h"
#include "text/split/split_patterns.h"

namespace hearth {
namespace {

// --- From GGUF --------------------------------------------------------------
std::vector<std::string> Strings(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

Result<GgufValue> CopyArray(const GgufFile& gguf, const GgufEntry& entry) {
  switch (entry.element) {
    case GgufType::kString: {
      HEARTH_ASSIGN(const auto views, gguf.TextArray(entry.key));
      return GgufValue(Strings(views));
    }
    case GgufType::kF32: {
      HEARTH_ASSIGN(auto values, gguf.FloatArray(entry.key));
      return GgufValue(std::move(values));
    }
    case GgufType::kI32:
    case GgufType::kU32: {
      HEARTH_ASSIGN(auto values, gguf.IntArray(entry.key));
      return GgufValue(std::move(values));
    }
    default:
      return {Code::kUnsupported, gguf.label() + ": key \"" +
                                      std::string(entry.key) +
                                      "\" has a type that is not copied"};
  }
}

Result<GgufValue> CopyValue(const GgufFile& gguf, const GgufEntry& entry) {
  switch (entry.type) {
    case GgufType::kArray:
      return CopyArray(gguf, entry);
    case GgufType::kString: {
      HEARTH_ASSIGN(const auto text, gguf.Text(entry.key));
      return GgufValue(std::string(text));
    }
    case GgufType::kBool: {
      HEARTH_ASSIGN(const bool value, gguf.Bool(entry.key, false));
      return GgufValue(value);
    }
    case GgufType::kF32:
    case GgufType::kF64: {
      HEARTH_ASSIGN(const double value, gguf.Float(entry.key, 0));
      return GgufValue(static_cast<float>(value));
    }
    default: {
      HEARTH_ASSIGN(const std::int64_t value, gguf.Int(entry.key));
      if (value < 0) return GgufValue(static_cast<std::int32_t>(value));
      return GgufValue(static_cast<std::uint32_t>(value));
    }
  }
}

Result<std::vector<GgufMetadata>> CopyFromGguf(const GgufFile& gguf) {
  std::vector<GgufMetadata> out;
  for (const GgufEntry& entry : gguf.entries()) {
    if (!entry.key.starts_with("tokenizer.")) continue;
    HEARTH_ASSIGN(GgufValue value, CopyValue(gguf, entry));
    out.push_back({std::string(entry.key), std::move(value)});
  }
  return out;
}

// --- From tokenizer.json ----------------------------------------------------
class JsonVocabulary {
 public:
  JsonVocabulary(const LoadedModel& model, const Json& json)
      : model_(model),
        json_(json),
        label_(model.tokenizer_dir + "/tokenizer.json") {}

  Result<std::vector<GgufMetadata>> Run();

 private:
  Error Unsupported(const std::string& what) const {
    return {Code::kUnsupported,
            label_ + ": " + what + " has no form in GGUF that hearth writes"};
  }
  void Add(const char* key, GgufValue value) {
    out_.push_back({std::string("tokenizer.ggml.") + key, std::move(value)});
  }

  Result<void> AddTokens();
  Result<void> AddByteLevel();
  Result<void> AddSentencePiece();
  Result<std::optional<SplitPattern>> FindPattern(const Json& step) const;
  void SetType(std::size_t id, GgufTokenType type) {
    types_[id] = static_cast<std::int32_t>(type);
  }

  const LoadedModel& model_;
  const Json& json_;
  const std::string label_;
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> types_;
  std::vector<std::string> merges_;  // "a b"
  std::unordered_map<std::string, std::size_t> ids_;
  std::vector<GgufMetadata> out_;
};

// Ids that nobody names, up to the size of the embedding, become unused tokens.
Result<void> JsonVocabulary::AddTokens() {
  const auto n = static_cast<std::size_t>(model_.config.vocab_size);
  tokens_.resize(n);
  types_.assign(n, static_cast<std::int32_t>(GgufTokenType::kUnused));
  const auto put = [&](std::size_t id, const std::string& text,
                       GgufTokenType type) -> Result<void> {
    if (id >= n) {
      return {Code::kUnsupported, label_ + ": token id " + std::to_string(id) +
                                      " is outside the model's vocabulary of " +
                                      std::to_string(n)};
    }
    tokens_[id] = text;
    SetType(id, type);
    ids_[text] = id;
    return {};
  };
  for (const auto& [text, id] : json_["model"]["vocab"].items()) {
    HEARTH_TRY(put(id.get<std::size_t>(), text, GgufTokenType::kNormal));
  }
  for (const Json& token : json_.value("added_tokens", Json::array())) {
    HEARTH_TRY(
        put(token["id"].get<std::size_t>(), token["content"].get<std::string>(),
            token.value("special", false) ? GgufTokenType::kControl
                                          : GgufTokenType::kUserDefined));
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (types_[i] == static_cast<std::int32_t>(GgufTokenType::kUnused)) {
      tokens_[i] = "[PAD" + std::to_string(i) + "]";
    }
  }
  for (const Json& merge : json_["model"]["merges"]) {
    merges_.push_back(merge.is_string() ? merge.get<std::string>()
                                        : merge[0].get<std::string>() + " " +
                                              merge[1].get<std::string>());
  }
  return {};
}

// Nothing for a step that does not split.
Result<std::optional<SplitPattern>> JsonVocabulary::FindPattern(
    const Json& step) const {
  const std::string type = step.value("type", "");
  if (type == "ByteLevel") {
    if (!step.value("use_regex", true)) return std::optional<SplitPattern>();
    return std::optional(SplitPattern::kGpt2);
  }
  if (type != "Split" || !step["pattern"].contains("Regex")) {
    return Unsupported("pre-tokenizer step \"" + type + "\"");
  }
  const auto pattern =
      RecognizePattern(step["pattern"]["Regex"].get<std::string>());
  if (!pattern) return Unsupported("the split pattern");
  return pattern;
}

const char* PreName(SplitPattern pattern, bool ignore_merges) {
  switch (pattern) {
    case SplitPattern::kGpt2:
      return ignore_merges ? nullptr : "gpt-2";
    case SplitPattern::kCl100k:
      return ignore_merges ? "llama-bpe" : "dbrx";
    case SplitPattern::kCl100kDigit:
      return ignore_merges ? nullptr : "qwen2";
    case SplitPattern::kO200k:
      return ignore_merges ? nullptr : "gpt-4o";
    case SplitPattern::kTekken:
      return ignore_merges ? "tekken" : nullptr;
  }
  return nullptr;
}

Result<void> JsonVocabulary::AddByteLevel() {
  const Json& pre = json_["pre_tokenizer"];
  const Json steps =
      pre.value("type", "") == "Sequence" ? pre["pretokenizers"] : Json{pre};
  std::optional<SplitPattern> only;
  for (const Json& step : steps) {
    HEARTH_ASSIGN(const auto pattern, FindPattern(step));
    if (!pattern) continue;
    if (only) return Unsupported("a second split pattern");
    only = pattern;
  }
  if (!only) return Unsupported("byte-level BPE without a split pattern");
  const char* name =
      PreName(*only, json_["model"].value("ignore_merges", false));
  if (name == nullptr) return Unsupported("ignore_merges with this pattern");
  Add("model", std::string("gpt2"));
  Add("pre", std::string(name));
  Add("tokens", std::move(tokens_));
  Add("token_type", std::move(types_));
  Add("merges", std::move(merges_));
  return {};
}

// A piece's score is minus the rank of the merge that first makes it.
Result<void> JsonVocabulary::AddSentencePiece() {
  std::vector<float> scores(tokens_.size(), -1e9f);
  for (std::size_t rank = merges_.size(); rank-- > 0;) {
    std::string piece = merges_[rank];
    piece.erase(piece.find(' '), 1);
    const auto it = ids_.find(piece);
    if (it != ids_.end()) scores[it->second] = -static_cast<float>(rank);
  }
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& t = tokens_[i];
    if (t.size() == 6 && t.starts_with("<0x") && t.back() == '>') {
      SetType(i, GgufTokenType::kByte);
    }
    if (types_[i] != static_cast<std::int32_t>(GgufTokenType::kNormal)) {
      scores[i] = 0.0f;
    }
  }
  const Json& unknown = json_["model"].value("unk_token", Json());
  if (unknown.is_string() && ids_.count(unknown.get<std::string>())) {
    const std::size_t id = ids_[unknown.get<std::string>()];
    SetType(id, GgufTokenType::kUnknown);
    Add("unknown_token_id", static_cast<std::uint32_t>(id));
  }
  const std::string normalizer = json_.value("normalizer", Json()).dump();
  Add("model", std::string("llama"));
  Add("pre", std::string("default"));
  Add("tokens", std::move(tokens_));
  Add("scores", std::move(scores));
  Add("token_type", std::move(types_));
  Add("add_space_prefix", normalizer.find("\"Prepend\"") != std::string::npos);
  return {};
}

Result<std::vector<GgufMetadata>> JsonVocabulary::Run() {
  const std::string type = json_["model"].value("type", "BPE");
  if (type != "BPE") return Unsupported("tokenizer model \"" + type + "\"");
  HEARTH_TRY(AddTokens());
  if (json_["model"].value("byte_fallback", false)) {
    HEARTH_TRY(AddSentencePiece());
  } else {
    if (!json_.value("normalizer", Json()).is_null() &&
        json_["normalizer"].value("type", "") != "NFC") {
      return Unsupported("the normalizer");
    }
    HEARTH_TRY(AddByteLevel());
  }
  if (model_.bos_id >= 0) {
    Add("bos_token_id", static_cast<std::uint32_t>(model_.bos_id));
  }
  if (!model_.eos_ids.empty()) {
    Add("eos_token_id", static_cast<std::uint32_t>(model_.eos_ids[0]));
  }
  if (model_.eos_ids.size() > 1) {
    Add("eot_token_id", static_cast<std::uint32_t>(model_.eos_ids[1]));
  }
  // What the tokenizer does, rather than what its file seems to say.
  HEARTH_ASSIGN(const auto tokenizer, MakeTokenizer(model_));
  HEARTH_ASSIGN(const auto with, tokenizer->Encode("a", {.add_special = true}));
  HEARTH_ASSIGN(const auto without,
                tokenizer->Encode("a", {.add_special = false}));
  const bool more = with.size() > without.size();
  Add("add_bos_token", more && with.front() == model_.bos_id);
  Add("add_eos_token",
      more && !model_.eos_ids.empty() && with.back() == model_.eos_ids[0]);
  return std::move(out_);
}

// chat_template.jinja, or chat_template of tokenizer_config.json.
Result<std::string> ChatTemplateOf(const std::string& directory) {
  auto file = ReadTextFile(directory + "/chat_template.jinja", 16 << 20);
  if (file.ok()) return std::move(*file);
  const std::string path = directory + "/tokenizer_config.json";
  const auto text = ReadTextFile(path, 16 << 20);
  if (!text.ok()) return std::string();
  HEARTH_ASSIGN(const Json json, ParseJson(*text, path));
  if (!json.is_object()) return std::string();
  const auto it = json.find("chat_template");
  if (it == json.end() || !it->is_string()) return std::string();
  return it->get<std::string>();
}

}  // namespace

Result<std::vector<GgufMetadata>> GgufTokenizerMetadata(
    const LoadedModel& model) {
  switch (model.tokenizer_source) {
    case TokenizerSource::kGguf:
      return CopyFromGguf(*model.gguf);
    case TokenizerSource::kBytes:
      return {Code::kUnsupported,
              model.path + ": GGUF has no tokenizer of plain bytes"};
    case TokenizerSource::kDirectory:
      break;
  }
  const std::string path = model.tokenizer_dir + "/tokenizer.json";
  HEARTH_ASSIGN(const std::string text, ReadTextFile(path));
  HEARTH_ASSIGN(const Json json, ParseJson(text, path));
  // MakeTokenizer checks the file's form with good messages, so that the reader
  // here need not.
  HEARTH_TRY(MakeTokenizer(model));
  std::vector<GgufMetadata> out;
  try {
    HEARTH_ASSIGN(out, JsonVocabulary(model, json).Run());
  } catch (const Json::exception& error) {
    return {Code::kCorrupt, path + ": " + error.what()};
  }
  HEARTH_ASSIGN(std::string chat, ChatTemplateOf(model.tokenizer_dir));
  if (!chat.empty())
    out.push_back({"tokenizer.chat_template", std::move(chat)});
  return out;
}

}  // namespace hearth
