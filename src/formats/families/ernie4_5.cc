// ERNIE 4.5, dense: llama whose rotary pairs are neighbours in every format.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

Result<void> FinishHf(const HfInput& in) {
  return HfRequire(in, "use_bias", false);
}

}  // namespace

constinit const Family kErnie45Family = {
    .architecture = "ernie4_5",
    .gguf_architecture = "ernie4_5",
    .hf_class = "Ernie4_5ForCausalLM",
    .hf_model_type = "ernie4_5",
    .gguf_interleaved = true,
    .hf_tied = true,
    .hf_head_dim = 128,
    .hf_interleaved = true,
    .finish_hf = FinishHf,
};

}  // namespace hearth
