#include "store/budget/eviction.h"

#include <optional>

#include "store/directory/layout.h"
#include "store/directory/quarantine.h"
#include "store/format/block_image.h"
#include "store/format/token_reader.h"

namespace hearth {
namespace {

// A hit this soon after the writing still counts as the same use.
constexpr std::int64_t kSameUseNs = std::int64_t{2} * 1'000'000'000;

// The facts of a plan, read from the files of one catalog.
class Reader {
 public:
  Reader(const Directory& root, const Catalog& catalog,
         const Protection& protection)
      : root_(root), catalog_(catalog), protection_(protection) {
    for (std::size_t i = 0; i < catalog.files.size(); ++i) {
      const CatalogFile& file = catalog.files[i];
      if (file.kind == FileKind::kPin) pinned_.insert(file.name);
      if (file.kind == FileKind::kManifest) {
        stems_.insert(StemOf(file.name, kPromptSuffix));
      }
    }
  }

  EvictionPlan Read() const {
    EvictionPlan plan;
    AddFiles(plan);
    const auto prompts = root_.Sub(kPromptsName);
    for (std::size_t i = 0; prompts.ok() && i < catalog_.files.size(); ++i) {
      if (catalog_.files[i].kind == FileKind::kManifest) {
        AddManifest(*prompts, i, plan);
      }
    }
    plan.PlaceTails([this](std::size_t i) { return WasUsed(i); });
    plan.PlaceLoose([this](std::size_t i) { return InFrontOfBlock(i); },
                    [this](std::size_t i) { return InFrontOfState(i); });
    return plan;
  }

 private:
  void AddFiles(EvictionPlan& plan) const {
    for (std::size_t i = 0; i < catalog_.files.size(); ++i) {
      const CatalogFile& file = catalog_.files[i];
      EvictionPlan::Fact fact{.file = i, .last_use_ns = file.last_use_ns};
      if (file.kind == FileKind::kBlock) {
        fact.is_kept = protection_.blocks.count(file.id) > 0;
        plan.AddBlock(file.id, fact);
      } else if (file.kind == FileKind::kState) {
        fact.is_kept = protection_.states.count(file.id) > 0;
        plan.AddState(file.id, fact);
      } else if (IsLeftover(file)) {
        plan.AddLeftover(fact);
      } else if (file.kind == FileKind::kMemo) {
        plan.AddMemo(fact);
      }
    }
  }

  bool IsLeftover(const CatalogFile& file) const {
    if (file.kind == FileKind::kQuarantined) return true;
    if (file.kind == FileKind::kTemporary) return file.stale;
    return file.kind == FileKind::kSidecar &&
           stems_.count(StemOf(file.name, kSidecarSuffix)) == 0;
  }

  void AddManifest(const Directory& prompts, std::size_t i,
                   EvictionPlan& plan) const {
    const CatalogFile& file = catalog_.files[i];
    const std::string stem = StemOf(file.name, kPromptSuffix);
    const auto header = ReadManifest(prompts, file.name);
    const EvictionPlan::Fact fact{
        .file = i,
        .last_use_ns = file.last_use_ns,
        .is_kept = header.ok() && protection_.stems.count(stem) > 0};
    plan.AddPrompt(header.ok() ? &*header : nullptr, fact,
                   pinned_.count(stem) > 0);
  }

  bool WasUsed(std::size_t i) const {
    const CatalogFile& file = catalog_.files[i];
    const auto folder = OpenFolder(root_, file.folder);
    const std::int64_t birth_ns = folder.ok() ? folder->BirthNs(file.name) : 0;
    return birth_ns == 0 || file.last_use_ns > birth_ns + kSameUseNs;
  }

  // The image that a block's stands behind, as its header says, with or without
  // a key: of a prefill that was stopped before its manifest.
  std::optional<Digest> InFrontOfBlock(std::size_t i) const {
    const auto header = HeaderAt(i, ReadBlockHeader);
    if (!header.ok()) return std::nullopt;
    return header->first_token > 0 ? IdBefore(*header) : header->parent_id;
  }

  std::optional<Digest> InFrontOfState(std::size_t i) const {
    const auto header = HeaderAt(i, ReadStateHeader);
    if (!header.ok()) return std::nullopt;
    return header->parent_id;
  }

  template <typename Header>
  Result<Header> HeaderAt(std::size_t i,
                          Result<Header> (*read)(const Directory&,
                                                 const std::string&)) const {
    const CatalogFile& file = catalog_.files[i];
    HEARTH_ASSIGN(const Directory folder, OpenFolder(root_, file.folder));
    return read(folder, file.name);
  }

  const Directory& root_;
  const Catalog& catalog_;
  const Protection& protection_;
  std::unordered_set<std::string> pinned_, stems_;
};

}  // namespace

std::vector<std::size_t> EvictionOrder(const Directory& root,
                                       const Catalog& catalog,
                                       const Protection& protection,
                                       const EvictionPolicy& policy,
                                       std::int64_t now_ns) {
  return Reader(root, catalog, protection).Read().Order(policy, now_ns);
}

EvictionResult Evict(const Directory& root, const Catalog& catalog,
                     const std::vector<std::size_t>& order,
                     std::uint64_t bytes) {
  EvictionResult result;
  const auto remove = [&](const Directory& folder, const std::string& name) {
    const auto entry = folder.Stat(name);
    if (!entry.ok() || !folder.Remove(name).ok()) return;
    ++result.n_files;
    result.bytes += entry->size;
  };
  for (const std::size_t i : order) {
    if (result.bytes >= bytes) break;
    const CatalogFile& file = catalog.files[i];
    const auto folder = OpenFolder(root, file.folder);
    if (!folder.ok()) continue;
    remove(*folder, file.name);
    if (file.kind == FileKind::kManifest) {
      remove(*folder,
             StemOf(file.name, kPromptSuffix) + std::string(kSidecarSuffix));
    }
  }
  return result;
}

}  // namespace hearth
