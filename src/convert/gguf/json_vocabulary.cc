#include "convert/gguf/json_vocabulary.h"

#include <map>
#include <optional>
#include <utility>

#include "text/json/tokenizer_json_steps.h"
#include "text/split/split_patterns.h"

namespace hearth {

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

namespace {

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
    case SplitPattern::kQwen35:
      return ignore_merges ? nullptr : "qwen35";
  }
  return nullptr;
}

}  // namespace

// Parts of the BPE model that change ids and have no key.
Result<void> JsonVocabulary::CheckOptions() const {
  for (const char* option :
       {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json value = json_["model"].value(option, Json());
    if (value.is_string() && !value.get_ref<const std::string&>().empty()) {
      return Unsupported(option);
    }
  }
  return {};
}

// What stands around an added token, and whether it is looked for in
// normalized text.
void JsonVocabulary::CarryAttributes() {
  const bool normalizes = !json_.value("normalizer", Json()).is_null();
  Json list = Json::array();
  std::map<std::string, int> counts;
  bool assumed = false;
  for (const Json& token : json_.value("added_tokens", Json::array())) {
    const std::string content = token["content"];
    assumed = assumed || DropsSpaceAfter(model_.config.name, content);
    Json entry = {{"id", token["id"]}};
    for (const char* attribute :
         {"single_word", "lstrip", "rstrip", "normalized"}) {
      const bool usual = std::string_view(attribute) == "normalized" &&
                         !token.value("special", false);
      if (!token.value(attribute, usual)) continue;
      if (std::string_view(attribute) == "normalized" && !normalizes) continue;
      entry[attribute] = true;
      ++counts[attribute];
    }
    if (entry.size() > 1) list.push_back(std::move(entry));
  }
  if (list.empty() && !assumed) return;
  carried_["added_tokens"] = std::move(list);
  for (const auto& [attribute, n] : counts) {
    names_.push_back(attribute + " of " + std::to_string(n) + " added tokens");
  }
}

// The name of the splits; it reads the steps in front of the byte alphabet.
Result<const char*> JsonVocabulary::PreOfSteps() {
  const Json& pre = json_["pre_tokenizer"];
  // Not Json{pre}: that is an array for one compiler and a copy for the other.
  const Json steps = pre.value("type", "") == "Sequence" ? pre["pretokenizers"]
                                                         : Json::array({pre});
  std::optional<SplitPattern> only;
  bool digits = false;
  for (const Json& step : steps) {
    const std::string type = step.value("type", "");
    if (type == "Digits" && step.value("individual_digits", false) && !only) {
      digits = true;
      continue;
    }
    std::optional<SplitPattern> pattern;
    if (type == "ByteLevel") {
      if (step.value("add_prefix_space", true)) {
        Carry("pre_tokenizer", "add_prefix_space");
      }
      if (!step.value("use_regex", true)) continue;
      pattern = SplitPattern::kGpt2;
    } else if (type == "Split" && step["pattern"].contains("Regex")) {
      const std::string behavior = step.value("behavior", "Isolated");
      if (behavior != "Isolated" || step.value("invert", false)) {
        return Unsupported("a Split with behavior " + behavior +
                           (step.value("invert", false) ? ", inverted," : ""));
      }
      pattern = RecognizePattern(step["pattern"]["Regex"].get<std::string>());
      if (!pattern) return Unsupported("the split pattern");
    } else {
      return Unsupported("pre-tokenizer step \"" + type + "\"");
    }
    if (only) return Unsupported("a second split pattern");
    only = pattern;
  }
  if (merges_.empty()) return "gpt-2";  // words are single bytes anyway
  if (!only) return Unsupported("byte-level BPE without a split pattern");
  const bool ignore = json_["model"].value("ignore_merges", false);
  const char* name = PreName(*only, ignore);
  if (digits) {
    name = *only == SplitPattern::kGpt2 && !ignore ? "starcoder" : nullptr;
  }
  if (name == nullptr) return Unsupported("this combination of splits");
  return name;
}

Result<void> JsonVocabulary::AddByteLevel() {
  const Json normalizer = json_.value("normalizer", Json());
  if (!normalizer.is_null()) {
    const Json steps = normalizer.value("type", "") == "Sequence"
                           ? normalizer["normalizers"]
                           : Json::array({normalizer});
    for (const Json& step : steps) {
      if (step.value("type", "") != "NFC") return Unsupported("the normalizer");
    }
    if (!steps.empty()) Carry("normalizer", "NFC");
  }
  HEARTH_ASSIGN(const char* name, PreOfSteps());
  Add("model", std::string("gpt2"));
  Add("pre", std::string(name));
  Add("tokens", std::move(tokens_));
  Add("token_type", std::move(types_));
  Add("merges", std::move(merges_));
  return {};
}

// Whether a space goes before the text. Text is marked by the normalizer, or by
// a Metaspace step, whose rules are finer than GGUF's.
Result<bool> JsonVocabulary::ReadSpacePrefix() {
  const Json mark = {{"type", "Replace"},
                     {"pattern", {{"String", " "}}},
                     {"content", "\xE2\x96\x81"}};
  const Json prepend = {{"type", "Prepend"}, {"prepend", "\xE2\x96\x81"}};
  const Json normalizer = json_.value("normalizer", Json());
  const Json pre = json_.value("pre_tokenizer", Json());
  if (pre.is_object() && pre.value("type", "") == "Metaspace") {
    if (!normalizer.is_null()) return Unsupported("the normalizer");
    Carry("pre_tokenizer", "Metaspace");
    // Not what GGUF's keys would make of it: the marks are the step's.
    carried_["normalizer"] = {{"type", "Sequence"},
                              {"normalizers", Json::array()}};
    const bool add = pre.value("add_prefix_space", true);
    return pre.value("prepend_scheme", add ? "always" : "never") != "never";
  }
  const Json steps =
      normalizer.is_object() && normalizer.value("type", "") == "Sequence"
          ? normalizer["normalizers"]
          : Json::array({normalizer});
  if (steps == Json::array({prepend, mark})) return true;
  if (steps != Json::array({mark})) return Unsupported("the normalizer");
  return false;
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
  HEARTH_ASSIGN(const bool prefix, ReadSpacePrefix());
  const auto replace = Json{{"type", "Replace"},
                            {"pattern", {{"String", "\xE2\x96\x81"}}},
                            {"content", " "}};
  Json decoders = {replace, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (prefix) {
    decoders.push_back(
        {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  const Json decoder = json_.value("decoder", Json());
  if (!decoder.is_object() || decoder.value("decoders", Json()) != decoders) {
    if (decoder.is_null()) return Unsupported("a missing decoder");
    Carry("decoder", "the decoder");
  }
  Add("model", std::string("llama"));
  Add("pre", std::string("default"));
  Add("tokens", std::move(tokens_));
  Add("scores", std::move(scores));
  Add("token_type", std::move(types_));
  Add("add_space_prefix", prefix);
  return {};
}

Result<std::vector<GgufMetadata>> JsonVocabulary::Run(
    std::vector<std::string>& notes) {
  const std::string type = json_["model"].value("type", "BPE");
  if (type != "BPE") return Unsupported("tokenizer model \"" + type + "\"");
  HEARTH_TRY(CheckOptions());
  HEARTH_TRY(AddTokens());
  CarryAttributes();
  if (json_["model"].value("byte_fallback", false)) {
    HEARTH_TRY(AddSentencePiece());
  } else {
    HEARTH_TRY(AddByteLevel());
  }
  HEARTH_TRY(AddSpecialIds());
  if (!carried_.empty()) {
    out_.push_back({"hearth.tokenizer", carried_.dump()});
  }
  if (!names_.empty()) {
    std::string list;
    for (const std::string& name : names_) {
      list += (list.empty() ? "" : ", ") + name;
    }
    notes.push_back(
        "tokenizer.json: GGUF's own keys cannot say: " + list +
        "; hearth finds it under hearth.tokenizer, other programs will give "
        "such text other ids");
  }
  return std::move(out_);
}

}  // namespace hearth
