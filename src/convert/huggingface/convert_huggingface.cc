#include "convert/huggingface/convert_huggingface.h"

#include <string>

#include "base/output.h"
#include "convert/huggingface/convert_tokenizer_json.h"
#include "convert/huggingface/hf_export.h"

namespace hearth {
namespace {

// Files that loaders read beside a model's weights. Left from another model
// they would be taken for this one's.
bool BelongsToAModel(const std::string& name) {
  for (const char* known :
       {"config.json", "generation_config.json", "tokenizer.json",
        "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
        "vocab.json", "merges.txt", "vocab.txt", "tokenizer.model",
        "spiece.model", "chat_template.jinja", "chat_template.json",
        "preprocessor_config.json", "processor_config.json",
        "quantize_config.json", "quant_config.json"}) {
    if (name == known) return true;
  }
  return name.ends_with(".safetensors") ||
         name.ends_with(".safetensors.index.json") ||
         (name.starts_with("pytorch_model") &&
          (name.ends_with(".bin") || name.ends_with(".bin.index.json")));
}

}  // namespace

Result<void> WriteHuggingFace(const LoadedModel& model,
                              const std::string& directory,
                              const WriteOptions& options) {
  HEARTH_ASSIGN(const HfDescription description, DescribeForHf(model));
  HEARTH_ASSIGN(
      OutputDirectory out,
      OutputDirectory::Create(directory, options.replace, BelongsToAModel));
  HEARTH_TRY(WriteTokenizerFiles(model, out.path()));
  HEARTH_TRY(WriteHfTensors(model, description,
                            out.path() + "/model.safetensors", options));
  HEARTH_TRY(WriteJsonFile(out.path() + "/config.json", description.json));
  return out.Commit();
}

}  // namespace hearth
