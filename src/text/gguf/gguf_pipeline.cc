#include "text/gguf/gguf_pipeline.h"

#include <unordered_map>
#include <utility>

#include "base/json.h"
#include "text/json/tokenizer_json_steps.h"

namespace hearth {
namespace {

// Whole members of tokenizer.json of the same names.
Result<void> ApplySteps(const Json& json, const std::string& what,
                        TokenizerSpec& spec) {
  if (const Json* value = JsonFind(json, "normalizer")) {
    HEARTH_ASSIGN(spec.normalizers, ReadNormalizer(*value, what));
  }
  if (const Json* value = JsonFind(json, "pre_tokenizer")) {
    HEARTH_ASSIGN(spec.splits, ReadPreTokenizer(*value, what));
  }
  if (const Json* value = JsonFind(json, "decoder")) {
    HEARTH_ASSIGN(spec.decoders, ReadDecoder(*value, what));
  }
  if (const Json* value = JsonFind(json, "post_processor")) {
    HEARTH_ASSIGN(SurroundingIds around, ReadPostProcessor(*value, what));
    spec.before = std::move(around.before);
    spec.after = std::move(around.after);
  }
  return {};
}

// The added tokens that have an attribute; no others have any.
Result<void> ApplyAdded(const Json& list, const std::string& what,
                        TokenizerSpec& spec) {
  const std::string where = what + ": added_tokens";
  if (!list.is_array()) return {Code::kCorrupt, where + ": not a list"};
  std::unordered_map<std::int64_t, AddedToken*> by_id;  // either may be long
  for (AddedToken& token : spec.added) {
    token.single_word = token.lstrip = token.rstrip = token.normalized = false;
    by_id[token.id] = &token;
  }
  for (const Json& entry : list) {
    HEARTH_ASSIGN(const std::int64_t id, JsonInt(entry, "id", where));
    const auto found = by_id.find(id);
    if (found == by_id.end()) {
      return {Code::kCorrupt,
              where + ": id " + std::to_string(id) + " is no added token"};
    }
    for (const auto& [name, member] :
         {std::pair("single_word", &AddedToken::single_word),
          std::pair("lstrip", &AddedToken::lstrip),
          std::pair("rstrip", &AddedToken::rstrip),
          std::pair("normalized", &AddedToken::normalized)}) {
      HEARTH_ASSIGN(found->second->*member,
                    JsonBool(entry, name, where, false));
    }
  }
  return {};
}

Result<void> ApplyEnds(const Json& list, const std::string& what,
                       TokenizerSpec& spec) {
  if (!list.is_array()) return {Code::kCorrupt, what + ": ends: not a list"};
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
        id.get<std::int64_t>() > INT32_MAX) {
      return {Code::kCorrupt, what + ": ends: not a list of token ids"};
    }
    spec.ends.push_back(id.get<std::int32_t>());
  }
  return {};
}

}  // namespace

Result<void> ApplyPipeline(std::string_view text, const std::string& what,
                           TokenizerSpec& spec) {
  const std::string where = what + ": hearth.tokenizer";
  HEARTH_ASSIGN(const Json json, ParseJson(text, where));
  if (!json.is_object()) return {Code::kCorrupt, where + ": not an object"};
  HEARTH_TRY(ApplySteps(json, where, spec));
  if (const Json* list = JsonFind(json, "added_tokens")) {
    HEARTH_TRY(ApplyAdded(*list, where, spec));
  }
  if (const Json* list = JsonFind(json, "ends")) {
    HEARTH_TRY(ApplyEnds(*list, where, spec));
  }
  return {};
}

}  // namespace hearth
