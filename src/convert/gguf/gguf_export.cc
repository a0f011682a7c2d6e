#include "convert/gguf/gguf_export.h"

#include "convert/gguf/gguf_tensors.h"
#include "formats/families.h"

namespace hearth {

Result<const Family*> GgufFamilyOf(const LoadedModel& model) {
  const Family* family = FamilyNamed(model.config.architecture);
  const Family* in_gguf = family == nullptr ? nullptr
                          : family->gguf_architecture.empty()
                              ? FamilyNamed(family->gguf_form)
                              : family;
  if (in_gguf == nullptr) {
    // The nearest, gpt2, computes the tanh form of GELU.
    const bool from_scratch = model.config.architecture == "gpt";
    return {Code::kUnsupported,
            model.path + ": architecture " + model.config.architecture +
                " has no GGUF form" +
                (from_scratch ? ", since no family there has the exact GELU; "
                                "a Hugging Face directory can say it"
                              : "")};
  }
  return in_gguf;
}

Result<std::vector<GgufTensorSource>> GgufModelTensors(
    const LoadedModel& model) {
  HEARTH_ASSIGN(const Family* family, GgufFamilyOf(model));
  return GgufTensorList(model, *family).Run();
}

}  // namespace hearth
