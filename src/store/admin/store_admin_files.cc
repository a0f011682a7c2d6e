// The administrative calls that check files and take them in and out. Those
// that delete: store_admin_delete.cc.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/files/system_error.h"
#include "store/admin/store_admin.h"
#include "store/budget/budgeted_writer.h"
#include "store/bundle/bundle_file.h"
#include "store/directory/layout.h"
#include "store/directory/prompt_survey.h"
#include "store/format/block_image.h"
#include "store/format/state_image.h"
#include "store/format/token_reader.h"

namespace hearth {
namespace {

// A block's image without the spec that made it: everything but the layout.
Result<BlockHeader> CheckWholeImage(ByteSpan image, const std::string& what,
                                    ImageKind kind = ImageKind::kBlock) {
  HEARTH_ASSIGN(BlockHeader header,
                ParseImageHeader(kind, image, image.size(), what));
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

// kIncompatible for a MAC of another key than `remote_key`, under which nothing
// can be said.
Result<void> CheckMacOfFetched(ByteSpan image, const BlockHeader& header,
                               const Vault& remote_key,
                               const std::string& what) {
  const std::optional<Digest> key = MacKeyOf(image, header);
  if (!key.has_value()) return {};  // made here, for nobody else
  if (*key != remote_key.key_id()) {
    return {Code::kIncompatible, what + ": its MAC is of another key"};
  }
  return CheckBlockMac(image, header, remote_key, what);
}

Result<void> CheckStateOf(const PromptHeader& prompt, std::size_t index,
                          ByteSpan image, const std::string& what) {
  HEARTH_ASSIGN(const BlockHeader header,
                CheckWholeImage(image, what, ImageKind::kState));
  return CheckStateEntry(prompt, index, header, what);
}

Result<void> CheckStateFile(const Directory& folder, const CatalogFile& file,
                            const Vault* remote_key) {
  const std::string what = folder.PathOf(file.name);
  HEARTH_TRY(ReadStateHeader(folder, file.name));
  HEARTH_ASSIGN(const FileBytes stored,
                ReadStored(folder, file.name, kImageBytesMax));
  HEARTH_ASSIGN(const BlockHeader header,
                CheckWholeImage(stored.bytes, what, ImageKind::kState));
  if (header.block_id != file.id || header.position != file.position) {
    return {Code::kCorrupt, what + ": other states than its name says"};
  }
  if (remote_key == nullptr) return {};
  const std::optional<Digest> key = MacKeyOf(stored.bytes, header);
  if (!key.has_value()) return {};
  if (*key != remote_key->key_id()) {
    return {Code::kIncompatible, what + ": its MAC is of another key"};
  }
  return CheckStateMac(stored.bytes, header, *remote_key, what);
}

// `remote_key` null: MACs are not looked at.
Result<void> CheckFile(const Directory& folder, const CatalogFile& file,
                       const Vault* remote_key) {
  const std::string what = folder.PathOf(file.name);
  if (!file.is_regular) return WrongKindError(what);
  if (file.kind == FileKind::kManifest) {
    HEARTH_TRY(ReadManifest(folder, file.name));
    return {};
  }
  if (file.kind == FileKind::kState) {
    return CheckStateFile(folder, file, remote_key);
  }
  // Before all of it is read: what it says it is, and how long.
  HEARTH_TRY(ReadBlockHeader(folder, file.name));
  HEARTH_ASSIGN(const FileBytes stored,
                ReadStored(folder, file.name, kImageBytesMax));
  HEARTH_ASSIGN(const BlockHeader header, CheckWholeImage(stored.bytes, what));
  if (file.kind == FileKind::kUnknown || header.block_id != file.id) {
    return {Code::kCorrupt, what + ": another block than its name says"};
  }
  return remote_key == nullptr
             ? Result<void>()
             : CheckMacOfFetched(stored.bytes, header, *remote_key, what);
}

// The prompt's states that are stored, as images of a bundle. Those that are
// not there any more, or not right, are named no longer: the prompt can do
// without.
Result<void> AddStates(const Directory& root, PromptHeader& header,
                       std::vector<PromptImage>& images,
                       std::vector<FileBytes>& files) {
  std::vector<PromptEntry> kept;
  for (std::size_t i = 0; i < header.states.size(); ++i) {
    const StorePath path = StatePath(header.states[i].id, header.states[i].end);
    auto folder = OpenFolder(root, path.folder);
    auto file = folder.ok() ? ReadStored(*folder, path.name, kImageBytesMax)
                            : Result<FileBytes>(folder.error());
    if (!file.ok() ||
        !CheckStateOf(header, i, file->bytes, folder->PathOf(path.name)).ok()) {
      continue;
    }
    const std::size_t n = StatedHeaderBytes(file->bytes);
    images.push_back({{file->bytes.begin(), file->bytes.begin() + n},
                      file->bytes.subspan(n)});
    files.push_back(std::move(*file));
    kept.push_back(header.states[i]);
  }
  if (header.carries_states && kept.empty()) {
    return {
        Code::kNotFound,
        "no states of this prompt are stored any more, so its blocks are of "
        "no use and it cannot be exported"};
  }
  header.states = std::move(kept);
  return {};
}

// Whether the file of such states is there, and right.
bool HasWholeState(const Directory& root, const PromptHeader& header,
                   std::size_t index) {
  const PromptEntry& state = header.states[index];
  const StorePath path = StatePath(state.id, state.end);
  const auto folder = OpenFolder(root, path.folder);
  if (!folder.ok() || !ReadStateHeader(*folder, path.name).ok()) return false;
  const auto file = ReadStored(*folder, path.name, kImageBytesMax);
  return file.ok() &&
         CheckStateOf(header, index, file->bytes, folder->PathOf(path.name))
             .ok();
}

// Whether Verify has something to say about it.
bool IsChecked(const CatalogFile& file) {
  if (file.kind == FileKind::kQuarantined) return false;
  if (!file.is_regular) return !file.folder.empty() || IsStoreFolder(file.name);
  // Of unknown ones those that may be blocks or states under another name.
  return file.kind == FileKind::kBlock || file.kind == FileKind::kState ||
         file.kind == FileKind::kManifest ||
         (file.kind == FileKind::kUnknown &&
          (file.folder.starts_with(kBlocksName) ||
           file.folder.starts_with(kStatesName) || IsStoreFolder(file.name)));
}

Result<Directory> FolderOf(const Directory& root, const CatalogFile& file) {
  return file.folder.empty() ? root.Again() : OpenFolder(root, file.folder);
}

// The header of a stored block all of whose bytes are right.
Result<BlockHeader> ReadWholeBlock(const Directory& root, const Digest& id) {
  const StorePath path = BlockPath(id);
  HEARTH_ASSIGN(const Directory folder, OpenFolder(root, path.folder));
  HEARTH_TRY(ReadBlockHeader(folder, path.name));
  HEARTH_ASSIGN(const FileBytes file,
                ReadStored(folder, path.name, kImageBytesMax));
  HEARTH_ASSIGN(BlockHeader header,
                CheckWholeImage(file.bytes, folder.PathOf(path.name)));
  if (header.block_id != id) {
    return {Code::kCorrupt, "another block than its name says"};
  }
  return header;
}

}  // namespace

Result<VerifyReport> StoreAdmin::Verify(bool set_aside, const Vault* remote_key,
                                        const VerifyProgress& progress) const {
  const auto start = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const Catalog catalog, ScanStore(root));
  std::uint64_t bytes_done = 0, bytes_all = 0;
  for (const CatalogFile& file : catalog.files) {
    if (IsChecked(file)) bytes_all += file.bytes;
  }
  VerifyReport report;
  for (const CatalogFile& file : catalog.files) {
    if (!IsChecked(file)) continue;
    if (progress) progress(bytes_done, bytes_all);
    bytes_done += file.bytes;
    const auto folder = FolderOf(root, file);
    if (!folder.ok()) continue;
    const auto checked = CheckFile(*folder, file, remote_key);
    if (file.kind != FileKind::kUnknown) {
      ++report.n_files;
      report.bytes += file.bytes;
    }
    if (checked.ok() || checked.error().code == Code::kNotFound) continue;
    if (checked.error().code == Code::kIncompatible) {
      ++report.n_locked;
      continue;
    }
    Defect defect{folder->PathOf(file.name), checked.error().message, false};
    const std::string said_already = defect.path + ": ";
    if (defect.reason.starts_with(said_already)) {
      defect.reason.erase(0, said_already.size());
    }
    if (set_aside && (checked.error().code == Code::kCorrupt ||
                      checked.error().code == Code::kInvalidArgument)) {
      defect.set_aside = SetAside(root, *folder, file.name);
    }
    report.defects.push_back(std::move(defect));
  }
  HEARTH_ASSIGN(const auto survey, Survey(root));
  for (const SurveyedPrompt& prompt : survey->prompts) {
    const PromptInfo info = InfoOf(*survey, prompt, root);
    if (!info.whole) {
      report.incomplete.push_back(prompt.stem);
    }
  }
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return report;
}

Result<void> StoreAdmin::Export(const std::string& name,
                                const std::string& path) const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const std::string stem, Resolve(root, name));
  HEARTH_ASSIGN(const Directory prompts, root.Sub(kPromptsName));
  HEARTH_ASSIGN(PromptHeader header,
                ReadManifest(prompts, ManifestPath(stem).name));
  std::vector<FileBytes> files;  // keep the images alive
  std::vector<PromptImage> images;
  for (std::size_t i = header.entries.size(); i-- > 0;) {
    const StorePath block = BlockPath(header.entries[i].id);
    auto folder = OpenFolder(root, block.folder);
    auto file = folder.ok() ? ReadStored(*folder, block.name, kImageBytesMax)
                            : Result<FileBytes>(folder.error());
    if (!file.ok() && file.error().code == Code::kNotFound) {
      return {Code::kNotFound,
              stem +
                  ": not all of its blocks are stored any more, so it cannot "
                  "be exported; a check of the whole store lists such prompts"};
    }
    if (!file.ok()) return file.error();
    const std::string what = folder->PathOf(block.name);
    HEARTH_ASSIGN(const BlockHeader image,
                  ParseBlockHeader(file->bytes, file->bytes.size(), what));
    i = DropCovered(header, i, image.first_token);
    HEARTH_TRY(CheckImageOf(header, i, file->bytes, what));
    const std::size_t n = StatedHeaderBytes(file->bytes);
    images.push_back({{file->bytes.begin(), file->bytes.begin() + n},
                      file->bytes.subspan(n)});
    files.push_back(std::move(*file));
  }
  std::reverse(images.begin(), images.end());
  HEARTH_TRY(AddStates(root, header, images, files));
  HEARTH_ASSIGN(const PromptFileParts file,
                EncodePromptFile(std::move(header), std::move(images)));
  return WriteBundle(path, file.parts, *ops_, vault_.get());
}

Result<std::string> StoreAdmin::Import(const std::string& path,
                                       const SpaceLimits& limits) const {
  HEARTH_ASSIGN(const OpenBundle bundle, ReadBundle(path, vault_.get()));
  PromptHeader header = bundle.header;
  Protection protection;
  for (std::size_t i = 0; i < header.entries.size(); ++i) {
    const PromptEntry& entry = header.entries[i];
    HEARTH_TRY(CheckImageOf(
        header, i, bundle.file.bytes.subspan(entry.image_at, entry.image_bytes),
        path));
    protection.blocks.insert(entry.id);
  }
  for (std::size_t i = 0; i < header.states.size(); ++i) {
    const PromptEntry& entry = header.states[i];
    HEARTH_TRY(CheckStateOf(
        header, i, bundle.file.bytes.subspan(entry.image_at, entry.image_bytes),
        path));
    protection.states.insert(entry.id);
  }
  const std::string stem =
      PromptStem(header.model_name, header.entries.back().id);
  protection.stems.insert(stem);

  HEARTH_ASSIGN(Directory opened, Root());
  const BudgetedWriter writer(std::move(opened), limits);
  std::vector<PromptEntry> missing;  // last first
  for (std::size_t i = header.entries.size(); i-- > 0;) {
    const std::uint64_t first = header.FirstOf(i) - header.BlockStart(i);
    const auto stored = ReadWholeBlock(writer.root(), header.entries[i].id);
    if (stored.ok() &&
        (stored->first_token == 0 ||
         static_cast<std::uint64_t>(stored->first_token) == first)) {
      i = DropCovered(header, i, stored->first_token);
    } else {
      missing.push_back(header.entries[i]);
    }
  }
  std::reverse(missing.begin(), missing.end());
  const auto write = [&](const StorePath& to,
                         const PromptEntry& entry) -> Result<void> {
    const ByteSpan image =
        bundle.file.bytes.subspan(entry.image_at, entry.image_bytes);
    std::vector<std::byte> sealed;
    HEARTH_ASSIGN(auto parts,
                  ForDisk(vault_.get(), std::span(&image, 1), sealed));
    const FileToWrite file{to, std::move(parts)};
    return writer.Write(std::span(&file, 1), protection);
  };
  for (const PromptEntry& entry : missing) {
    HEARTH_TRY(write(BlockPath(entry.id), entry));
  }
  for (std::size_t i = 0; i < header.states.size(); ++i) {
    const PromptEntry& entry = header.states[i];
    if (HasWholeState(writer.root(), header, i)) continue;
    HEARTH_TRY(write(StatePath(entry.id, entry.end), entry));
  }
  for (auto* entries : {&header.entries, &header.states}) {
    for (PromptEntry& entry : *entries) entry.image_at = entry.image_bytes = 0;
  }
  HEARTH_ASSIGN(const PromptFileParts file,
                EncodePromptFile(std::move(header), {}));
  std::vector<std::byte> sealed;
  HEARTH_ASSIGN(auto parts, ForDisk(vault_.get(), file.parts, sealed));
  const FileToWrite manifest{ManifestPath(stem), std::move(parts)};
  HEARTH_TRY(writer.Write(std::span(&manifest, 1), protection));
  return stem;
}

}  // namespace hearth
