#include "engine/text/tokenizer_cache.h"

#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "engine/text/tokenizer_factory.h"
#include "text/bpe/compiled_vocab.h"

namespace hearth {
namespace {

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
    const LoadedModel& model, const std::string& cache_dir) {
  const auto source = cache_dir.empty() ? std::nullopt : SourceOf(model);
  if (!source.has_value()) return MakeTokenizer(model);
  const std::string directory = cache_dir + "/models";
  const std::string path = directory + "/" + ToHex(*source, 16) + ".tokenizer";
  if (auto file = MappedFile::Open(path, /*follow_links=*/false); file.ok()) {
    const auto backing = std::make_shared<MappedFile>(std::move(*file));
    auto compiled = FromCompiled(backing->bytes(), *source, path, backing);
    if (compiled.ok()) {
      (*compiled)->AddEnds(model.eos_ids);
      return compiled;
    }
  }
  HEARTH_ASSIGN(auto tokenizer, ReadTokenizer(model));
  const auto compiled = CompileTokenizer(*tokenizer, *source);
  if (compiled.ok() && MakeDirectories(directory).ok()) {
    (void)WriteFileAtomically(path, ByteSpan(*compiled));
  }
  // Not compiled: the stamps do not cover the files that name them.
  tokenizer->AddEnds(model.eos_ids);
  return tokenizer;
}

}  // namespace hearth
