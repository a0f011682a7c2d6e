// OLMo 3: OLMo 2 with windows in three of four layers. Where the rotation is
// scaled, it is so in the layers without a window alone. Its GGUF files call
// themselves olmo2.
#include "formats/families/all.h"
#include "formats/families/olmo2.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr int kPeriod = kOlmoWindowPeriod;
constexpr int kWindow = 4096;
constexpr double kBase = 5e5;

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(HfAttentionBias(in));
  HEARTH_TRY(HfRopesByKind(in, kBase));
  HEARTH_ASSIGN(const int window, HfSize(in, "sliding_window", kWindow));
  HEARTH_TRY(HfWindows(in, window,
                       [](int layer) { return (layer + 1) % kPeriod != 0; }));
  UseLocalRopeInWindows(in.config);
  return {};
}

}  // namespace

constinit const Family kOlmo3Family = {
    .architecture = "olmo3",
    .gguf_form = "olmo2",
    .hf_class = "Olmo3ForCausalLM",
    .hf_model_type = "olmo3",
    .hf_names = kOlmo2HfNames,
    .hf_rope_per_layer = true,
    .gguf_window_period = kPeriod,
    .describe = DescribeOlmo2,
    .finish_hf = FinishHf,
};

}  // namespace hearth
