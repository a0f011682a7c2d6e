// LoRA adapters, in both forms, beside a model of the shape that the seeds
// have. A PEFT directory is one input here: adapter_config.json, a zero byte,
// adapter_model.safetensors.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "formats/adapter/apply_adapters.h"
#include "formats/huggingface/python_json.h"

namespace {

constexpr int kWidth = 4, kMlpWidth = 6;

// A model without weights' bytes: nobody multiplies with them here.
hearth::LoadedModel ModelOf(const char* file_format) {
  static const std::byte kWeight{};
  const auto linear = [](std::int64_t n_out, std::int64_t n_in) {
    hearth::Linear linear;
    linear.w.n_out = n_out;
    linear.w.n_in = n_in;
    linear.w.data = &kWeight;
    return linear;
  };
  hearth::LoadedModel model;
  model.file_format = file_format;
  hearth::ModelConfig& c = model.config;
  c.architecture = "llama";
  c.n_layers = 1;
  c.d_model = kWidth;
  c.n_heads = 1;
  c.n_kv_heads = 1;
  c.head_dim = kWidth;
  c.d_mlp = kMlpWidth;
  c.vocab_size = 3;
  c.rope.rotary_dim = kWidth;
  c.rope.interleaved = model.file_format.front() == 'G';
  hearth::LayerWeights layer;
  for (hearth::Linear* l : {&layer.q, &layer.k, &layer.v, &layer.o}) {
    *l = linear(kWidth, kWidth);
  }
  layer.mlp.gate_up = linear(2 * kMlpWidth, kWidth);
  layer.mlp.down = linear(kWidth, kMlpWidth);
  model.weights.layers.push_back(std::move(layer));
  model.weights.head = linear(3, kWidth);
  return model;
}

unsigned Touch(const hearth::WeightMatrix& w) {
  const std::size_t n = static_cast<std::size_t>(w.n_out * w.n_in) *
                        (w.dtype == hearth::DType::kF32 ? 4 : 2);
  unsigned sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += std::to_integer<unsigned>(w.data[i]);
  }
  return sum;
}

void Apply(hearth::AdapterFile file, const char* file_format) {
  hearth::LoadedModel model = ModelOf(file_format);
  std::vector<hearth::AdapterToApply> adapters;
  adapters.push_back({std::move(file), 0.5f});
  if (!hearth::ApplyAdapters(std::move(adapters), model).ok()) return;
  volatile unsigned sink = 0;
  const hearth::Weights& weights = model.weights;
  const hearth::LayerWeights& layer = weights.layers[0];
  for (const hearth::Linear* linear :
       {&layer.q, &layer.k, &layer.v, &layer.o, &layer.mlp.gate_up,
        &layer.mlp.down, &weights.head}) {
    for (const hearth::LowRank& low_rank : linear->low_ranks) {
      sink = sink + Touch(low_rank.down) + Touch(low_rank.up);
      if (low_rank.first_row + low_rank.up.n_out > linear->w.n_out) {
        __builtin_trap();
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const hearth::ByteSpan bytes = std::as_bytes(std::span(data, size));
  for (const char* form : {"GGUF v3", "safetensors"}) {
    if (auto file = hearth::ParseGgufAdapter(bytes, "fuzz"); file.ok()) {
      Apply(std::move(*file), form);
    }
    const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
    if (end == bytes.end()) continue;
    const auto n = static_cast<std::size_t>(end - bytes.begin());
    const auto json =
        hearth::ParsePythonJson(hearth::AsText(bytes.first(n)), "fuzz");
    if (!json.ok()) continue;
    auto file = hearth::ParsePeftAdapter(*json, bytes.subspan(n + 1), "fuzz");
    if (file.ok()) Apply(std::move(*file), form);
  }
  return 0;
}
