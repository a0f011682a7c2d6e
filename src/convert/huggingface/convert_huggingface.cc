#include "convert/huggingface/convert_huggingface.h"

#include "base/file.h"
#include "convert/huggingface/convert_tokenizer_json.h"
#include "convert/huggingface/hf_export.h"

namespace hearth {

Result<void> WriteHuggingFace(const LoadedModel& model,
                              const std::string& directory) {
  HEARTH_ASSIGN(const HfDescription description, DescribeForHf(model));
  HEARTH_TRY(MakeDirectories(directory));
  HEARTH_TRY(WriteTokenizerFiles(model, directory));
  HEARTH_TRY(
      WriteHfTensors(model, description, directory + "/model.safetensors"));
  // Last: a directory without it is no model.
  return WriteJsonFile(directory + "/config.json", description.json);
}

}  // namespace hearth
