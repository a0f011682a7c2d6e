#include "engine/text/tokenizer_cache.h"

#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "engine/text/tokenizer_factory.h"
#include "store/directory/layout.h"
#include "text/bpe/compiled_vocab.h"

namespace hearth {
namespace {

constexpr std::uint64_t kTokenizerBytesMax = std::uint64_t{1} << 30;

// Nothing when a file cannot be looked at, or there is none (bytes).
std::optional<Digest> SourceOf(const LoadedModel& model) {
  std::vector<FileStamp> stamps;
  if (model.tokenizer_source == TokenizerSource::kGguf) {
    for (const MappedFile& file : model.files) stamps.push_back(file.stamp());
  } else if (model.tokenizer_source == TokenizerSource::kDirectory) {
    const auto tokenizer = StatFile(model.tokenizer_dir + "/tokenizer.json");
    if (!tokenizer.ok()) return std::nullopt;
    stamps.push_back(*tokenizer);
    const auto config =
        StatFile(model.tokenizer_dir + "/tokenizer_config.json");
    stamps.push_back(config.ok() ? *config : FileStamp{});
  }
  if (stamps.empty()) return std::nullopt;
  Sha256 hash;
  hash.Field("hearth tokenizer source");
  for (const FileStamp& s : stamps) {
    hash.Field(s.device).Field(s.inode).Field(s.size);
    hash.Field(static_cast<std::uint64_t>(s.mtime_ns));
    hash.Field(static_cast<std::uint64_t>(s.ctime_ns));
  }
  return hash.Finish();
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> MakeTokenizerCached(
    const LoadedModel& model, const SideFiles* side_files) {
  const auto source = side_files == nullptr ? std::nullopt : SourceOf(model);
  if (!source.has_value()) return MakeTokenizer(model);
  const std::string name = ToHex(*source, 16) + std::string(kTokenizerSuffix);
  if (auto file = side_files->Find(name, kTokenizerBytesMax);
      file.has_value()) {
    auto compiled = FromCompiled(file->bytes, *source, name, file->owner);
    if (compiled.ok()) {
      (*compiled)->AddEnds(model.eos_ids);
      return compiled;
    }
  }
  HEARTH_ASSIGN(auto tokenizer, ReadTokenizer(model));
  const auto compiled = CompileTokenizer(*tokenizer, *source);
  // It spares milliseconds: no stored prompt goes for it.
  if (compiled.ok()) {
    (void)side_files->Write(name, *compiled, Durability::kDurable,
                            Room::kSpare);
  }
  // Not compiled: the stamps do not cover the files that name them.
  tokenizer->AddEnds(model.eos_ids);
  return tokenizer;
}

}  // namespace hearth
