#include "formats/loader.h"

#include <filesystem>
#include <utility>

#include "formats/gguf/gguf_model.h"
#include "formats/huggingface/huggingface.h"
#include "formats/tinygpt/tinygpt.h"
#include "kernels/kernels.h"

namespace hearth {
namespace {

constexpr char kExpected[] =
    "; a model is a GGUF file, a .tinygpt file or a Hugging Face directory";

bool StartsWith(ByteSpan bytes, std::string_view magic) {
  return AsText(bytes).substr(0, magic.size()) == magic;
}

// llama2.c checkpoints have no magic: seven small integers, of which the model
// width is a multiple of the head count.
bool LooksLikeLlama2c(ByteSpan bytes) {
  ByteReader reader(bytes);
  std::int32_t fields[7];
  for (std::int32_t& field : fields) field = reader.Read<std::int32_t>();
  if (!reader.ok()) return false;
  const auto [dim, hidden, layers, heads, kv_heads, vocab, context] = fields;
  return dim > 0 && dim <= 1 << 16 && hidden > 0 && hidden <= 1 << 18 &&
         layers > 0 && layers <= 512 && heads > 0 && dim % heads == 0 &&
         kv_heads > 0 && kv_heads <= heads && vocab != 0 &&
         vocab > -(1 << 20) && vocab < 1 << 20 && context > 0 &&
         context <= 1 << 22;
}

// What a file that is no model seems to be, for the message.
std::string Guess(ByteSpan bytes) {
  if (bytes.empty()) return "the file is empty";
  if (StartsWith(bytes, "PK\x03\x04") || StartsWith(bytes, "\x80\x02")) {
    return "this is a PyTorch checkpoint, which can run code when read and is "
           "not supported; save it as safetensors";
  }
  if (bytes.size() > 9 && bytes[8] == std::byte{'{'}) {
    return "this is a lone safetensors file; give the directory that holds it "
           "with its config.json";
  }
  if (StartsWith(bytes, "24ka") || LooksLikeLlama2c(bytes)) {
    return "this is a llama2.c checkpoint; convert it to GGUF";
  }
  return "not a model file";
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Result<LoadedModel> LoadFile(const std::string& path) {
  HEARTH_ASSIGN(MappedFile file, MappedFile::Open(path));
  file.AdviseHugePages();
  const ByteSpan bytes = file.bytes();
  Result<LoadedModel> model =
      StartsWith(bytes, "GGUF") ? LoadGguf(bytes, path)
      : StartsWith(bytes, "TGPT")
          ? LoadTinygpt(bytes, path, FolderOf(path))
          : Error{Code::kUnsupported, path + ": " + Guess(bytes) + kExpected};
  if (model.ok()) model->files.push_back(std::move(file));
  return model;
}

}  // namespace

Result<LoadedModel> LoadModel(const std::string& path) {
  HEARTH_TRY(CheckIsaChoice());
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return LoadHuggingFace(path);
  }
  return LoadFile(path);
}

Result<LoadedModel> LoadTinygptFromMemory(ByteSpan bytes,
                                          const std::string& label) {
  HEARTH_TRY(CheckIsaChoice());
  return LoadTinygpt(bytes, label);
}

}  // namespace hearth
