#include "text/tokenizer.h"

#include <algorithm>

namespace hearth {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  std::string_view kind() const override { return "bytes"; }

  Result<std::vector<std::int32_t>> Encode(std::string_view text,
                                           EncodeOptions) const override {
    std::vector<std::int32_t> ids(text.size());
    std::transform(text.begin(), text.end(), ids.begin(),
                   [](char c) { return static_cast<unsigned char>(c); });
    return ids;
  }

  std::int32_t vocab_size() const override { return 256; }
  std::optional<std::int32_t> bos_id() const override { return std::nullopt; }
  std::optional<std::int32_t> eos_id() const override { return std::nullopt; }
  std::span<const std::int32_t> end_ids() const override { return ends_; }
  void AddEnds(std::span<const std::int32_t> ids) override {
    for (const std::int32_t id : ids) {
      if (id >= 0 && id < 256) ends_.push_back(id);
    }
    std::sort(ends_.begin(), ends_.end());
  }
  bool IsSpecial(std::int32_t) const override { return false; }

  std::string Piece(std::int32_t id) const override { return TokenBytes(id); }
  std::optional<std::int32_t> FindPiece(std::string_view piece) const override {
    if (piece.size() != 1) return std::nullopt;
    return static_cast<unsigned char>(piece[0]);
  }

  void AppendBytes(std::int32_t id, bool, std::string& out) const override {
    if (id >= 0 && id < 256) {
      out.push_back(static_cast<char>(static_cast<unsigned char>(id)));
    }
  }

  Digest Fingerprint() const override {
    return Sha256().Field("hearth tokenizer: bytes 1").Finish();
  }

 private:
  std::vector<std::int32_t> ends_;
};

}  // namespace

bool Tokenizer::IsEnd(std::int32_t id) const {
  const auto ids = end_ids();
  return std::binary_search(ids.begin(), ids.end(), id);
}

std::string Tokenizer::TokenBytes(std::int32_t id) const {
  std::string out;
  AppendBytes(id, /*at_start=*/false, out);
  return out;
}

std::string Tokenizer::Decode(std::span<const std::int32_t> ids,
                              bool skip_special) const {
  std::string bytes;
  bool at_start = true;
  for (const std::int32_t id : ids) {
    if (skip_special && IsSpecial(id)) continue;
    AppendBytes(id, at_start, bytes);
    at_start = false;
  }
  return IsValidUtf8(bytes) ? bytes : ReplaceInvalidUtf8(bytes);
}

std::string StreamDecoder::Push(std::int32_t id) {
  if (skip_special_ && tokenizer_->IsSpecial(id)) return {};
  bytes_.clear();
  tokenizer_->AppendBytes(id, at_start_, bytes_);
  at_start_ = false;
  return stream_.Push(bytes_);
}

std::unique_ptr<Tokenizer> MakeByteTokenizer() {
  return std::make_unique<ByteTokenizer>();
}

}  // namespace hearth
