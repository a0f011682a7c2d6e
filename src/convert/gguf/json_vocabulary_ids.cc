#include <algorithm>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "convert/gguf/json_vocabulary.h"
#include "engine/text/tokenizer_factory.h"
#include "text/json/tokenizer_json_steps.h"

namespace hearth {

// The ids around a text, as the tokenizer puts them rather than as its file
// seems to say. GGUF has two switches: BOS before it, EOS after it.
Result<void> JsonVocabulary::AddSurrounding(const Tokenizer& tokenizer,
                                            std::int32_t bos,
                                            std::int32_t eos) {
  using Ids = std::vector<std::int32_t>;
  HEARTH_ASSIGN(const Ids with, tokenizer.Encode("a", {.add_special = true}));
  HEARTH_ASSIGN(const Ids plain, tokenizer.Encode("a", {.add_special = false}));
  const auto text =
      std::search(with.begin(), with.end(), plain.begin(), plain.end());
  const Ids before(with.begin(), text);
  const Ids after(std::min(text + std::ssize(plain), with.end()), with.end());
  Add("add_bos_token", !before.empty());
  Add("add_eos_token", !after.empty());
  const bool said = (before.empty() || before == Ids{bos}) &&
                    (after.empty() || after == Ids{eos});
  if (said) return {};
  Carry("post_processor", "the tokens around a text");
  // tokenizer_config.json may have overruled the file's own.
  HEARTH_ASSIGN(
      const SurroundingIds own,
      ReadPostProcessor(json_.value("post_processor", Json()), label_));
  if (own.before == before && own.after == after) return {};
  Json single = Json::array(), specials = Json::object();
  const auto special = [&](std::int32_t id) {
    const std::string name = tokenizer.Piece(id);
    single.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
    specials[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  };
  for (const std::int32_t id : before) special(id);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  for (const std::int32_t id : after) special(id);
  carried_["post_processor"] = {{"type", "TemplateProcessing"},
                                {"single", std::move(single)},
                                {"special_tokens", std::move(specials)}};
  return {};
}

Result<void> JsonVocabulary::AddSpecialIds() {
  HEARTH_ASSIGN(const auto tokenizer, MakeTokenizer(model_));
  std::vector<std::int32_t> ends = model_.eos_ids;
  if (ends.empty() && tokenizer->eos_id()) ends.push_back(*tokenizer->eos_id());
  const std::int32_t bos =
      model_.bos_id >= 0 ? model_.bos_id : tokenizer->bos_id().value_or(-1);
  const auto id = [this](const char* key, std::int32_t value) {
    if (value >= 0) Add(key, static_cast<std::uint32_t>(value));
  };
  id("bos_token_id", bos);
  constexpr const char* kEnds[] = {"eos_token_id", "eot_token_id",
                                   "eom_token_id"};
  for (std::size_t i = 0; i < std::min(ends.size(), std::size(kEnds)); ++i) {
    id(kEnds[i], ends[i]);
  }
  if (ends.size() > std::size(kEnds)) {
    carried_["ends"] = Json(std::vector(ends.begin() + 3, ends.end()));
    names_.push_back("more than three tokens that end an answer");
  }
  HEARTH_TRY(AddSurrounding(*tokenizer, bos, ends.empty() ? -1 : ends[0]));
  // Tokens with other duties are named by their text.
  const std::string path = model_.tokenizer_dir + "/tokenizer_config.json";
  const auto text = ReadTextFile(path, 16 << 20);
  if (!text.ok()) return {};
  HEARTH_ASSIGN(const Json config, ParseJson(*text, path));
  constexpr std::pair<const char*, const char*> kDuties[] = {
      {"pad_token", "padding_token_id"},
      {"sep_token", "seperator_token_id"},  // so spelled in GGUF
      {"cls_token", "cls_token_id"},
      {"mask_token", "mask_token_id"},
      {"unk_token", "unknown_token_id"}};
  for (const auto& [member, key] : kDuties) {
    const Json* token = JsonFind(config, member);
    if (token != nullptr && token->is_object()) {
      token = JsonFind(*token, "content");
    }
    if (token == nullptr || !token->is_string()) continue;
    const auto found = ids_.find(token->get<std::string>());
    const std::string full_key = std::string("tokenizer.ggml.") + key;
    const bool there = std::any_of(
        out_.begin(), out_.end(),
        [&](const GgufMetadata& entry) { return entry.key == full_key; });
    if (found != ids_.end() && !there) {
      Add(key, static_cast<std::uint32_t>(found->second));
    }
  }
  return {};
}

}  // namespace hearth
