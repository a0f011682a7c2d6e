#include "formats/tinygpt/heads_file.h"

#include <filesystem>
#include <utility>

#include "base/json.h"
#include "formats/describe.h"

namespace hearth {
namespace {

constexpr std::uint32_t kHeaderBytesMax = 1u << 20;
constexpr std::int64_t kHeadsMax = 64;
constexpr std::int64_t kHiddenMax = 1 << 20;

class HeadsReader {
 public:
  HeadsReader(const std::string& label, const ModelConfig& base)
      : label_(label), base_(base) {}

  Result<DraftHeads> Run(ByteSpan bytes);

 private:
  Error Corrupt(const std::string& what) const {
    return {Code::kCorrupt, label_ + ": " + what};
  }
  Result<void> CheckBase(const Json& root) const;
  // The entries lie in the order in which the kind lists them.
  Result<void> Open(const Json& root, ByteSpan body);
  Result<ByteSpan> Next(const std::string& name,
                        std::vector<std::uint64_t> shape);
  Result<Linear> NextMatrix(const std::string& name, std::int64_t n_out,
                            std::int64_t n_in);
  Result<std::vector<float>> NextVector(const std::string& name,
                                        std::int64_t n);
  Result<void> ReadMedusa(std::int64_t n_heads, DraftHeads& heads);
  Result<void> ReadEagle(std::int64_t n_hidden, DraftHeads& heads);

  const std::string& label_;
  const ModelConfig& base_;
  const Json* entries_ = nullptr;
  std::size_t n_read_ = 0;
  ByteReader body_{ByteSpan{}};
};

Result<void> HeadsReader::CheckBase(const Json& root) const {
  const struct {
    const char* key;
    int wanted;
  } fields[] = {
      {"dModel", base_.d_model},      {"vocabSize", base_.vocab_size},
      {"baseLayers", base_.n_layers}, {"baseDModel", base_.d_model},
      {"baseHeads", base_.n_heads},   {"baseCtx", base_.context_length}};
  for (const auto& field : fields) {
    HEARTH_ASSIGN(const std::int64_t value, JsonInt(root, field.key, label_));
    if (value != field.wanted) {
      return {Code::kIncompatible,
              label_ + ": heads of another model: " + field.key + " is " +
                  std::to_string(value) + ", this model has " +
                  std::to_string(field.wanted)};
    }
  }
  return {};
}

Result<void> HeadsReader::Open(const Json& root, ByteSpan body) {
  entries_ = JsonFind(root, "entries");
  if (entries_ == nullptr || !entries_->is_array()) {
    return Corrupt("the header has no list \"entries\"");
  }
  body_ = ByteReader(body);
  return {};
}

Result<ByteSpan> HeadsReader::Next(const std::string& name,
                                   std::vector<std::uint64_t> shape) {
  if (n_read_ >= entries_->size()) return Corrupt("no entry " + Quoted(name));
  const Json& entry = (*entries_)[n_read_++];
  HEARTH_ASSIGN(const std::string found, JsonText(entry, "name", label_));
  if (found != name) {
    return Corrupt("entry " + Quoted(found) + " stands where " + Quoted(name) +
                   " belongs");
  }
  if (entry.value("shape", Json()) != Json(shape)) {
    return Corrupt("entry " + Quoted(name) + " is not of shape " +
                   ShapeText(shape));
  }
  std::uint64_t n = sizeof(float);
  for (const std::uint64_t d : shape) n *= d;  // each below 2^31, two at most
  const ByteSpan bytes = body_.Take(n);
  if (!body_.ok()) return Corrupt("entry " + Quoted(name) + " is cut off");
  return bytes;
}

Result<Linear> HeadsReader::NextMatrix(const std::string& name,
                                       std::int64_t n_out, std::int64_t n_in) {
  HEARTH_ASSIGN(const ByteSpan bytes,
                Next(name, {static_cast<std::uint64_t>(n_out),
                            static_cast<std::uint64_t>(n_in)}));
  Linear linear;
  linear.w = {.dtype = DType::kF32,
              .layout = WeightLayout::kOutIn,
              .n_out = n_out,
              .n_in = n_in,
              .data = bytes.data()};
  return linear;
}

Result<std::vector<float>> HeadsReader::NextVector(const std::string& name,
                                                   std::int64_t n) {
  HEARTH_ASSIGN(const ByteSpan bytes,
                Next(name, {static_cast<std::uint64_t>(n)}));
  std::vector<float> values(static_cast<std::size_t>(n));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Result<void> HeadsReader::ReadMedusa(std::int64_t n_heads, DraftHeads& heads) {
  const std::int64_t d = base_.d_model;
  for (std::int64_t k = 0; k < n_heads; ++k) {
    const std::string prefix = "heads." + std::to_string(k) + ".";
    MedusaHead head;
    HEARTH_ASSIGN(head.res, NextMatrix(prefix + "res.weight", d, d));
    HEARTH_ASSIGN(head.res.bias, NextVector(prefix + "res.bias", d));
    HEARTH_ASSIGN(head.out,
                  NextMatrix(prefix + "out.weight", base_.vocab_size, d));
    heads.medusa.push_back(std::move(head));
  }
  return {};
}

Result<void> HeadsReader::ReadEagle(std::int64_t n_hidden, DraftHeads& heads) {
  const std::int64_t d = base_.d_model;
  EagleHead& head = heads.eagle;
  HEARTH_ASSIGN(head.fc1, NextMatrix("fc1.weight", n_hidden, 2 * d));
  HEARTH_ASSIGN(head.fc2, NextMatrix("fc2.weight", d, n_hidden));
  HEARTH_ASSIGN(head.norm.weight, NextVector("norm.weight", d));
  HEARTH_ASSIGN(head.norm.bias, NextVector("norm.bias", d));
  HEARTH_ASSIGN(head.out, NextMatrix("out.weight", base_.vocab_size, d));
  return {};
}

Result<DraftHeads> HeadsReader::Run(ByteSpan bytes) {
  ByteReader reader(bytes);
  if (AsText(reader.Take(4)) != "TGMH") return Corrupt("not a .heads file");
  const auto version = reader.Read<std::uint32_t>();
  const auto header_bytes = reader.Read<std::uint32_t>();
  if (!reader.ok()) return Corrupt(".heads header is cut off");
  if (version != 1) {
    return {Code::kUnsupported, label_ + ": .heads version " +
                                    std::to_string(version) +
                                    " is not read, only 1"};
  }
  if (header_bytes > kHeaderBytesMax) {
    return Corrupt(".heads header claims " + std::to_string(header_bytes) +
                   " bytes, more than 1 MiB");
  }
  const ByteSpan header = reader.Take(header_bytes);
  if (!reader.ok()) return Corrupt(".heads header is cut off");
  HEARTH_ASSIGN(const Json root, ParseJson(AsText(header), label_));
  HEARTH_ASSIGN(const std::string kind, JsonText(root, "kind", label_));
  HEARTH_ASSIGN(const std::int64_t n_heads, JsonInt(root, "numHeads", label_));
  HEARTH_TRY(CheckBase(root));
  HEARTH_TRY(Open(root, reader.Take(reader.remaining())));
  DraftHeads heads;
  if (kind == "medusa") {
    if (n_heads < 1 || n_heads > kHeadsMax) {
      return Corrupt("numHeads is " + std::to_string(n_heads) +
                     ", not 1 to 64");
    }
    heads.kind = DraftHeadsKind::kMedusa;
    HEARTH_TRY(ReadMedusa(n_heads, heads));
  } else if (kind == "eagle") {
    HEARTH_ASSIGN(const std::int64_t n_hidden,
                  JsonInt(root, "hiddenDim", label_));
    if (n_hidden < 1 || n_hidden > kHiddenMax) {
      return Corrupt("hiddenDim is " + std::to_string(n_hidden) +
                     ", not 1 to 1048576");
    }
    heads.kind = DraftHeadsKind::kEagle;
    HEARTH_TRY(ReadEagle(n_hidden, heads));
  } else {
    return {Code::kUnsupported, label_ + ": heads of kind " + Quoted(kind) +
                                    " are not supported, only \"medusa\" and "
                                    "\"eagle\""};
  }
  if (n_read_ != entries_->size() || body_.remaining() != 0) {
    return Corrupt("entries or bytes beyond what a file of kind " +
                   Quoted(kind) + " holds");
  }
  return heads;
}

}  // namespace

bool IsDraftHeadsFile(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const auto file = MappedFile::Open(path);
  return file.ok() && AsText(file->bytes()).starts_with("TGMH");
}

Result<DraftHeads> ParseDraftHeads(ByteSpan bytes, const std::string& label,
                                   const ModelConfig& base) {
  return HeadsReader(label, base).Run(bytes);
}

Result<DraftHeads> LoadDraftHeads(const std::string& path,
                                  const ModelConfig& base) {
  HEARTH_ASSIGN(MappedFile file, MappedFile::Open(path));
  HEARTH_ASSIGN(DraftHeads heads, ParseDraftHeads(file.bytes(), path, base));
  heads.file = std::move(file);
  return heads;
}

}  // namespace hearth
