// Adapters as llama.cpp's converter writes them.
#include <cmath>
#include <map>
#include <utility>

#include "formats/adapter/adapter_file.h"
#include "formats/describe.h"
#include "formats/gguf/gguf.h"

namespace hearth {
namespace {

Error Unsupported(const GgufFile& file, const std::string& what) {
  return {Code::kUnsupported, file.label() + ": " + what};
}

Result<void> CheckKind(const GgufFile& file) {
  HEARTH_ASSIGN(const std::string_view general,
                file.Text("general.type", "model"));
  if (general != "adapter") {
    return Unsupported(file, "this is not an adapter (general.type is " +
                                 Quoted(general) +
                                 "); a model is given as MODEL");
  }
  HEARTH_ASSIGN(const std::string_view type, file.Text("adapter.type"));
  if (type != "lora") {
    return Unsupported(file, "an adapter of type " + Quoted(type) +
                                 "; only lora is supported");
  }
  if (file.Has("adapter.alora.invocation_tokens")) {
    return Unsupported(
        file,
        "this adapter acts from certain tokens on only (aLoRA), which is not "
        "supported; get one that acts on the whole text");
  }
  return {};
}

}  // namespace

Result<AdapterFile> ParseGgufAdapter(ByteSpan bytes, const std::string& label) {
  HEARTH_ASSIGN(const GgufFile file, GgufFile::Parse(bytes, label));
  HEARTH_TRY(CheckKind(file));
  AdapterFile adapter;
  adapter.path = label;
  adapter.form = AdapterForm::kGguf;
  HEARTH_ASSIGN(const std::string_view architecture,
                file.Text("general.architecture"));
  adapter.architecture = architecture;
  // 0, or nothing: the factor is 1 whatever the rank.
  HEARTH_ASSIGN(const double alpha, file.Float("adapter.lora.alpha", 0));
  if (!std::isfinite(alpha)) {
    return {Code::kCorrupt, label + ": adapter.lora.alpha is not a number"};
  }
  constexpr std::string_view kDown = ".weight.lora_a", kUp = ".weight.lora_b";
  std::map<std::string, AdapterPair> pairs;
  for (const GgufTensor& t : file.tensors()) {
    const bool down = t.name.ends_with(kDown);
    if (!down && !t.name.ends_with(kUp)) {
      return Unsupported(file, "tensor " + Quoted(t.name) +
                                   " is no part of a low-rank pair; " +
                                   kMergeIt);
    }
    const std::string name(
        t.name.substr(0, t.name.size() - (down ? kDown : kUp).size()));
    HEARTH_ASSIGN(
        const AdapterMatrix matrix,
        MatrixOf({std::string(t.name), t.type, t.dtype, t.shape, t.bytes},
                 label));
    (down ? pairs[name].down : pairs[name].up) = matrix;
  }
  for (auto& [name, pair] : pairs) {
    pair.name = name;
    HEARTH_TRY(CheckPair(pair, label));
    if (alpha != 0) pair.factor = alpha / static_cast<double>(pair.up.n_in);
    adapter.pairs.push_back(std::move(pair));
  }
  if (adapter.pairs.empty()) {
    return {Code::kCorrupt, label + ": the adapter has no matrices"};
  }
  return adapter;
}

}  // namespace hearth
