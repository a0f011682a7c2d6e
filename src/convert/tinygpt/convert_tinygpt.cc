#include "convert/tinygpt/convert_tinygpt.h"

#include <filesystem>

#include "base/files/output.h"
#include "convert/huggingface/convert_tokenizer_json.h"
#include "convert/tinygpt/tinygpt_export.h"
#include "engine/text/tokenizer_factory.h"
#include "formats/tinygpt/tinygpt.h"

namespace hearth {
namespace {

// Whether id b stands for byte b, for all of them, and texts get these ids.
Result<bool> IsPlainBytes(const LoadedModel& model) {
  if (model.tokenizer_source == TokenizerSource::kBytes) return true;
  if (model.config.vocab_size != kTinygptBytesVocab) return false;
  HEARTH_ASSIGN(const auto tokenizer, MakeTokenizer(model));
  std::string text;
  for (std::int32_t id = 0; id < kTinygptBytesVocab; ++id) {
    const char byte = static_cast<char>(id);
    if (tokenizer->TokenBytes(id) != std::string(1, byte)) return false;
    if (id < 128) text += byte;
  }
  HEARTH_ASSIGN(const auto ids, tokenizer->Encode(text));
  return ids.size() == text.size();
}

bool IsTokenizerFile(const std::string& name) {
  return name == "tokenizer.json" || name == "tokenizer_config.json" ||
         name == "chat_template.jinja";
}

}  // namespace

Result<void> WriteTinygpt(const LoadedModel& model, const std::string& path,
                          const WriteOptions& options,
                          std::vector<std::string>& notes) {
  HEARTH_TRY(CheckFitsTinygpt(model));
  HEARTH_ASSIGN(const bool bytes, IsPlainBytes(model));
  std::string source;
  if (!bytes) {
    if (model.config.vocab_size <= kTinygptBytesVocab) {
      return {Code::kUnsupported,
              model.path +
                  ": a .tinygpt vocabulary of up to 256 tokens is "
                  "that of plain bytes, this one is another"};
    }
    const auto stem = std::filesystem::path(path).replace_extension();
    const std::string directory = stem.string() + "-tokenizer";
    HEARTH_ASSIGN(
        OutputDirectory out,
        OutputDirectory::Create(directory, options.replace, IsTokenizerFile));
    HEARTH_TRY(WriteTokenizerFiles(model, out.path(), notes));
    source = stem.filename().string() + "-tokenizer";
    HEARTH_TRY(ExportTinygpt(model, source, path, options));
    return out.Commit();
  }
  return ExportTinygpt(model, source, path, options);
}

}  // namespace hearth
