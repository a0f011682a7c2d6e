// The administrative calls that check, delete and move files.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "store/admin/store_admin.h"
#include "store/directory/layout.h"
#include "store/directory/prompt_survey.h"
#include "store/format/block_image.h"
#include "store/format/bundle.h"
#include "store/format/token_reader.h"

namespace hearth {
namespace {

// A block's image without the spec that made it: everything but the layout.
Result<BlockHeader> CheckWholeImage(ByteSpan image, const std::string& what) {
  HEARTH_ASSIGN(BlockHeader header,
                ParseBlockHeader(image, image.size(), what));
  if (ChildId(header.parent_id, header.tokens) != header.block_id) {
    return {Code::kCorrupt, what + ": its id is not that of its tokens"};
  }
  HEARTH_TRY(CheckSections(image, header, what));
  return header;
}

Result<void> CheckImageOf(const PromptHeader& prompt, std::size_t index,
                          ByteSpan image, const std::string& what) {
  HEARTH_ASSIGN(const BlockHeader header, CheckWholeImage(image, what));
  return CheckEntry(prompt, index, header, what);
}

Result<void> CheckFile(const Directory& folder, const CatalogFile& file) {
  HEARTH_ASSIGN(const FileBytes stored, ReadStored(folder, file.name));
  const std::string what = folder.PathOf(file.name);
  if (file.kind == FileKind::kBlock) {
    HEARTH_ASSIGN(const BlockHeader header,
                  CheckWholeImage(stored.bytes, what));
    if (header.block_id != file.id) {
      return {Code::kCorrupt, what + ": another block than its name says"};
    }
    return {};
  }
  HEARTH_TRY(ParsePromptFile(stored.bytes, what));
  return {};
}

// As its header says; zero when it cannot be read.
Digest ModelOfBlock(const Directory& root, const CatalogFile& file) {
  Digest model;
  const auto folder = OpenFolder(root, file.folder);
  if (!folder.ok()) return model;
  const auto stored = ReadStored(*folder, file.name);
  if (!stored.ok() ||
      stored->bytes.size() < kBlockModelIdAt + model.bytes.size()) {
    return model;
  }
  std::memcpy(model.bytes.data(), stored->bytes.data() + kBlockModelIdAt,
              model.bytes.size());
  return model;
}

}  // namespace

Result<VerifyReport> StoreAdmin::Verify(bool set_aside) const {
  const auto start = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const Catalog catalog, ScanStore(root));
  VerifyReport report;
  for (const CatalogFile& file : catalog.files) {
    if (file.kind != FileKind::kBlock && file.kind != FileKind::kManifest) {
      continue;
    }
    const auto folder = OpenFolder(root, file.folder);
    if (!folder.ok()) continue;
    const auto checked = CheckFile(*folder, file);
    ++report.n_files;
    report.bytes += file.bytes;
    if (checked.ok() || checked.error().code == Code::kNotFound) continue;
    if (checked.error().code == Code::kIncompatible) {
      ++report.n_locked;
      continue;
    }
    Defect defect{folder->PathOf(file.name), checked.error().message, false};
    if (set_aside && checked.error().code == Code::kCorrupt) {
      const auto quarantine = root.MakeSub(kQuarantineName);
      defect.set_aside = quarantine.ok() &&
                         folder->MoveTo(file.name, *quarantine, file.name).ok();
    }
    report.defects.push_back(std::move(defect));
  }
  HEARTH_ASSIGN(const auto survey, Survey(root));
  for (const SurveyedPrompt& prompt : survey->prompts) {
    const PromptInfo info = InfoOf(*survey, prompt, root);
    if (info.n_tokens_usable < info.n_tokens) {
      report.incomplete.push_back(prompt.stem);
    }
  }
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return report;
}

Result<GcReport> StoreAdmin::Gc(const SpaceLimits& limits) const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(SpaceLock lock, SpaceLock::Take(root));
  HEARTH_ASSIGN(const auto survey, Survey(root));
  const std::uint64_t before = survey->catalog.total_bytes;
  GcReport report;
  const auto remove = [&](const std::string& folder, const std::string& name) {
    const auto opened = OpenFolder(root, folder);
    if (opened.ok() && opened->Remove(name).ok()) ++report.n_files;
  };
  std::unordered_set<std::string> kept = survey->locked;
  for (const SurveyedPrompt& prompt : survey->prompts) {
    const PromptInfo info = InfoOf(*survey, prompt, root);
    if (info.n_tokens_usable == info.n_tokens || info.pinned) {
      kept.insert(prompt.stem);
    } else {
      remove(kPromptsName, prompt.file->name);
    }
  }
  for (const CatalogFile& file : survey->catalog.files) {
    const bool leftover =
        file.kind == FileKind::kQuarantined ||
        (file.kind == FileKind::kTemporary && file.stale) ||
        (file.kind == FileKind::kSidecar &&
         kept.count(StemOf(file.name, kSidecarSuffix)) == 0) ||
        (file.kind == FileKind::kPin && kept.count(file.name) == 0);
    if (leftover) remove(file.folder, file.name);
  }
  HEARTH_TRY(lock.MakeRoom(root, 0, limits, {}, /*recount=*/true));
  HEARTH_ASSIGN(const Catalog after, ScanStore(root));
  report.bytes_left = after.total_bytes;
  report.bytes = before > after.total_bytes ? before - after.total_bytes : 0;
  report.n_files = std::max<std::uint64_t>(
      report.n_files, survey->catalog.files.size() > after.files.size()
                          ? survey->catalog.files.size() - after.files.size()
                          : 0);
  return report;
}

Result<GcReport> StoreAdmin::Wipe(const WipeFilter& filter) const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const SpaceLock lock, SpaceLock::Take(root));
  HEARTH_ASSIGN(const auto survey, Survey(root));
  const bool all = filter.model_name.empty();
  if (!all && !survey->locked.empty()) {
    return {Code::kIncompatible,
            "some stored prompts are encrypted, so it is not known whose they "
            "are; give their key with --cache-key-file"};
  }
  std::unordered_set<Digest> doomed, kept;
  std::unordered_set<std::string> stems;
  std::unordered_set<Digest> models;  // whose loose blocks go too
  for (const SurveyedPrompt& prompt : survey->prompts) {
    const bool dies = all || prompt.header.model_name == filter.model_name;
    if (dies) stems.insert(prompt.stem);
    if (dies) models.insert(prompt.header.model_id);
    for (const PromptEntry& entry : prompt.header.entries) {
      (dies ? doomed : kept).insert(entry.id);
    }
  }
  GcReport report;
  Result<void> failed;
  for (const CatalogFile& file : survey->catalog.files) {
    bool dies = false;
    switch (file.kind) {
      case FileKind::kBlock:
        dies = all || (doomed.count(file.id) > 0 && kept.count(file.id) == 0) ||
               (survey->n_sharing.count(file.id) == 0 &&
                models.count(ModelOfBlock(root, file)) > 0);
        break;
      case FileKind::kManifest:
        dies = all || stems.count(StemOf(file.name, kPromptSuffix)) > 0;
        break;
      case FileKind::kSidecar:
        dies = all || stems.count(StemOf(file.name, kSidecarSuffix)) > 0;
        break;
      case FileKind::kPin:
        dies = all || stems.count(file.name) > 0;
        break;
      // Damaged files cannot be told apart by model, and may hold its KV.
      case FileKind::kQuarantined:
        dies = true;
        break;
      case FileKind::kMemo:
        dies = all;
        break;
      case FileKind::kTemporary:
        dies = file.stale;
        break;
      case FileKind::kRootFile:
      case FileKind::kUnknown:
        break;
    }
    if (!dies) {
      report.bytes_left += file.bytes;
      continue;
    }
    const auto folder = OpenFolder(root, file.folder);
    const Result<void> removed =
        folder.ok() ? folder->Remove(file.name) : Result<void>(folder.error());
    if (removed.ok()) {
      ++report.n_files;
      report.bytes += file.bytes;
    } else if (removed.error().code != Code::kNotFound) {
      failed = removed;
    }
  }
  // The user asked for the data to be gone: say so when some is not.
  if (!failed.ok()) return failed.error();
  return report;
}

Result<void> StoreAdmin::Export(const std::string& name,
                                const std::string& path) const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const std::string stem, Resolve(root, name));
  HEARTH_ASSIGN(const Directory prompts, root.Sub(kPromptsName));
  const std::string name_of_manifest = stem + std::string(kPromptSuffix);
  HEARTH_ASSIGN(const FileBytes manifest,
                ReadStored(prompts, name_of_manifest));
  HEARTH_ASSIGN(
      PromptHeader header,
      ParsePromptFile(manifest.bytes, prompts.PathOf(name_of_manifest)));
  std::vector<FileBytes> files;  // keep the images alive
  std::vector<PromptImage> images;
  for (std::size_t i = header.entries.size(); i-- > 0;) {
    const Digest id = header.entries[i].id;
    HEARTH_ASSIGN(
        const Directory folder,
        OpenFolder(root, std::string(kBlocksName) + "/" + BlockFolder(id)));
    HEARTH_ASSIGN(FileBytes file, ReadStored(folder, BlockName(id)));
    HEARTH_ASSIGN(const BlockHeader image,
                  ParseBlockHeader(file.bytes, file.bytes.size(), stem));
    i = DropCovered(header, i, image.first_token);
    HEARTH_TRY(CheckImageOf(header, i, file.bytes, stem));
    const std::size_t n = StatedHeaderBytes(file.bytes);
    images.push_back(
        {{file.bytes.begin(), file.bytes.begin() + n}, file.bytes.subspan(n)});
    files.push_back(std::move(file));
  }
  std::reverse(images.begin(), images.end());
  HEARTH_ASSIGN(const PromptFileParts file,
                EncodePromptFile(std::move(header), std::move(images)));
  return WriteBundle(path, file.parts, *ops_, vault_.get());
}

Result<std::string> StoreAdmin::Import(const std::string& path,
                                       const SpaceLimits& limits) const {
  HEARTH_ASSIGN(const FileBytes bundle, ReadStored(path, vault_.get()));
  HEARTH_ASSIGN(PromptHeader header, ParsePromptFile(bundle.bytes, path));
  if (!header.holds_images()) {
    return {Code::kInvalidArgument,
            path + ": a manifest, which does not hold its blocks"};
  }
  Protection protection;
  for (std::size_t i = 0; i < header.entries.size(); ++i) {
    const PromptEntry& entry = header.entries[i];
    HEARTH_TRY(CheckImageOf(
        header, i, bundle.bytes.subspan(entry.image_at, entry.image_bytes),
        path));
    protection.blocks.insert(entry.id);
  }
  const std::string stem =
      PromptStem(header.model_name, header.entries.back().id);
  protection.stems.insert(stem);

  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const Directory blocks, root.MakeSub(kBlocksName));
  std::vector<PromptEntry> missing;  // last first
  for (std::size_t i = header.entries.size(); i-- > 0;) {
    PromptEntry& entry = header.entries[i];
    const auto stored = ReadBlockHeader(blocks, entry.id);
    const std::uint64_t first = header.FirstOf(i) - header.BlockStart(i);
    if (stored.ok() &&
        (stored->first_token == 0 ||
         static_cast<std::uint64_t>(stored->first_token) == first)) {
      i = DropCovered(header, i, stored->first_token);
    } else {
      missing.push_back(entry);
    }
  }
  std::reverse(missing.begin(), missing.end());
  for (PromptEntry& entry : header.entries) {
    entry.image_at = entry.image_bytes = 0;
  }
  for (const PromptEntry& entry : missing) {
    const ByteSpan image =
        bundle.bytes.subspan(entry.image_at, entry.image_bytes);
    HEARTH_ASSIGN(const Directory folder,
                  blocks.MakeSub(BlockFolder(entry.id)));
    std::vector<std::byte> sealed;
    HEARTH_ASSIGN(const auto parts,
                  ForDisk(vault_.get(), std::span(&image, 1), sealed));
    std::vector<PendingFile> file;
    {
      HEARTH_ASSIGN(SpaceLock lock, SpaceLock::Take(root));
      HEARTH_TRY(lock.MakeRoom(root, parts[0].size(), limits, protection));
      HEARTH_ASSIGN(PendingFile made,
                    folder.Create(BlockName(entry.id), parts[0].size()));
      file.push_back(std::move(made));
    }
    HEARTH_TRY(file[0].Fill(parts));
    HEARTH_TRY(file[0].Flush());
    HEARTH_TRY(file[0].Publish());
    HEARTH_TRY(folder.Sync());
  }
  HEARTH_ASSIGN(const PromptFileParts file,
                EncodePromptFile(std::move(header), {}));
  std::vector<std::byte> sealed;
  HEARTH_ASSIGN(const auto parts, ForDisk(vault_.get(), file.parts, sealed));
  std::uint64_t size = 0;
  for (const ByteSpan part : parts) size += part.size();
  HEARTH_ASSIGN(const Directory prompts, root.MakeSub(kPromptsName));
  HEARTH_ASSIGN(SpaceLock lock, SpaceLock::Take(root));
  HEARTH_TRY(lock.MakeRoom(root, size, limits, protection));
  HEARTH_TRY(prompts.Write(stem + std::string(kPromptSuffix), parts));
  return stem;
}

}  // namespace hearth
