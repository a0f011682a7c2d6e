#include "engine/text/tokenizer_factory.h"

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "formats/gguf/gguf.h"
#include "formats/locate/file_kind.h"
#include "text/gguf/gguf_vocab.h"
#include "text/json/tokenizer_json.h"

namespace hearth {
namespace {

Result<std::optional<std::int32_t>> OptionalId(const GgufFile& gguf,
                                               const char* key) {
  if (!gguf.Has(key)) return std::optional<std::int32_t>();
  HEARTH_ASSIGN(const std::int64_t id, gguf.Int(key));
  // Some converters write 2^32 - 1 for "none".
  if (id < 0 || id > INT32_MAX) return std::optional<std::int32_t>();
  return std::optional<std::int32_t>(static_cast<std::int32_t>(id));
}

Result<std::optional<bool>> OptionalBool(const GgufFile& gguf,
                                         const char* key) {
  if (!gguf.Has(key)) return std::optional<bool>();
  HEARTH_ASSIGN(const bool value, gguf.Bool(key, false));
  return std::optional<bool>(value);
}

Result<std::unique_ptr<Tokenizer>> MakeFromGguf(const GgufFile& gguf) {
  GgufVocab vocab;
  vocab.what = gguf.label();
  HEARTH_ASSIGN(vocab.model, gguf.Text("tokenizer.ggml.model"));
  HEARTH_ASSIGN(vocab.pre, gguf.Text("tokenizer.ggml.pre", ""));
  HEARTH_ASSIGN(vocab.general_name, gguf.Text("general.name", ""));
  HEARTH_ASSIGN(vocab.tokens, gguf.TextArray("tokenizer.ggml.tokens"));
  if (gguf.Has("tokenizer.ggml.scores")) {
    HEARTH_ASSIGN(vocab.scores, gguf.FloatArray("tokenizer.ggml.scores"));
  }
  if (gguf.Has("tokenizer.ggml.token_type")) {
    HEARTH_ASSIGN(vocab.token_types,
                  gguf.IntArray("tokenizer.ggml.token_type"));
  }
  if (gguf.Has("tokenizer.ggml.merges")) {
    HEARTH_ASSIGN(vocab.merges, gguf.TextArray("tokenizer.ggml.merges"));
    vocab.merges_given = true;
  }
  HEARTH_ASSIGN(vocab.bos, OptionalId(gguf, "tokenizer.ggml.bos_token_id"));
  HEARTH_ASSIGN(vocab.eos, OptionalId(gguf, "tokenizer.ggml.eos_token_id"));
  HEARTH_ASSIGN(vocab.unk, OptionalId(gguf, "tokenizer.ggml.unknown_token_id"));
  HEARTH_ASSIGN(vocab.pad, OptionalId(gguf, "tokenizer.ggml.padding_token_id"));
  HEARTH_ASSIGN(vocab.add_bos,
                OptionalBool(gguf, "tokenizer.ggml.add_bos_token"));
  HEARTH_ASSIGN(vocab.add_eos,
                OptionalBool(gguf, "tokenizer.ggml.add_eos_token"));
  HEARTH_ASSIGN(vocab.add_space_prefix,
                OptionalBool(gguf, "tokenizer.ggml.add_space_prefix"));
  HEARTH_ASSIGN(vocab.remove_extra_whitespaces,
                OptionalBool(gguf, "tokenizer.ggml.remove_extra_whitespaces"));
  HEARTH_ASSIGN(vocab.pipeline, gguf.Text("hearth.tokenizer", ""));
  return MakeGgufTokenizer(vocab);
}

class Codec final : public TextCodec {
 public:
  explicit Codec(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  Result<std::vector<std::int32_t>> Encode(std::string_view text,
                                           bool special) const override {
    return tokenizer_->Encode(
        text, {.add_special = special, .parse_special = special});
  }

  Result<std::string> Decode(std::span<const std::int32_t> ids) const override {
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= tokenizer_->vocab_size()) {
        return {Code::kInvalidArgument,
                "token id " + std::to_string(id) +
                    " is outside the vocabulary of " +
                    std::to_string(tokenizer_->vocab_size())};
      }
    }
    return tokenizer_->Decode(ids);
  }

  std::string Describe() const override {
    return std::string(tokenizer_->kind()) + ", " +
           std::to_string(tokenizer_->vocab_size()) + " tokens";
  }
  int vocab_size() const override { return tokenizer_->vocab_size(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> MakeTokenizerFromJsonFile(
    const std::string& path) {
  HEARTH_ASSIGN(const MappedFile file, MappedFile::Open(path));
  HEARTH_TRY(RefuseDownloadAccident(file.bytes(), path));
  const auto directory = std::filesystem::path(path).parent_path();
  auto config =
      ReadTextFile((directory / "tokenizer_config.json").string(), 16 << 20);
  if (!config.ok() && config.error().code != Code::kNotFound) {
    return config.error();
  }
  return LoadTokenizerJson(AsText(file.bytes()), config.ok() ? *config : "",
                           path);
}

Result<std::unique_ptr<Tokenizer>> MakeTokenizer(const LoadedModel& model) {
  HEARTH_ASSIGN(auto tokenizer, ReadTokenizer(model));
  tokenizer->AddEnds(model.eos_ids);
  return tokenizer;
}

std::string TokenizerWarning(const LoadedModel& model) {
  if (model.tokenizer_source != TokenizerSource::kGguf ||
      model.gguf->Has("tokenizer.ggml.pre")) {
    return "";
  }
  const auto kind = model.gguf->Text("tokenizer.ggml.model");
  if (!kind.ok() || *kind != "gpt2") return "";
  return model.path +
         ": the file does not name its pre-tokenizer (tokenizer.ggml.pre); "
         "text is split in the oldest way, and answers may be worse: get a "
         "newer file of the model";
}

Result<std::unique_ptr<Tokenizer>> ReadTokenizer(const LoadedModel& model) {
  switch (model.tokenizer_source) {
    case TokenizerSource::kBytes:
      return MakeByteTokenizer();
    case TokenizerSource::kGguf:
      return MakeFromGguf(*model.gguf);
    case TokenizerSource::kDirectory:
      break;
  }
  if (model.tokenizer_dir.empty()) {
    return {Code::kNotFound,
            model.path +
                ": the model needs its tokenizer; put the "
                "tokenizer.json that belongs to it beside its weights"};
  }
  const std::string path = model.tokenizer_dir + "/tokenizer.json";
  auto tokenizer = MakeTokenizerFromJsonFile(path);
  if (!tokenizer.ok() && tokenizer.error().code == Code::kNotFound) {
    return {Code::kNotFound,
            path +
                ": the model needs its tokenizer; put the tokenizer.json "
                "that belongs to it there"};
  }
  return tokenizer;
}

std::unique_ptr<TextCodec> MakeTextCodec(
    std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_unique<Codec>(std::move(tokenizer));
}

}  // namespace hearth
