#include "formats/huggingface/huggingface_kind.h"

#include "formats/describe.h"
#include "formats/families/unread.h"

namespace hearth {
namespace {

struct Mark {
  std::string_view text;
  const char* what;
};

// Endings of tensor names that only one way of quantising has.
constexpr Mark kQuantisedEndings[] = {
    {".qweight", "are quantised by GPTQ or AWQ"},
    {".qzeros", "are quantised by GPTQ or AWQ"},
    {".SCB", "are quantised by bitsandbytes"},
    {".weight.absmax", "are quantised by bitsandbytes"},
    {".weight_packed", "are quantised by compressed-tensors"},
    {".weight_scale", "are quantised to 8 or 4 bits"},
    {".weight_scale_inv", "are quantised to FP8"},
    {".biases", "are quantised by MLX"},
};

constexpr Mark kMultimodalStarts[] = {
    {"language_model.", ""},
    {"model.language_model.", ""},
    {"vision_tower.", ""},
    {"model.vision_tower.", ""},
    {"vision_model.", ""},
    {"visual.", ""},
    {"model.visual.", ""},
    {"multi_modal_projector.", ""},
    {"model.multi_modal_projector.", ""},
};

constexpr Mark kClassEndings[] = {
    {"ForMaskedLM", "this model fills gaps in texts and cannot continue them"},
    {"ForSequenceClassification", "this model sorts texts and writes none"},
    {"ForTokenClassification", "this model sorts words and writes none"},
    {"ForSpeechSeq2Seq", "this model turns speech into text"},
    {"BertModel", "this model makes embeddings of texts, not text"},
    {"RobertaModel", "this model makes embeddings of texts, not text"},
    {"EncoderModel", "this model makes embeddings of texts, not text"},
    {"MPNetModel", "this model makes embeddings of texts, not text"},
    {"CLIPModel", "this model compares images and texts"},
};

}  // namespace

std::string OtherHfClassNote(const Json& json, std::string_view hf_class) {
  if (std::string unread = UnreadFamilyNote(hf_class); !unread.empty()) {
    return unread;
  }
  for (const Mark& mark : kClassEndings) {
    if (hf_class.ends_with(mark.text)) return mark.what;
  }
  if (JsonFind(json, "vision_config") != nullptr ||
      JsonFind(json, "audio_config") != nullptr) {
    return "this model sees images or hears besides; get its text part as GGUF";
  }
  if (const Json* both = JsonFind(json, "is_encoder_decoder");
      both != nullptr && *both == true) {
    return "this model has an encoder and a decoder";
  }
  return "";
}

Result<void> RefuseOtherHfTensors(const TensorSet& tensors) {
  for (const SourceTensor& tensor : tensors.tensors()) {
    for (const Mark& mark : kQuantisedEndings) {
      if (!tensor.name.ends_with(mark.text)) continue;
      return {Code::kUnsupported,
              tensors.label() + ": the weights " + mark.what + " (tensor " +
                  Quoted(tensor.name) +
                  "), which is not read; get the model unquantised or as GGUF"};
    }
    for (const Mark& mark : kMultimodalStarts) {
      if (!tensor.name.starts_with(mark.text)) continue;
      return {Code::kUnsupported,
              tensors.label() +
                  ": the text model is a part of a model that "
                  "sees images or hears besides (tensor " +
                  Quoted(tensor.name) +
                  "), which is not read; get its text part as GGUF"};
    }
  }
  return {};
}

}  // namespace hearth
