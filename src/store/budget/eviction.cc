#include "store/budget/eviction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "store/directory/layout.h"
#include "store/directory/quarantine.h"
#include "store/format/block_image.h"
#include "store/format/token_reader.h"

namespace hearth {
namespace {

// A hit this soon after the writing still counts as the same use.
constexpr std::int64_t kSameUseNs = std::int64_t{2} * 1'000'000'000;

struct Candidate {
  std::size_t file = 0;
  std::int64_t last_use_ns = 0;
  int n_sharing = 0;
  std::size_t depth = 0;
  bool is_protected = false;
  bool is_one_shot = false;  // a tail that goes with its manifest
  bool is_reached = false;   // of a model with states: some are at or behind it
};

// The partial block that a prompt ends with, and the states inside.
struct Tail {
  std::size_t manifest = 0;
  Digest id;
  std::vector<Digest> states;
};

class Planner {
 public:
  Planner(const Directory& root, const Catalog& catalog,
          const Protection& protection)
      : root_(root), catalog_(catalog), protection_(protection) {
    for (std::size_t i = 0; i < catalog.files.size(); ++i) {
      const CatalogFile& file = catalog.files[i];
      if (file.kind == FileKind::kPin) pinned_.insert(file.name);
      if (file.kind == FileKind::kManifest) {
        stems_.insert(StemOf(file.name, kPromptSuffix));
      }
      if (file.kind == FileKind::kState) {
        const bool kept = protection.states.count(file.id) > 0;
        states_[file.id] = {
            .file = i, .last_use_ns = file.last_use_ns, .is_protected = kept};
      }
      if (file.kind != FileKind::kBlock) continue;
      const bool kept = protection.blocks.count(file.id) > 0;
      blocks_[file.id] = {
          .file = i, .last_use_ns = file.last_use_ns, .is_protected = kept};
    }
  }

  void ReadManifests() {
    const auto prompts = root_.Sub(kPromptsName);
    if (!prompts.ok()) return;
    for (std::size_t i = 0; i < catalog_.files.size(); ++i) {
      if (catalog_.files[i].kind == FileKind::kManifest) {
        ReadManifestAt(*prompts, i);
      }
    }
    for (const Tail& tail : tails_) PlaceTail(tail);
  }

  // Blocks of a prefill that was stopped before its manifest: their headers
  // tell their place.
  void PlaceLooseBlocks() {
    for (auto& [id, block] : blocks_) {
      if (block.n_sharing > 0) continue;
      const CatalogFile& file = catalog_.files[block.file];
      const auto folder = OpenFolder(root_, file.folder);
      if (!folder.ok()) continue;
      const auto before = IdInFrontOf(*folder, file.name);
      if (before.has_value()) parents_[id] = *before;
    }
    for (const auto& [id, parent] : parents_) RaiseAncestors(id);
    for (auto& [id, state] : states_) {
      if (state.n_sharing == 0) PlaceLooseState(state);
    }
  }

  std::vector<std::size_t> Order(const EvictionPolicy& policy,
                                 std::int64_t now_ns) const {
    std::vector<std::tuple<int, double, std::size_t, std::string, std::size_t>>
        keys;  // class, worth, depth from below, name, file
    const auto add = [&](int rank, double worth, std::size_t depth,
                         std::size_t i) {
      keys.emplace_back(rank, worth, ~depth, catalog_.files[i].name, i);
    };
    const auto worth = [&](std::int64_t last_use_ns, int n_sharing) {
      const double age_s = static_cast<double>(now_ns - last_use_ns) * 1e-9;
      return std::log2(std::max(1, n_sharing)) - age_s / policy.half_life_s;
    };
    for (std::size_t i = 0; i < catalog_.files.size(); ++i) {
      const CatalogFile& file = catalog_.files[i];
      if (IsLeftover(file)) add(0, worth(file.last_use_ns, 1), 0, i);
      if (file.kind == FileKind::kMemo)
        add(2, worth(file.last_use_ns, 1), 0, i);
    }
    for (const Candidate& manifest : manifests_) {
      add(manifest.is_one_shot ? 1 : 2, worth(manifest.last_use_ns, 1),
          manifest.depth, manifest.file);
    }
    for (const auto& [id, block] : blocks_) {
      if (block.is_protected) continue;
      add(block.is_one_shot ? 1 : 2, worth(block.last_use_ns, block.n_sharing),
          block.depth, block.file);
    }
    for (const auto& [id, state] : states_) {
      if (state.is_protected) continue;
      add(state.is_one_shot ? 1 : 2, worth(state.last_use_ns, state.n_sharing),
          state.depth, state.file);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<std::size_t> order;
    order.reserve(keys.size());
    for (const auto& key : keys) order.push_back(std::get<4>(key));
    return order;
  }

 private:
  // The image that a file stands behind, as its header says; nothing when it
  // cannot be read, with or without a key.
  static std::optional<Digest> IdInFrontOf(const Directory& folder,
                                           const std::string& name) {
    const auto header = ReadBlockHeader(folder, name);
    if (!header.ok()) return std::nullopt;
    return header->first_token > 0 ? IdBefore(*header) : header->parent_id;
  }

  bool IsLeftover(const CatalogFile& file) const {
    if (file.kind == FileKind::kQuarantined) return true;
    if (file.kind == FileKind::kTemporary) return file.stale;
    return file.kind == FileKind::kSidecar &&
           stems_.count(StemOf(file.name, kSidecarSuffix)) == 0;
  }

  void ReadManifestAt(const Directory& prompts, std::size_t i) {
    const CatalogFile& file = catalog_.files[i];
    const std::string stem = StemOf(file.name, kPromptSuffix);
    const auto header = ReadManifest(prompts, file.name);
    if (!header.ok()) {
      manifests_.push_back({i, file.last_use_ns, 0, 0, false, false});
      return;
    }
    const bool pinned = pinned_.count(stem) > 0;
    std::int64_t last_use_ns = file.last_use_ns;
    for (std::size_t n = header->entries.size(); n > 0; --n) {
      const auto found = blocks_.find(header->entries[n - 1].id);
      if (found == blocks_.end()) continue;
      Candidate& block = found->second;
      last_use_ns = std::max(last_use_ns, block.last_use_ns);
      block.last_use_ns = last_use_ns;
      block.depth = n;
      ++block.n_sharing;
      block.is_protected = block.is_protected || pinned;
    }
    if (header->carries_states) PlaceStates(*header, pinned);
    if (pinned || protection_.stems.count(stem) > 0) return;
    const std::size_t depth = header->entries.size() + 1;
    manifests_.push_back({i, file.last_use_ns, 1, depth, false, false});
    const PromptEntry& last = header->entries.back();
    if (last.end % static_cast<std::uint64_t>(header->block_tokens) != 0) {
      Tail tail{manifests_.size() - 1, last.id, {}};
      const std::uint64_t begin = header->BlockStart(depth - 2);
      for (const PromptEntry& state : header->states) {
        if (state.end > begin) tail.states.push_back(state.id);
      }
      tails_.push_back(std::move(tail));
    }
  }

  // A state is as deep as the block that it is behind; the last one of a prompt
  // is worth what its block is, so that it goes no sooner. What stands behind
  // it nobody can begin from: it is the first to go.
  void PlaceStates(const PromptHeader& header, bool pinned) {
    std::uint64_t last = 0;
    for (std::size_t i = header.states.size(); i-- > 0;) {
      const PromptEntry& entry = header.states[i];
      const auto found = states_.find(entry.id);
      if (found == states_.end()) continue;
      Candidate& state = found->second;
      ++state.n_sharing;
      state.is_protected = state.is_protected || pinned;
      std::size_t n = 0;
      while (n < header.entries.size() && header.entries[n].end < entry.end) {
        ++n;
      }
      state.depth = std::max(state.depth, n + 1);
      if (last > 0) continue;
      last = entry.end;
      const auto block = blocks_.find(header.entries[n].id);
      if (block == blocks_.end()) continue;
      state.last_use_ns =
          std::max(state.last_use_ns, block->second.last_use_ns);
    }
    for (std::size_t i = 0; i < header.entries.size(); ++i) {
      const auto found = blocks_.find(header.entries[i].id);
      if (found == blocks_.end()) continue;
      Candidate& block = found->second;
      const bool reached = header.FirstOf(i) < last;
      block.is_reached = block.is_reached || reached;
      block.is_one_shot = !block.is_reached && !block.is_protected;
    }
  }

  // Of a prefill that was stopped before its manifest.
  void PlaceLooseState(Candidate& state) const {
    const CatalogFile& file = catalog_.files[state.file];
    const auto folder = OpenFolder(root_, file.folder);
    if (!folder.ok()) return;
    const auto header = ReadStateHeader(*folder, file.name);
    if (!header.ok()) return;
    const auto before = blocks_.find(header->parent_id);
    state.depth = 1 + (before == blocks_.end() ? 0 : before->second.depth);
  }

  // A tail that one prompt alone has and that was not used since it was
  // written.
  void PlaceTail(const Tail& of) {
    Candidate& manifest = manifests_[of.manifest];
    const auto found = blocks_.find(of.id);
    if (found == blocks_.end()) return;
    Candidate& tail = found->second;
    const CatalogFile& file = catalog_.files[tail.file];
    manifest.last_use_ns = std::max(manifest.last_use_ns, file.last_use_ns);
    const auto folder = OpenFolder(root_, file.folder);
    const std::int64_t birth_ns = folder.ok() ? folder->BirthNs(file.name) : 0;
    const bool used = birth_ns == 0 || file.last_use_ns > birth_ns + kSameUseNs;
    if (used || tail.n_sharing > 1 || tail.is_protected) return;
    manifest.is_one_shot = tail.is_one_shot = true;
    tail.last_use_ns = manifest.last_use_ns;
    tail.depth = manifest.depth - 1;  // after it
    for (const Digest& id : of.states) {
      const auto state = states_.find(id);
      if (state == states_.end()) continue;
      const Candidate& one = state->second;
      state->second.is_one_shot = one.n_sharing == 1 && !one.is_protected;
    }
  }

  // Everything before a loose block is worth at least as much as it.
  void RaiseAncestors(const Digest& id) {
    Candidate& block = blocks_.at(id);
    auto parent = parents_.find(id);
    // The bound guards against a ring, which a forged header could make.
    for (std::size_t steps = 1; steps <= blocks_.size(); ++steps) {
      if (parent == parents_.end()) return;
      const auto above = blocks_.find(parent->second);
      if (above == blocks_.end()) return;
      above->second.last_use_ns =
          std::max(above->second.last_use_ns, block.last_use_ns);
      // Only the last step, to a block that a manifest placed, adds more.
      block.depth =
          steps + (above->second.n_sharing > 0 ? above->second.depth : 0);
      parent = parents_.find(above->first);
    }
  }

  const Directory& root_;
  const Catalog& catalog_;
  const Protection& protection_;
  std::unordered_set<std::string> pinned_, stems_;
  std::unordered_map<Digest, Candidate> blocks_, states_;
  std::unordered_map<Digest, Digest> parents_;  // of loose blocks
  std::vector<Candidate> manifests_;
  std::vector<Tail> tails_;  // of these manifests
};

}  // namespace

std::vector<std::size_t> EvictionOrder(const Directory& root,
                                       const Catalog& catalog,
                                       const Protection& protection,
                                       const EvictionPolicy& policy,
                                       std::int64_t now_ns) {
  Planner planner(root, catalog, protection);
  planner.ReadManifests();
  planner.PlaceLooseBlocks();
  return planner.Order(policy, now_ns);
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
