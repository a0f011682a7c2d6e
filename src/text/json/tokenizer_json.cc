#include "text/json/tokenizer_json.h"

#include <simdjson.h>

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "text/bpe/merge_reader.h"
#include "text/end_tokens.h"
#include "text/json/tokenizer_json_steps.h"
#include "text/pipeline_tokenizer.h"
#include "text/unicode/byte_alphabet.h"

namespace hearth {
namespace {

namespace sj = simdjson::dom;

constexpr std::int64_t kIdMax = 1 << 26;
constexpr std::size_t kDepthMax = 64;

Error Bad(const std::string& what, const std::string& fault) {
  return {Code::kCorrupt, what + ": " + fault};
}

// A small member of the document as nlohmann JSON; null when it is not there.
Result<Json> SmallMember(const sj::object& object, const char* key,
                         const std::string& what) {
  sj::element element;
  if (object[key].get(element) != simdjson::SUCCESS) return Json(nullptr);
  return ParseJson(simdjson::minify(element), what + ": " + key);
}

// Reads the document's parts into a TokenizerSpec, one after the other.
class Loader {
 public:
  Loader(const std::string& what) : what_(what) {}

  Result<std::unique_ptr<Tokenizer>> Load(std::string_view json,
                                          std::string_view config) {
    sj::parser parser;
    if (parser.allocate(std::max<std::size_t>(json.size(), 64), kDepthMax) !=
        simdjson::SUCCESS) {
      return Error{Code::kResourceFull, what_ + ": no memory to parse it"};
    }
    sj::element document;
    const auto error = parser.parse(json.data(), json.size()).get(document);
    if (error != simdjson::SUCCESS) {
      return Bad(what_, std::string("not valid JSON: ") +
                            simdjson::error_message(error));
    }
    sj::object root;
    if (document.get(root) != simdjson::SUCCESS) {
      return Bad(what_, "the document is not an object");
    }
    HEARTH_TRY(ReadPipeline(root));
    sj::object model;
    if (root["model"].get(model) != simdjson::SUCCESS) {
      return Bad(what_, "member \"model\" is missing or not an object");
    }
    HEARTH_TRY(ReadModelOptions(model));
    HEARTH_TRY(ReadAdded(root));
    HEARTH_TRY(ReadVocab(model));
    HEARTH_TRY(ReadMerges(model));
    HEARTH_TRY(ReadConfig(config));
    FindEnds(spec_);
    spec_.kind = spec_.bpe.bytes           ? "byte-level BPE"
                 : spec_.bpe.byte_fallback ? "BPE with byte fallback"
                                           : "BPE";
    HEARTH_ASSIGN(auto made, PipelineTokenizer::Make(std::move(spec_), what_));
    return std::unique_ptr<Tokenizer>(std::move(made));
  }

 private:
  Result<void> ReadPipeline(const sj::object& root) {
    HEARTH_ASSIGN(const Json normalizer,
                  SmallMember(root, "normalizer", what_));
    HEARTH_ASSIGN(spec_.normalizers, ReadNormalizer(normalizer, what_));
    HEARTH_ASSIGN(const Json split, SmallMember(root, "pre_tokenizer", what_));
    HEARTH_ASSIGN(spec_.splits, ReadPreTokenizer(split, what_));
    HEARTH_ASSIGN(const Json decoder, SmallMember(root, "decoder", what_));
    HEARTH_ASSIGN(spec_.decoders, ReadDecoder(decoder, what_));
    HEARTH_ASSIGN(const Json post, SmallMember(root, "post_processor", what_));
    HEARTH_ASSIGN(SurroundingIds around, ReadPostProcessor(post, what_));
    spec_.before = std::move(around.before);
    spec_.after = std::move(around.after);
    const auto holds = [](const std::vector<Step>& steps, StepKind kind) {
      return std::any_of(steps.begin(), steps.end(), [kind](const Step& step) {
        return step.kind == kind;
      });
    };
    spec_.bpe.bytes = holds(spec_.splits, StepKind::kByteLevel) ||
                      holds(spec_.normalizers, StepKind::kSpellBytes);
    return {};
  }

  Result<void> ReadModelOptions(const sj::object& model) {
    std::string options = "{";
    for (const auto& [key, value] : model) {
      if (key == "vocab" || key == "merges") continue;
      if (options.size() > 1) options += ',';
      options += Json(std::string(key)).dump() + ":" + simdjson::minify(value);
    }
    const std::string where = what_ + ": model";
    HEARTH_ASSIGN(const Json json, ParseJson(options + "}", where));
    HEARTH_ASSIGN(const std::string type,
                  JsonText(json, "type", where, std::string("BPE")));
    if (type != "BPE" || JsonFind(json, "unk_id") != nullptr) {
      return Error{Code::kUnsupported, where + ": type " +
                                           (type == "BPE" ? "Unigram" : type) +
                                           " is not supported (BPE is)"};
    }
    HEARTH_ASSIGN(const double dropout,
                  JsonNumber(json, "dropout", where, 0.0));
    if (dropout != 0.0) {
      return Error{Code::kUnsupported,
                   where + ": dropout makes ids random and is not supported"};
    }
    Bpe& bpe = spec_.bpe;
    HEARTH_ASSIGN(unk_token_,
                  JsonText(json, "unk_token", where, std::string()));
    HEARTH_ASSIGN(bpe.later_prefix, JsonText(json, "continuing_subword_prefix",
                                             where, std::string()));
    HEARTH_ASSIGN(bpe.last_suffix,
                  JsonText(json, "end_of_word_suffix", where, std::string()));
    HEARTH_ASSIGN(bpe.fuse_unk, JsonBool(json, "fuse_unk", where, false));
    HEARTH_ASSIGN(bpe.byte_fallback,
                  JsonBool(json, "byte_fallback", where, false));
    HEARTH_ASSIGN(bpe.ignore_merges,
                  JsonBool(json, "ignore_merges", where, false));
    return {};
  }

  Result<void> ReadAdded(const sj::object& root) {
    HEARTH_ASSIGN(const Json list, SmallMember(root, "added_tokens", what_));
    if (list.is_null()) return {};
    const std::string where = what_ + ": added_tokens";
    if (!list.is_array()) return Bad(where, "not a list");
    for (const Json& entry : list) {
      AddedToken token;
      HEARTH_ASSIGN(token.content, JsonText(entry, "content", where));
      HEARTH_ASSIGN(const std::int64_t id, JsonInt(entry, "id", where));
      if (id < 0 || id > kIdMax) {
        return Bad(where, "the id of " + token.content + " is out of range");
      }
      token.id = static_cast<std::int32_t>(id);
      HEARTH_ASSIGN(token.single_word,
                    JsonBool(entry, "single_word", where, false));
      HEARTH_ASSIGN(token.lstrip, JsonBool(entry, "lstrip", where, false));
      HEARTH_ASSIGN(token.rstrip, JsonBool(entry, "rstrip", where, false));
      HEARTH_ASSIGN(token.special, JsonBool(entry, "special", where, false));
      HEARTH_ASSIGN(token.normalized,
                    JsonBool(entry, "normalized", where, !token.special));
      spec_.added.push_back(std::move(token));
    }
    return {};
  }

  // Every id gets a piece or none; ids may have gaps, but not many.
  Result<void> ReadVocab(const sj::object& model) {
    const std::string where = what_ + ": model.vocab";
    sj::object vocab;
    if (model["vocab"].get(vocab) != simdjson::SUCCESS) {
      return Bad(where, "missing or not an object");
    }
    std::size_t n_entries = spec_.added.size(), text_bytes = 0;
    for (const auto& field : vocab) {
      ++n_entries;
      text_bytes += field.key.size();
    }
    const auto size_max = static_cast<std::int64_t>(n_entries * 4 + 65536);
    std::vector<std::string_view> by_id;
    by_id.reserve(n_entries);
    const auto place = [&](std::int64_t id) -> std::string_view& {
      if (by_id.size() <= static_cast<std::size_t>(id)) {
        by_id.resize(static_cast<std::size_t>(id) + 1);
      }
      return by_id[static_cast<std::size_t>(id)];
    };
    for (const auto& field : vocab) {
      std::int64_t id;
      if (field.value.get(id) != simdjson::SUCCESS || id < 0 ||
          id >= size_max) {
        return Bad(where, "the id of \"" + std::string(field.key) +
                              "\" is not a number in range");
      }
      std::string_view& piece = place(id);
      if (piece.data() != nullptr) {
        return Bad(where, "id " + std::to_string(id) + " is given twice");
      }
      piece = field.key;
    }
    std::vector<bool> fresh(by_id.size(), false);
    for (const AddedToken& token : spec_.added) {
      if (token.id >= size_max) {
        return Bad(what_ + ": added_tokens",
                   "id " + std::to_string(token.id) + " is far outside");
      }
      std::string_view& piece = place(token.id);
      fresh.resize(by_id.size(), false);
      if (piece.data() == nullptr) {
        piece = token.content;
        fresh[static_cast<std::size_t>(token.id)] = true;
      } else if (piece != token.content) {
        return Bad(what_ + ": added_tokens",
                   "id " + std::to_string(token.id) + " is \"" + token.content +
                       "\" here and \"" + std::string(piece) +
                       "\" in the vocabulary");
      }
    }
    return BuildVocab(by_id, fresh, text_bytes);
  }

  Result<void> BuildVocab(const std::vector<std::string_view>& by_id,
                          const std::vector<bool>& fresh,
                          std::size_t text_bytes) {
    Bpe& bpe = spec_.bpe;
    VocabBuilder builder(by_id.size(), text_bytes);
    std::vector<bool> special(by_id.size(), false);
    for (const AddedToken& token : spec_.added) {
      if (token.special) special[static_cast<std::size_t>(token.id)] = true;
    }
    std::string bytes;
    for (std::size_t id = 0; id < by_id.size(); ++id) {
      const std::string_view piece = by_id[id];
      unsigned flags = piece.data() != nullptr ? unsigned{kPiecePresent} : 0u;
      if (special[id]) flags |= kPieceSpecial;
      std::string_view text = piece;
      if (!fresh[id] && piece.data() != nullptr) {
        if (bpe.bytes) {
          bytes.clear();
          if (AppendUnspelled(bytes, piece)) {
            text = bytes;
            flags |= kPieceRawBytes | kPieceFindable;
          }
        } else {
          flags |= kPieceFindable;
          if (ByteOfPiece(piece) >= 0) flags |= kPieceByte;
        }
      }
      builder.Add(text, static_cast<std::uint8_t>(flags));
    }
    HEARTH_ASSIGN(bpe.vocab, builder.Finish(what_ + ": model.vocab"));
    for (const AddedToken& token : spec_.added) {
      const std::uint32_t id = FindInModel(token.content);
      if (id != kNoId && id != static_cast<std::uint32_t>(token.id)) {
        return Bad(what_ + ": added_tokens",
                   token.content + " has id " + std::to_string(token.id) +
                       " here and " + std::to_string(id) +
                       " in the vocabulary");
      }
    }
    if (!unk_token_.empty()) bpe.unk_id = FindInModel(unk_token_);
    return {};
  }

  // A spelling among the pieces that merging can reach.
  std::uint32_t FindInModel(std::string_view spelling) const {
    const Bpe& bpe = spec_.bpe;
    if (!bpe.bytes) return bpe.vocab.Find(spelling);
    std::string bytes;
    if (!AppendUnspelled(bytes, spelling)) return kNoId;
    return bpe.vocab.Find(bytes);
  }

  Result<void> ReadMerges(const sj::object& model) {
    const std::string where = what_ + ": model.merges";
    sj::array list;
    if (model["merges"].get(list) != simdjson::SUCCESS) {
      return Bad(where, "missing or not a list");
    }
    MergeReader reader(spec_.bpe.vocab, spec_.bpe.bytes,
                       spec_.bpe.later_prefix);
    reader.Reserve(list.size());
    std::size_t index = 0;
    for (const sj::element element : list) {
      std::string_view left, right;
      sj::array pair;
      if (element.get(left) == simdjson::SUCCESS) {
        if (index == 0 && left.starts_with("#version")) continue;
        const std::size_t space = left.find(' ');
        if (space == std::string_view::npos ||
            left.find(' ', space + 1) != std::string_view::npos) {
          return Bad(where, "merge " + std::to_string(index) +
                                " is not two pieces with one space between");
        }
        right = left.substr(space + 1);
        left = left.substr(0, space);
      } else if (element.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
                 pair.at(0).get(left) != simdjson::SUCCESS ||
                 pair.at(1).get(right) != simdjson::SUCCESS) {
        return Bad(where, "merge " + std::to_string(index) +
                              " is neither a string nor a pair of strings");
      }
      reader.Add(left, right);
      ++index;
    }
    if (const auto missing = reader.Finish()) {
      return Bad(where, "merge " + std::to_string(*missing) +
                            " is not in the vocabulary");
    }
    HEARTH_ASSIGN(spec_.bpe.merges, MergeTable::Make(reader.merges(), where));
    return {};
  }

  // bos_token and eos_token are a spelling or an object with "content".
  Result<std::optional<std::int32_t>> ConfigId(const Json& config,
                                               const char* key,
                                               const std::string& where) {
    const Json* value = JsonFind(config, key);
    if (value == nullptr) return std::optional<std::int32_t>();
    if (value->is_object()) value = JsonFind(*value, "content");
    if (value == nullptr || !value->is_string()) {
      return Bad(where, std::string(key) + " is not a token");
    }
    const auto& content = value->get_ref<const std::string&>();
    for (const AddedToken& token : spec_.added) {
      if (token.content == content) return std::optional(token.id);
    }
    const std::uint32_t id = FindInModel(content);
    if (id == kNoId) return std::optional<std::int32_t>();
    return std::optional(static_cast<std::int32_t>(id));
  }

  Result<void> ReadConfig(std::string_view text) {
    if (!spec_.before.empty()) spec_.bos = spec_.before.front();
    if (!spec_.after.empty()) spec_.eos = spec_.after.back();
    if (text.empty()) return {};
    const std::string where = what_ + ": tokenizer_config.json";
    HEARTH_ASSIGN(const Json config, ParseJson(text, where));
    HEARTH_ASSIGN(const auto bos, ConfigId(config, "bos_token", where));
    HEARTH_ASSIGN(const auto eos, ConfigId(config, "eos_token", where));
    if (bos) spec_.bos = bos;
    if (eos) spec_.eos = eos;
    // The llama and gemma classes write their own template from two switches.
    HEARTH_ASSIGN(const std::string name,
                  JsonText(config, "tokenizer_class", where, std::string()));
    const bool own_template = name.starts_with("LlamaTokenizer") ||
                              name.starts_with("CodeLlamaTokenizer") ||
                              name.starts_with("GemmaTokenizer");
    if (!own_template || JsonFind(config, "add_bos_token") == nullptr)
      return {};
    HEARTH_ASSIGN(const bool add_bos,
                  JsonBool(config, "add_bos_token", where, true));
    HEARTH_ASSIGN(const bool add_eos,
                  JsonBool(config, "add_eos_token", where, false));
    spec_.before.clear();
    spec_.after.clear();
    if (add_bos && spec_.bos) spec_.before.push_back(*spec_.bos);
    if (add_eos && spec_.eos) spec_.after.push_back(*spec_.eos);
    return {};
  }

  const std::string& what_;
  TokenizerSpec spec_;
  std::string unk_token_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> LoadTokenizerJson(
    std::string_view json_text, std::string_view tokenizer_config_json,
    const std::string& what) {
  return Loader(what).Load(json_text, tokenizer_config_json);
}

}  // namespace hearth
