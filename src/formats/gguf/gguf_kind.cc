#include "formats/gguf/gguf_kind.h"

#include <string>
#include <string_view>

#include "formats/describe.h"
#include "formats/gguf/gguf.h"

namespace hearth {
namespace {

struct Kind {
  std::string_view name;
  const char* message;
};

constexpr char kEmbeddings[] =
    "this model makes embeddings of texts and cannot continue them";
constexpr char kPictures[] = "this model makes images or films, not text";
constexpr char kTranslates[] =
    "this model has an encoder and a decoder, which is not supported";
constexpr char kAdapter[] =
    "this is a LoRA adapter, not a model; give the model that it changes, and "
    "this file as an adapter of it";
constexpr char kProjector[] =
    "this is a vision projector (mmproj), a part of a model that sees images; "
    "give the file of the text model";

// general.type, where it is not "model".
constexpr Kind kTypes[] = {
    {"adapter", kAdapter},
    {"mmproj", kProjector},
    {"imatrix",
     "this is an importance matrix, which guides quantising; give the model"},
    {"vocab", "this is a vocabulary without weights; give the model's file"},
    {"controlvector", "this is a control vector, not a model"},
};

constexpr Kind kArchitectures[] = {
    {"clip", kProjector},
    {"bert", kEmbeddings},
    {"modern-bert", kEmbeddings},
    {"neo-bert", kEmbeddings},
    {"eurobert", kEmbeddings},
    {"nomic-bert", kEmbeddings},
    {"nomic-bert-moe", kEmbeddings},
    {"jina-bert-v2", kEmbeddings},
    {"jina-bert-v3", kEmbeddings},
    {"gemma-embedding", kEmbeddings},
    {"llama-embed", kEmbeddings},
    {"t5encoder", kEmbeddings},
    {"t5", kTranslates},
    {"whisper", "this model turns speech into text, which is not supported"},
    {"wavtokenizer-dec",
     "this is the voice of a speech model, not a language model"},
    {"flux", kPictures},
    {"sd1", kPictures},
    {"sd3", kPictures},
    {"sdxl", kPictures},
    {"aura", kPictures},
    {"wan", kPictures},
    {"ltxv", kPictures},
    {"hyvid", kPictures},
    {"hidream", kPictures},
    {"lumina2", kPictures},
    {"qwen_image", kPictures},
};

template <std::size_t N>
const char* MessageOf(const Kind (&kinds)[N], std::string_view name) {
  for (const Kind& kind : kinds) {
    if (kind.name == name) return kind.message;
  }
  return nullptr;
}

}  // namespace

Result<void> RefuseOtherGguf(const GgufFile& file) {
  const auto refused = [&](const char* message) {
    return Error{Code::kUnsupported, file.label() + ": " + message};
  };
  HEARTH_ASSIGN(const std::string_view type, file.Text("general.type", ""));
  if (const char* message = MessageOf(kTypes, type)) return refused(message);
  if (file.Has("adapter.type")) return refused(kAdapter);
  HEARTH_ASSIGN(const std::string_view architecture,
                file.Text("general.architecture", ""));
  if (const char* message = MessageOf(kArchitectures, architecture)) {
    return refused(message);
  }
  // 0 is written for "none".
  HEARTH_ASSIGN(const std::int64_t pooling,
                file.Int(std::string(architecture) + ".pooling_type", 0));
  if (pooling != 0) return refused(kEmbeddings);
  if (file.tensors().empty()) {
    return refused(file.Has("tokenizer.ggml.tokens")
                       ? "this is a vocabulary without weights; give the "
                         "model's file"
                       : "the file has no tensors; download it again");
  }
  return {};
}

}  // namespace hearth
