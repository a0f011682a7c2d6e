#include "formats/tinygpt/tinygpt.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "formats/assemble/assemble.h"
#include "formats/describe.h"
#include "formats/tensors/tensor_names.h"
#include "formats/tensors/tensor_set.h"

namespace hearth {
namespace {

struct Place {
  std::uint64_t begin, end;  // bytes in the body
  std::size_t entry;
};

class BodyReader {
 public:
  BodyReader(const TinygptHeader& header, const std::string& label,
             TensorSet& tensors)
      : header_(header), label_(label), tensors_(tensors) {}

  // Places every entry of the manifest and adds it to the set.
  Result<void> Run() {
    switch (header_.layout) {
      case BodyLayout::kTrainingF32:
        return AddTriplets();
      case BodyLayout::kF32:
        return AddFlat(DType::kF32, "fp32");
      case BodyLayout::kF16:
        return AddFlat(DType::kF16, "fp16");
      case BodyLayout::kInt4:
        return AddInt4();
    }
    return {};
  }

 private:
  Error Corrupt(const std::string& what) const {
    return {Code::kCorrupt, label_ + ": " + what};
  }

  // A body longer or shorter than the manifest implies was laid out in another
  // way than the header says: nothing in it can be trusted.
  Result<void> CheckLength(std::optional<std::uint64_t> implied) const {
    if (implied == header_.body.size()) return {};
    return Corrupt("the body has " + std::to_string(header_.body.size()) +
                   " bytes, but the manifest implies " +
                   (implied ? std::to_string(*implied) : "more than fit"));
  }

  Result<void> Add(const TinygptEntry& entry, const char* type, DType dtype,
                   ByteSpan bytes, ByteSpan scales) {
    return tensors_.Add({entry.name, type, dtype, entry.shape, bytes, scales});
  }

  Result<void> AddTriplets() {
    std::optional<std::uint64_t> total = 0;
    for (const TinygptEntry& e : header_.manifest) {
      if (total) total = CheckedAdd(*total, 12 * e.n_elements);
    }
    HEARTH_TRY(CheckLength(total));
    std::uint64_t begin = 0;
    for (const TinygptEntry& e : header_.manifest) {
      HEARTH_TRY(Add(e, "fp32", DType::kF32,
                     header_.body.subspan(begin, 4 * e.n_elements), {}));
      begin += 12 * e.n_elements;
    }
    return {};
  }

  Result<void> AddFlat(DType dtype, const char* type) {
    const std::uint64_t size = dtype == DType::kF16 ? 2 : 4;
    std::vector<Place> places;
    std::uint64_t last = 0;
    for (const TinygptEntry& e : header_.manifest) {
      if (!e.float_offset.has_value()) {
        return Corrupt("manifest entry " + Quoted(e.name) +
                       " has no floatOffset");
      }
      const auto begin = CheckedMul(*e.float_offset, size);
      const auto end =
          begin ? CheckedAdd(*begin, e.n_elements * size) : std::nullopt;
      if (!end.has_value() || *end > header_.body.size()) {
        return Corrupt("manifest entry " + Quoted(e.name) +
                       " ends beyond the file: the file is cut off");
      }
      HEARTH_TRY(
          Add(e, type, dtype, header_.body.subspan(*begin, *end - *begin), {}));
      places.push_back({*begin, *end, places.size()});
      last = std::max(last, *end);
    }
    HEARTH_TRY(CheckLength(last));
    std::sort(places.begin(), places.end(),
              [](const Place& a, const Place& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < places.size(); ++i) {
      if (places[i - 1].end > places[i].begin) {
        return Corrupt(
            "manifest entries " +
            Quoted(header_.manifest[places[i - 1].entry].name) + " and " +
            Quoted(header_.manifest[places[i].entry].name) + " overlap");
      }
    }
    return {};
  }

  Result<void> AddInt4() {
    std::optional<std::uint64_t> n_blocks = 0;
    for (const TinygptEntry& e : header_.manifest) {
      if (n_blocks) n_blocks = CheckedAdd(*n_blocks, BlocksOf(e));
    }
    if (!n_blocks || header_.int4_scales_bytes != *n_blocks * 2 ||
        header_.int4_packed_bytes != *n_blocks * 32) {
      return Corrupt(
          "int4ScalesBytes and int4PackedBytes do not agree with "
          "the manifest");
    }
    HEARTH_TRY(CheckLength(*n_blocks * 34));
    ByteReader scales(header_.body.first(header_.int4_scales_bytes));
    ByteReader packed(header_.body.subspan(header_.int4_scales_bytes));
    for (const TinygptEntry& e : header_.manifest) {
      const std::uint64_t n = BlocksOf(e);
      HEARTH_TRY(Add(e, "int4", DType::kTgInt4, packed.Take(n * 32),
                     scales.Take(n * 2)));
    }
    return {};
  }

  static std::uint64_t BlocksOf(const TinygptEntry& e) {
    return (e.n_elements + kTinygptInt4Block - 1) / kTinygptInt4Block;
  }

  const TinygptHeader& header_;
  const std::string& label_;
  TensorSet& tensors_;
};

const char* FormatName(BodyLayout layout) {
  switch (layout) {
    case BodyLayout::kTrainingF32:
      return ".tinygpt v2 fp32 (training)";
    case BodyLayout::kF32:
      return ".tinygpt v2 fp32";
    case BodyLayout::kF16:
      return ".tinygpt v2 fp16";
    case BodyLayout::kInt4:
      return ".tinygpt v2 int4";
  }
  return "";
}

// The training program writes every layer's own attention, and in its YOCO
// models the second half has none that is used; what is used there it leaves
// out, so that such a file cannot be run by anyone.
Result<void> CheckCrossAttention(const ModelConfig& config,
                                 const std::string& label, TensorSet& tensors) {
  for (int i = config.n_kv_layers(); i < config.n_layers; ++i) {
    const std::string name = WeightName(kTinygptNames, Role::kCrossQ, i);
    if (!tensors.Has(name)) {
      return {Code::kUnsupported,
              label + ": useYOCO without " + name +
                  ": the program that wrote the file does not save the second "
                  "half's attention, so its result cannot be had again"};
    }
    for (const Role role : {Role::kQ, Role::kK, Role::kV, Role::kO}) {
      tensors.MarkUsed(WeightName(kTinygptNames, role, i));
      tensors.MarkUsed(BiasName(kTinygptNames, role, i));
    }
  }
  return {};
}

// The header may name a tokenizer directory as its writer saw it: taken as it
// is, or relative to the model file.
void FindTokenizer(const TinygptHeader& h, const std::string& directory,
                   LoadedModel& model) {
  model.tokenizer_source = TokenizerSource::kBytes;
  if (h.tokenizer_source.empty() || h.vocab_size <= kTinygptBytesVocab) return;
  model.tokenizer_source = TokenizerSource::kDirectory;
  if (directory.empty()) return;
  const auto candidate = std::filesystem::path(directory) / h.tokenizer_source;
  std::error_code ignored;
  if (std::filesystem::exists(candidate / "tokenizer.json", ignored)) {
    model.tokenizer_dir = candidate.string();
  }
}

}  // namespace

ModelConfig TinygptConfig(const TinygptHeader& h) {
  ModelConfig c;
  c.architecture = "gpt";
  c.n_layers = h.layers;
  c.d_model = h.d_model;
  c.n_heads = h.heads;
  c.n_kv_heads = h.n_kv_heads;
  c.head_dim = h.heads > 0 ? h.d_model / h.heads : 0;
  c.d_mlp = h.d_mlp;
  c.vocab_size = h.vocab_size;
  c.context_length = h.context;
  c.norm = NormKind::kLayerNorm;
  c.norm_eps = 1e-5f;
  c.mlp = MlpKind::kGeluErf;
  c.learned_positions = true;
  c.tied_head = true;
  c.attention_scale =
      static_cast<float>(1.0 / std::sqrt(std::max(1, c.head_dim)));
  if (h.window > 0) {
    c.layer_kinds.assign(static_cast<std::size_t>(std::max(0, c.n_layers)),
                         LayerKind{.window = h.window});
  }
  // The second half attends to the middle layer (YOCO).
  if (h.yoco) c.kv_anchor = std::max(0, c.n_layers / 2 - 1);
  c.name = NameFromShape(c);
  return c;
}

Result<LoadedModel> LoadTinygpt(ByteSpan bytes, const std::string& label,
                                const std::string& directory) {
  HEARTH_ASSIGN(const TinygptHeader header, ParseTinygptHeader(bytes, label));
  LoadedModel model;
  model.config = TinygptConfig(header);
  HEARTH_TRY(CheckConfig(model.config, label));
  if (header.d_model % header.heads != 0) {
    return {Code::kCorrupt,
            label + ": dModel " + std::to_string(header.d_model) +
                " is no multiple of heads " + std::to_string(header.heads)};
  }
  TensorSet tensors(label, WeightLayout::kInOut);
  HEARTH_TRY(BodyReader(header, label, tensors).Run());
  if (tensors.Has(WeightName(kTinygptNames, Role::kHead))) {
    return {Code::kUnsupported,
            label +
                ": a head of its own (lm_head.weight) is not supported, "
                "only one tied to the embedding"};
  }
  HEARTH_TRY(CheckCrossAttention(model.config, label, tensors));
  WeightPlan plan;
  plan.norm_bias = plan.qkv_bias = plan.o_bias = plan.mlp_bias = true;
  HEARTH_ASSIGN(model.weights,
                AssembleWeights(model.config, plan, kTinygptNames, tensors));
  model.path = label;
  model.file_format = FormatName(header.layout);
  model.tensors = tensors.Records();
  model.n_parameters = tensors.CountParameters();
  model.eos_ids = header.eos_bytes;
  FindTokenizer(header, directory, model);
  return model;
}

}  // namespace hearth
