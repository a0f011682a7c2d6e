#include "convert/tinygpt/tinygpt_export.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/json.h"
#include "convert/linear_rows.h"
#include "convert/stream_writer.h"
#include "formats/tensors/tensor_names.h"
#include "formats/tinygpt/tinygpt.h"
#include "model/identity.h"
#include "tensor/half.h"

namespace hearth {
namespace {

constexpr std::size_t kBodyAlignment = 64;

TinygptHeader HeaderOf(const ModelConfig& c) {
  TinygptHeader h;
  h.layers = c.n_layers;
  h.d_model = c.d_model;
  h.heads = c.n_heads;
  h.n_kv_heads = c.n_kv_heads;
  h.d_mlp = c.d_mlp;
  h.context = c.context_length;
  h.vocab_size = c.vocab_size;
  h.window = c.KindOf(0).window;
  return h;
}

struct Entry {
  std::string name;
  std::vector<std::uint64_t> shape;
  DType type;  // of what read() gives when nothing else is asked for
  std::function<std::vector<std::byte>(DType as)> read;

  std::uint64_t n() const {
    std::uint64_t n = 1;
    for (const std::uint64_t d : shape) n *= d;
    return n;
  }
};

bool AllHalves(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float x) { return ToFloat(ToF16(x)) == x; });
}

std::vector<std::byte> AsType(const std::vector<float>& values, DType as) {
  std::vector<std::byte> bytes;
  for (const float x : values) {
    if (as == DType::kF16) {
      AppendLe(bytes, ToF16(x).bits);
    } else {
      AppendLe(bytes, x);
    }
  }
  return bytes;
}

// In the order of the training program's manifest.
class Manifest {
 public:
  explicit Manifest(const LoadedModel& model) : model_(model) {}

  std::vector<Entry> Run() {
    const Weights& w = model_.weights;
    const ModelConfig& c = model_.config;
    const auto u = [](int n) { return static_cast<std::uint64_t>(n); };
    embedding_.w = w.token_embedding;
    Matrix(WeightName(kTinygptNames, Role::kTokenEmbedding),
           WholeRows(embedding_), /*transposed=*/false);
    Floats(WeightName(kTinygptNames, Role::kPositionEmbedding),
           w.position_embedding, {u(c.context_length), u(c.d_model)});
    Norm(Role::kFinalNorm, 0, w.final_norm);
    for (std::size_t i = 0; i < w.layers.size(); ++i) {
      Layer(w.layers[i], static_cast<int>(i));
    }
    return std::move(out_);
  }

 private:
  void Floats(std::string name, const std::vector<float>& values,
              std::vector<std::uint64_t> shape) {
    out_.push_back({std::move(name), std::move(shape),
                    AllHalves(values) ? DType::kF16 : DType::kF32,
                    [&values](DType as) { return AsType(values, as); }});
  }
  void Norm(Role role, int layer, const NormWeights& norm) {
    Floats(WeightName(kTinygptNames, role, layer), norm.weight,
           {norm.weight.size()});
    Floats(BiasName(kTinygptNames, role, layer), norm.bias, {norm.bias.size()});
  }
  void Matrix(std::string name, LinearRows rows, bool transposed) {
    // The shape says [out, in] however the numbers lie.
    const std::vector<std::uint64_t> shape = {
        static_cast<std::uint64_t>(rows.n),
        static_cast<std::uint64_t>(rows.n_in())};
    const DType type = rows.type() == DType::kF16 ? DType::kF16 : DType::kF32;
    out_.push_back({std::move(name), shape, type,
                    [rows = std::move(rows), transposed](DType as) {
                      return rows.Read(transposed, as);
                    }});
  }
  void Layer(Role role, int layer, const LinearRows& rows) {
    Matrix(WeightName(kTinygptNames, role, layer), rows, /*transposed=*/true);
    std::vector<float> bias = rows.Bias();
    const DType type = AllHalves(bias) ? DType::kF16 : DType::kF32;
    const std::vector<std::uint64_t> shape = {bias.size()};
    out_.push_back(
        {BiasName(kTinygptNames, role, layer), shape, type,
         [bias = std::move(bias)](DType as) { return AsType(bias, as); }});
  }
  void Layer(const LayerWeights& w, int i) {
    const QkvRows qkv = RowsOfQkv(w, model_.config);
    Norm(Role::kAttentionNorm, i, w.attention_norm);
    Layer(Role::kQ, i, qkv.q);
    Layer(Role::kK, i, qkv.k);
    Layer(Role::kV, i, qkv.v);
    Layer(Role::kO, i, WholeRows(w.o));
    Norm(Role::kMlpNorm, i, w.mlp_norm);
    Layer(Role::kUp, i, WholeRows(w.mlp.up));
    Layer(Role::kDown, i, WholeRows(w.mlp.down));
  }

  const LoadedModel& model_;
  Linear embedding_;
  std::vector<Entry> out_;
};

std::string HeaderText(const LoadedModel& model,
                       const std::vector<Entry>& entries, DType type,
                       const std::string& tokenizer_source) {
  const ModelConfig& c = model.config;
  Json config = {{"layers", c.n_layers},     {"dModel", c.d_model},
                 {"ctx", c.context_length},  {"heads", c.n_heads},
                 {"nKvHeads", c.n_kv_heads}, {"dMlp", c.d_mlp},
                 {"vocabSize", c.vocab_size}};
  if (c.KindOf(0).window > 0) config["slidingWindow"] = c.KindOf(0).window;
  if (!tokenizer_source.empty()) config["tokenizerSource"] = tokenizer_source;
  Json manifest = Json::array();
  std::uint64_t offset = 0;
  for (const Entry& entry : entries) {
    manifest.push_back({{"name", entry.name},
                        {"shape", entry.shape},
                        {"floatOffset", offset}});
    offset += entry.n();
  }
  Json json = {{"config", std::move(config)},
               {"manifest", std::move(manifest)},
               {"weightDtype", type == DType::kF16 ? "fp16" : "fp32"},
               {"includesOptimizerState", false}};
  if (!model.eos_ids.empty()) json["eosByte"] = model.eos_ids[0];
  std::string text = json.dump();
  while ((16 + text.size()) % kBodyAlignment != 0) text += ' ';
  return text;
}

}  // namespace

Result<void> CheckFitsTinygpt(const LoadedModel& model) {
  const ModelConfig& c = model.config;
  const auto refuse = [&](const std::string& what) {
    return Error{Code::kUnsupported,
                 model.path + ": .tinygpt cannot say " + what +
                     " (it has layer norms, learned positions, the exact GELU, "
                     "biases everywhere and a tied head, nothing else)"};
  };
  if (c.n_heads * c.head_dim != c.d_model) return refuse("this head size");
  ModelConfig there = TinygptConfig(HeaderOf(c));
  const std::pair<const char*, bool> same[] = {
      {"RMS norms", c.norm == there.norm},
      {"rotary positions", c.learned_positions},
      {"this activation", c.mlp == there.mlp},
      {"a head of its own", c.tied_head},
      {"a norm epsilon other than 1e-5", c.norm_eps == there.norm_eps}};
  for (const auto& [what, equal] : same) {
    if (!equal) return refuse(what);
  }
  there.architecture = c.architecture;
  if (ModelId(c, {}) != ModelId(there, {})) return refuse("the forward pass");
  if (model.eos_ids.size() > 1) return refuse("more than one end token");
  for (const LayerWeights& w : model.weights.layers) {
    const bool qkv = w.qkv.empty() ? !w.q.bias.empty() && !w.k.bias.empty() &&
                                         !w.v.bias.empty()
                                   : !w.qkv.bias.empty();
    if (!qkv || w.o.bias.empty() || w.mlp.up.bias.empty() ||
        w.mlp.down.bias.empty() || w.attention_norm.bias.empty() ||
        w.mlp_norm.bias.empty()) {
      return refuse("layers without a bias");
    }
  }
  return {};
}

Result<void> ExportTinygpt(const LoadedModel& model,
                           const std::string& tokenizer_source,
                           const std::string& path,
                           const WriteOptions& options) {
  Manifest manifest(model);
  const std::vector<Entry> entries = manifest.Run();
  const bool halves =
      std::all_of(entries.begin(), entries.end(),
                  [](const Entry& e) { return e.type == DType::kF16; });
  const DType type = halves ? DType::kF16 : DType::kF32;
  const std::string header = HeaderText(model, entries, type, tokenizer_source);
  std::vector<std::byte> head;
  for (const char letter : {'T', 'G', 'P', 'T'}) AppendLe(head, letter);
  AppendLe(head, std::uint32_t{2});
  AppendLe(head, static_cast<std::uint32_t>(header.size()));
  std::uint64_t total = head.size() + header.size() + sizeof(std::int32_t);
  for (const Entry& entry : entries) {
    total += entry.n() * static_cast<std::uint64_t>(InfoOf(type).block_bytes);
  }
  std::vector<std::string> inputs;
  for (const MappedFile& in : model.files) inputs.push_back(in.path());
  HEARTH_ASSIGN(StreamWriter file,
                StreamWriter::Create(path, options, std::move(inputs), total));
  HEARTH_TRY(file.Append(head));
  HEARTH_TRY(file.Append(AsBytes(header)));
  const std::int32_t step = 0;
  HEARTH_TRY(file.Append(std::as_bytes(std::span(&step, 1))));
  for (const Entry& entry : entries) {
    HEARTH_TRY(file.Append(entry.read(type)));
  }
  return file.Commit();
}

}  // namespace hearth
