#include <unordered_set>
#include <utility>

#include "base/json.h"
#include "formats/describe.h"
#include "formats/narrow.h"
#include "formats/tinygpt/tinygpt.h"

namespace hearth {
namespace {

// A tree of JSON takes some twenty times its text; headers are far smaller.
constexpr std::uint32_t kHeaderBytesMax = 16u << 20;

class HeaderReader {
 public:
  explicit HeaderReader(std::string label) : label_(std::move(label)) {}

  Result<TinygptHeader> Run(ByteSpan bytes);

 private:
  Error Corrupt(const std::string& what) const {
    return {Code::kCorrupt, label_ + ": " + what};
  }
  Error Unsupported(const std::string& what) const {
    return {Code::kUnsupported, label_ + ": " + what};
  }

  Result<int> ToInt(Result<std::int64_t> value, const char* key) const {
    return NarrowToSize(value, label_, "member " + Quoted(key));
  }
  Result<void> ReadConfig(const Json& config);
  Result<void> RefuseOtherArithmetic(const Json& config) const;
  Result<void> ReadLayout(const Json& root);
  Result<void> ReadManifest(const Json& root);
  Result<TinygptEntry> ReadEntry(const Json& item) const;
  Result<void> ReadEos(const Json& root);

  const std::string label_;
  TinygptHeader header_;
};

Result<void> HeaderReader::ReadConfig(const Json& config) {
  HEARTH_TRY(RefuseOtherArithmetic(config));
  TinygptHeader& h = header_;
  const struct {
    const char* key;
    int* value;
  } needed[] = {{"layers", &h.layers},
                {"dModel", &h.d_model},
                {"heads", &h.heads},
                {"ctx", &h.context}};
  for (const auto& field : needed) {
    HEARTH_ASSIGN(*field.value,
                  ToInt(JsonInt(config, field.key, label_), field.key));
  }
  HEARTH_ASSIGN(
      h.n_kv_heads,
      ToInt(JsonInt(config, "nKvHeads", label_, h.heads), "nKvHeads"));
  HEARTH_ASSIGN(h.d_mlp, ToInt(JsonInt(config, "dMlp", label_,
                                       std::int64_t{4} * h.d_model),
                               "dMlp"));
  HEARTH_ASSIGN(h.vocab_size,
                ToInt(JsonInt(config, "vocabSize", label_, kTinygptBytesVocab),
                      "vocabSize"));
  HEARTH_ASSIGN(h.window, ToInt(JsonInt(config, "slidingWindow", label_, 0),
                                "slidingWindow"));
  HEARTH_ASSIGN(h.yoco, JsonBool(config, "useYOCO", label_, false));
  HEARTH_ASSIGN(h.tokenizer_source,
                JsonText(config, "tokenizerSource", label_, ""));
  return {};
}

// What the training program can switch on and hearth has no code for. The seed
// of each flag's danger: with it, the same weights compute something else.
Result<void> HeaderReader::RefuseOtherArithmetic(const Json& config) const {
  static constexpr const char* kFlags[] = {
      "useALiBi", "useMoD", "useDifferentialAttention", "useDeepNorm",
      "useEmbeddingRMSNorm"};
  for (const char* flag : kFlags) {
    HEARTH_ASSIGN(const bool on, JsonBool(config, flag, label_, false));
    if (on) {
      return Unsupported(std::string(flag) +
                         " changes the forward pass and is not supported");
    }
  }
  // Numbers; the second is the largest value that means "off".
  static constexpr std::pair<const char*, std::int64_t> kNumbers[] = {
      {"nExperts", 1}, {"qatBits", 0}};
  for (const auto& [key, off] : kNumbers) {
    HEARTH_ASSIGN(const std::int64_t value, JsonInt(config, key, label_, off));
    if (value > off) {
      return Unsupported(std::string(key) + " = " + std::to_string(value) +
                         " changes the forward pass and is not supported");
    }
  }
  return {};
}

Result<void> HeaderReader::ReadLayout(const Json& root) {
  HEARTH_ASSIGN(const std::string dtype,
                JsonText(root, "weightDtype", label_, "fp32"));
  HEARTH_ASSIGN(const bool optimizer,
                JsonBool(root, "includesOptimizerState", label_, true));
  if (dtype == "fp32") {
    header_.layout = optimizer ? BodyLayout::kTrainingF32 : BodyLayout::kF32;
    return {};
  }
  if (dtype == "fp16") {
    header_.layout = BodyLayout::kF16;
    return {};
  }
  if (dtype != "int4") {
    return Unsupported("weightDtype " + Quoted(dtype) +
                       " is not supported; supported are fp32, fp16 and int4");
  }
  header_.layout = BodyLayout::kInt4;
  HEARTH_ASSIGN(const std::int64_t block,
                JsonInt(root, "int4BlockSize", label_));
  if (block != kTinygptInt4Block) {
    return Unsupported("int4BlockSize " + std::to_string(block) +
                       " is not supported, only 64");
  }
  HEARTH_ASSIGN(const std::int64_t scales,
                JsonInt(root, "int4ScalesBytes", label_));
  HEARTH_ASSIGN(const std::int64_t packed,
                JsonInt(root, "int4PackedBytes", label_));
  if (scales < 0 || packed < 0) return Corrupt("negative int4 sizes");
  header_.int4_scales_bytes = static_cast<std::uint64_t>(scales);
  header_.int4_packed_bytes = static_cast<std::uint64_t>(packed);
  return {};
}

Result<TinygptEntry> HeaderReader::ReadEntry(const Json& item) const {
  TinygptEntry entry;
  HEARTH_ASSIGN(entry.name, JsonText(item, "name", label_));
  const std::string what = "manifest entry " + Quoted(entry.name);
  const Json* shape = JsonFind(item, "shape");
  if (shape == nullptr || !shape->is_array()) {
    return Corrupt(what + " has no shape");
  }
  std::optional<std::uint64_t> n = 1;
  for (const Json& d : *shape) {
    if (!d.is_number_unsigned()) return Corrupt(what + " has a strange shape");
    entry.shape.push_back(d.get<std::uint64_t>());
    if (n.has_value()) n = CheckedMul(*n, entry.shape.back());
  }
  // 2^56 numbers: every later product with a number's size fits 64 bits.
  if (!n.has_value() || *n == 0 || *n >> 56 != 0) {
    return Corrupt(what + " has the impossible shape " +
                   ShapeText(entry.shape));
  }
  entry.n_elements = *n;
  if (JsonFind(item, "floatOffset") != nullptr) {
    HEARTH_ASSIGN(const std::int64_t offset,
                  JsonInt(item, "floatOffset", label_));
    if (offset < 0) return Corrupt(what + " has a negative floatOffset");
    entry.float_offset = static_cast<std::uint64_t>(offset);
  }
  return entry;
}

Result<void> HeaderReader::ReadManifest(const Json& root) {
  const Json* manifest = JsonFind(root, "manifest");
  if (manifest == nullptr || !manifest->is_array()) {
    return Corrupt("the header has no manifest of tensors");
  }
  for (const Json& item : *manifest) {
    HEARTH_ASSIGN(TinygptEntry entry, ReadEntry(item));
    header_.manifest.push_back(std::move(entry));
  }
  return {};
}

// hearth's own key: the byte, or the bytes, that end a text.
Result<void> HeaderReader::ReadEos(const Json& root) {
  HEARTH_ASSIGN(const std::int64_t eos, JsonInt(root, "eosByte", label_, -1));
  if (eos < -1 || eos >= header_.vocab_size) {
    return Corrupt("member \"eosByte\" is not in the vocabulary");
  }
  if (eos >= 0) header_.eos_bytes.push_back(static_cast<std::int32_t>(eos));
  return {};
}

Result<TinygptHeader> HeaderReader::Run(ByteSpan bytes) {
  ByteReader reader(bytes);
  if (AsText(reader.Take(4)) != "TGPT") return Corrupt("not a .tinygpt file");
  const auto version = reader.Read<std::uint32_t>();
  const auto header_bytes = reader.Read<std::uint32_t>();
  if (!reader.ok()) return Corrupt(".tinygpt header is cut off");
  if (version == 1) {
    return Unsupported(
        ".tinygpt version 1 does not say where its tensors are; "
        "save the model again with a newer program");
  }
  if (version != 2) {
    return Unsupported(".tinygpt version " + std::to_string(version) +
                       " is not read, only 2");
  }
  if (header_bytes > kHeaderBytesMax) {
    return Corrupt(".tinygpt header claims " + std::to_string(header_bytes) +
                   " bytes, more than 16 MiB");
  }
  const ByteSpan text = reader.Take(header_bytes);
  reader.Read<std::int32_t>();  // the training step
  if (!reader.ok()) return Corrupt(".tinygpt header is cut off");
  header_.body = reader.Take(reader.remaining());

  HEARTH_ASSIGN(const Json root, ParseJson(AsText(text), label_));
  const Json* config = JsonFind(root, "config");
  if (config == nullptr || !config->is_object()) {
    return Corrupt("the header has no \"config\" object");
  }
  HEARTH_TRY(ReadConfig(*config));
  HEARTH_TRY(ReadLayout(root));
  HEARTH_TRY(ReadManifest(root));
  HEARTH_TRY(ReadEos(root));
  return std::move(header_);
}

}  // namespace

Result<TinygptHeader> ParseTinygptHeader(ByteSpan bytes,
                                         const std::string& label) {
  return HeaderReader(label).Run(bytes);
}

}  // namespace hearth
