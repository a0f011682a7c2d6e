// The administrative calls that delete.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/files/temporary_name.h"
#include "store/admin/store_admin.h"
#include "store/directory/layout.h"
#include "store/directory/prompt_survey.h"
#include "store/format/prompt_file.h"
#include "store/format/token_reader.h"

namespace hearth {
namespace {

// Deletes, and keeps account of it.
class Deleter {
 public:
  // Fine when it is gone already. A folder that forbids it is opened to its
  // owner first.
  void Remove(const Directory& folder, const std::string& name) {
    const auto entry = folder.Stat(name);
    auto removed = folder.Remove(name);
    if (!removed.ok() && removed.error().code == Code::kIo) {
      folder.OpenToOwner();
      removed = folder.Remove(name);
    }
    if (removed.ok()) {
      ++report.n_files;
      if (entry.ok() && entry->is_file) report.bytes += entry->size;
    } else if (removed.error().code != Code::kNotFound) {
      report.left.push_back(removed.error().message);
    }
  }

  // All that is inside, folders of blocks left empty. `depth` guards against
  // what never ends.
  void Empty(const Directory& folder, int depth = 0) {
    auto entries = folder.List();
    if (!entries.ok()) {
      report.left.push_back(entries.error().message);
      return;
    }
    for (const DirectoryEntry& entry : *entries) {
      if (!entry.is_directory) {
        Remove(folder, entry.name);
        continue;
      }
      if (depth > 8) {
        report.left.push_back(folder.PathOf(entry.name) + ": too deep");
        continue;
      }
      if (auto inside = OpenAnyway(folder, entry.name); inside.ok()) {
        Empty(*inside, depth + 1);
      } else {
        report.left.push_back(inside.error().message);
      }
      // A writer may have a folder of blocks open.
      if (entry.name.size() != 2) (void)folder.RemoveSub(entry.name);
    }
  }

  GcReport report;

 private:
  static Result<Directory> OpenAnyway(const Directory& folder,
                                      const std::string& name) {
    auto inside = folder.Sub(name);
    if (inside.ok() || inside.error().code != Code::kIo) return inside;
    folder.OpenToOwner(name);
    return folder.Sub(name);
  }
};

// Of a block or states, as the header says; zero when it cannot be read.
Digest ModelOf(const Directory& root, const CatalogFile& file) {
  const auto folder = OpenFolder(root, file.folder);
  if (!folder.ok()) return {};
  auto header = ReadBlockHeader(*folder, file.name);
  if (!header.ok()) header = ReadStateHeader(*folder, file.name);
  return header.ok() ? header->model_id : Digest{};
}

bool BeginsAsOurs(const Directory& root, const std::string& name) {
  const auto start = root.ReadStart(name, kImageAlign);
  if (!start.ok()) return false;
  const std::string_view text = AsText(*start);
  return LooksLikePromptFile(*start) || LooksSealed(*start) ||
         text.starts_with(std::string_view(kBlockMagic.data(), 8)) ||
         text.starts_with(std::string_view(kStateMagic.data(), 8));
}

std::uint64_t BytesIn(const Directory& root) {
  const auto catalog = ScanStore(root);
  return catalog.ok() ? catalog->total_bytes : 0;
}

}  // namespace

// Names are looked for and deleted without the lock, which no reader and no
// other deletion needs; only the sum is kept under it.
Result<GcReport> StoreAdmin::Gc(const SpaceLimits& limits) const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const auto survey, Survey(root));
  const std::uint64_t before = survey->catalog.total_bytes;
  Deleter deleter;
  const auto remove = [&](const std::string& folder, const std::string& name) {
    const auto opened = OpenFolder(root, folder);
    if (opened.ok()) deleter.Remove(*opened, name);
  };
  std::unordered_set<std::string> kept = survey->locked;
  for (const SurveyedPrompt& prompt : survey->prompts) {
    const PromptInfo info = InfoOf(*survey, prompt, root);
    if (info.whole || info.pinned) {
      kept.insert(prompt.stem);
    } else {
      remove(kPromptsName, prompt.file->name);
    }
  }
  for (const CatalogFile& file : survey->catalog.files) {
    if (file.folder.empty()) continue;
    const bool leftover =
        !file.is_regular || file.kind == FileKind::kQuarantined ||
        (file.kind == FileKind::kTemporary && file.stale) ||
        (file.kind == FileKind::kSidecar &&
         kept.count(StemOf(file.name, kSidecarSuffix)) == 0) ||
        (file.kind == FileKind::kPin && kept.count(file.name) == 0);
    if (!leftover) continue;
    if (!file.is_directory) {
      remove(file.folder, file.name);
      continue;
    }
    const auto folder = OpenFolder(root, file.folder);
    const auto inside = folder.ok() ? folder->Sub(file.name)
                                    : Result<Directory>(folder.error());
    if (!inside.ok()) continue;
    deleter.Empty(*inside, 1);
    (void)folder->RemoveSub(file.name);
  }
  {
    HEARTH_ASSIGN(SpaceLock lock, SpaceLock::Take(root, limits));
    HEARTH_TRY(lock.MakeRoom(root, 0, limits, {}, /*recount=*/true));
  }
  HEARTH_ASSIGN(const Catalog after, ScanStore(root));
  GcReport report = std::move(deleter.report);
  report.bytes_left = after.total_bytes;
  report.bytes = before > after.total_bytes ? before - after.total_bytes : 0;
  report.n_files = std::max<std::uint64_t>(
      report.n_files, survey->catalog.files.size() > after.files.size()
                          ? survey->catalog.files.size() - after.files.size()
                          : 0);
  return report;
}

Result<GcReport> StoreAdmin::Evict(const std::string& name) const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const std::string stem, Resolve(root, name));
  HEARTH_ASSIGN(const auto survey, Survey(root));
  if (survey->pins.count(stem) > 0) {
    return {Code::kInvalidArgument, stem + " is pinned; unpin it first"};
  }
  const auto prompt =
      std::find_if(survey->prompts.begin(), survey->prompts.end(),
                   [&](const auto& p) { return p.stem == stem; });
  if (prompt == survey->prompts.end()) {
    return {Code::kIncompatible,
            stem +
                ": its list of blocks cannot be read; its key was not "
                "given, or it is damaged, then `verify` sets it aside"};
  }
  Deleter deleter;
  const auto remove = [&](const CatalogFile& file) {
    const auto folder = OpenFolder(root, file.folder);
    if (folder.ok()) {
      deleter.Remove(*folder, file.name);
    } else {
      deleter.report.left.push_back(folder.error().message);
    }
  };
  // The list goes first: without it nobody looks for the blocks.
  remove(*prompt->file);
  const auto note = survey->notes.find(stem);
  if (note != survey->notes.end()) remove(*note->second);
  for (const PromptEntry& entry : prompt->header.entries) {
    const auto block = survey->blocks.find(entry.id);
    const bool shared = survey->n_sharing.at(entry.id) > 1;
    if (block != survey->blocks.end() && !shared) remove(*block->second);
  }
  for (const PromptEntry& entry : prompt->header.states) {
    const auto state = survey->states.find(entry.id);
    const bool shared = survey->n_sharing_state.at(entry.id) > 1;
    if (state != survey->states.end() && !shared) remove(*state->second);
  }
  GcReport report = std::move(deleter.report);
  report.bytes_left = BytesIn(root);
  return report;
}

Result<GcReport> StoreAdmin::Wipe(const WipeFilter& filter) const {
  HEARTH_ASSIGN(const Directory root, Root());
  Deleter deleter;
  if (filter.model_name.empty()) {
    HEARTH_ASSIGN(const std::vector<DirectoryEntry> entries, root.List());
    for (const DirectoryEntry& entry : entries) {
      if (!IsStoreFolder(entry.name)) {
        if (IsTemporary(entry.name) || BeginsAsOurs(root, entry.name)) {
          deleter.Remove(root, entry.name);
        }
        continue;
      }
      if (!entry.is_directory) {
        deleter.Remove(root, entry.name);
        continue;
      }
      root.OpenToOwner(entry.name);
      const auto folder = root.Sub(entry.name);
      if (folder.ok()) {
        const bool deep =
            entry.name == kBlocksName || entry.name == kStatesName;
        deleter.Empty(*folder, deep ? 0 : 1);
      } else if (folder.error().code != Code::kNotFound) {
        deleter.report.left.push_back(folder.error().message);
      }
    }
  } else {
    HEARTH_TRY(WipeModel(root, filter.model_name, [&](const CatalogFile& file) {
      const auto folder = OpenFolder(root, file.folder);
      if (folder.ok()) {
        deleter.Remove(*folder, file.name);
      } else {
        deleter.report.left.push_back(folder.error().message);
      }
    }));
  }
  GcReport report = std::move(deleter.report);
  report.bytes_left = BytesIn(root);
  return report;
}

Result<void> StoreAdmin::WipeModel(
    const Directory& root, const std::string& model_name,
    const std::function<void(const CatalogFile&)>& remove) const {
  HEARTH_ASSIGN(const auto survey, Survey(root));
  if (!survey->locked.empty()) {
    return {Code::kIncompatible,
            "some stored prompts are encrypted, so it is not known whose they "
            "are; give their key"};
  }
  std::unordered_set<Digest> doomed, kept, doomed_states, kept_states;
  std::unordered_set<std::string> stems;
  std::unordered_set<Digest> models;  // whose loose blocks go too
  for (const SurveyedPrompt& prompt : survey->prompts) {
    const bool dies = prompt.header.model_name == model_name;
    if (dies) stems.insert(prompt.stem);
    if (dies) models.insert(prompt.header.model_id);
    for (const PromptEntry& entry : prompt.header.entries) {
      (dies ? doomed : kept).insert(entry.id);
    }
    for (const PromptEntry& state : prompt.header.states) {
      (dies ? doomed_states : kept_states).insert(state.id);
    }
  }
  for (const CatalogFile& file : survey->catalog.files) {
    bool dies = false;
    switch (file.kind) {
      case FileKind::kBlock:
        dies = (doomed.count(file.id) > 0 && kept.count(file.id) == 0) ||
               (survey->n_sharing.count(file.id) == 0 &&
                models.count(ModelOf(root, file)) > 0);
        break;
      case FileKind::kState:
        dies = (doomed_states.count(file.id) > 0 &&
                kept_states.count(file.id) == 0) ||
               (survey->n_sharing_state.count(file.id) == 0 &&
                models.count(ModelOf(root, file)) > 0);
        break;
      case FileKind::kManifest:
        dies = stems.count(StemOf(file.name, kPromptSuffix)) > 0;
        break;
      case FileKind::kSidecar:
        dies = stems.count(StemOf(file.name, kSidecarSuffix)) > 0;
        break;
      case FileKind::kPin:
        dies = stems.count(file.name) > 0;
        break;
      // Damaged files cannot be told apart by model, and may hold its KV.
      case FileKind::kQuarantined:
        dies = !file.is_directory;
        break;
      case FileKind::kTemporary:
        dies = file.stale;
        break;
      // A block under another name.
      case FileKind::kUnknown:
        dies = file.is_regular && !file.folder.empty() &&
               models.count(ModelOf(root, file)) > 0;
        break;
      case FileKind::kMemo:
      case FileKind::kRootFile:
        break;
    }
    if (dies) remove(file);
  }
  return {};
}

}  // namespace hearth
