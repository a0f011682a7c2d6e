#include "engine/describe.h"

#include <map>
#include <utility>

#include "engine/default_model.h"
#include "engine/kv_setup.h"
#include "engine/text/tokenizer_factory.h"
#include "formats/loader.h"

namespace hearth {
namespace {

constexpr const char* kDefaultModelLabel = "embedded default model";

}  // namespace

Result<LoadedModel> LoadAny(const std::string& path) {
  if (path.empty()) {
    return LoadModelFromMemory(DefaultModelBytes(), kDefaultModelLabel);
  }
  return LoadModel(path);
}

ModelInfo Describe(const LoadedModel& model) {
  const ModelConfig& c = model.config;
  ModelInfo info;
  // The label of the embedded model is no path.
  info.path = model.files.empty() ? "" : model.path;
  info.file_format = model.file_format;
  info.architecture = c.architecture;
  info.name = c.name;
  info.n_parameters = model.n_parameters;
  info.n_layers = c.n_layers;
  info.n_heads = c.n_heads;
  info.n_kv_heads = c.n_kv_heads;
  info.head_dim = c.head_dim;
  info.d_model = c.d_model;
  info.d_mlp = c.d_mlp;
  info.vocab_size = c.vocab_size;
  info.context_length = c.context_length;
  info.positions = c.learned_positions ? "learned" : "rope";
  std::map<std::string, std::uint64_t> types;
  for (const TensorRecord& tensor : model.tensors) {
    info.weight_bytes += tensor.bytes.size();
    ++types[tensor.type];
  }
  info.tensor_types.assign(types.begin(), types.end());
  for (int i = 0; i < kKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    info.kv_bytes_per_token.emplace_back(
        NameOf(format),
        SpecOf(c, format, format, kDefaultBlockTokens).bytes_per_token());
  }
  info.capabilities = CapabilitiesOf(c);
  for (const AppliedAdapter& adapter : model.adapters) {
    info.adapters.push_back({adapter.path, adapter.scale, adapter.n_matrices});
  }
  info.sampling = model.sampling;
  if (std::string text = TokenizerWarning(model); !text.empty()) {
    info.warnings.push_back(std::move(text));
  }
  return info;
}

Result<ModelInfo> InspectModel(const std::string& path) {
  HEARTH_ASSIGN(const LoadedModel model, LoadAny(path));
  ModelInfo info = Describe(model);
  // A model whose tokenizer is missing or refused can still be looked at.
  auto tokenizer = MakeTokenizer(model);
  info.tokenizer = tokenizer.ok()
                       ? MakeTextCodec(std::move(*tokenizer))->Describe()
                       : "none: " + tokenizer.error().message;
  return info;
}

Result<std::unique_ptr<TextCodec>> OpenTextCodec(const std::string& path) {
  if (path.ends_with(".json")) {
    HEARTH_ASSIGN(std::shared_ptr<const Tokenizer> tokenizer,
                  MakeTokenizerFromJsonFile(path));
    return MakeTextCodec(std::move(tokenizer));
  }
  HEARTH_ASSIGN(const LoadedModel model, LoadAny(path));
  HEARTH_ASSIGN(std::shared_ptr<const Tokenizer> tokenizer,
                MakeTokenizer(model));
  return MakeTextCodec(std::move(tokenizer));
}

}  // namespace hearth
