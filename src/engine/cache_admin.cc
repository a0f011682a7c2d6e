#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/json.h"
#include "engine/engine_core.h"
#include "hearth/cache.h"
#include "store/admin/store_admin.h"

namespace hearth {
namespace {

Result<std::shared_ptr<const Vault>> VaultOf(const std::string& key_file) {
  if (key_file.empty()) return std::shared_ptr<const Vault>();
  return Vault::FromKeyFile(key_file);
}

Result<StoreAdmin> OpenAdmin(const CacheDir& dir) {
  HEARTH_ASSIGN(auto vault, VaultOf(dir.key_file));
  return StoreAdmin::Open(dir.path, nullptr, std::move(vault));
}

PartingPlace PartingAt(const Tokenizer& tokenizer,
                       std::span<const std::int32_t> asked,
                       std::span<const std::int32_t> stored,
                       std::size_t common) {
  constexpr std::size_t kAround = 8;
  const std::size_t begin = common - std::min(common, kAround);
  const auto excerpt = [&](std::span<const std::int32_t> tokens) {
    const std::size_t end = std::min(tokens.size(), common + kAround);
    return tokenizer.Decode(
        tokens.subspan(begin, end > begin ? end - begin : 0));
  };
  return {tokenizer.Decode(asked.first(common)).size(), excerpt(asked),
          excerpt(stored)};
}

}  // namespace

Result<PromptList> CacheList(const CacheDir& dir) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  PromptList list;
  HEARTH_ASSIGN(list.prompts, admin.List());
  HEARTH_ASSIGN(list.n_locked, admin.CountLocked());
  return list;
}

Result<PromptDetails> CacheShow(const CacheDir& dir, const std::string& name) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  return admin.Show(name);
}

void ReadPreviews(const CacheDir& dir, std::vector<PromptInfo>& prompts) {
  const auto admin = OpenAdmin(dir);
  if (!admin.ok()) return;
  for (PromptInfo& prompt : prompts) {
    const auto note = ParseJson(admin->Note(prompt.stem), "note");
    if (!note.ok() || !note->is_object()) continue;
    const auto preview = note->find("preview");
    if (preview != note->end() && preview->is_string()) {
      prompt.preview = preview->get<std::string>();
    }
  }
}

Result<PromptTree> CacheTree(const CacheDir& dir) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  return admin.Tree();
}

Result<StoreStats> CacheStats(const CacheDir& dir) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  return admin.Stats();
}

Result<VerifyReport> CacheVerify(const CacheDir& dir,
                                 const CacheProgress& progress) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  HEARTH_ASSIGN(const auto remote_key, VaultOf(dir.remote_key_file));
  return admin.Verify(/*set_aside=*/true, remote_key.get(), progress);
}

Result<std::string> CachePin(const CacheDir& dir, const std::string& name) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  return admin.Pin(name);
}

Result<std::string> CacheUnpin(const CacheDir& dir, const std::string& name) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  return admin.Unpin(name);
}

Result<GcReport> CacheGc(const CacheDir& dir, std::uint64_t disk_budget_bytes) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  SpaceLimits limits;
  limits.disk_budget_bytes = disk_budget_bytes;
  return admin.Gc(limits);
}

Result<GcReport> CacheEvict(const CacheDir& dir, const std::string& name) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  return admin.Evict(name);
}

Result<GcReport> CacheWipe(const CacheDir& dir, const std::string& model_name) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  return admin.Wipe({model_name});
}

Result<void> CacheExport(const CacheDir& dir, const std::string& name,
                         const std::string& path) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  return admin.Export(name, path);
}

Result<std::string> CacheImport(const CacheDir& dir, const std::string& path,
                                std::uint64_t disk_budget_bytes) {
  // Importing into a directory that does not exist yet makes it.
  HEARTH_TRY(KvStore::Open(dir.path));
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  SpaceLimits limits;
  limits.disk_budget_bytes = disk_budget_bytes;
  return admin.Import(path, limits);
}

Result<CacheMiss> CacheWhy(Engine& engine, const std::string& prompt) {
  HEARTH_ASSIGN(const std::vector<std::int32_t> ids,
                EngineAccess::Core(engine).tokenizer->Encode(prompt));
  return CacheWhy(engine, ids);
}

Result<CacheMiss> CacheWhy(Engine& engine, std::span<const std::int32_t> ids) {
  EngineCore& core = EngineAccess::Core(engine);
  if (!core.kv.spec().states.empty()) {
    return {Code::kUnsupported,
            "the model carries a state from token to token, which the prompt "
            "cache does not keep yet"};
  }
  if (core.prompt_cache == nullptr || core.prompt_cache->directory().empty()) {
    return {Code::kInvalidArgument,
            "there is no prompt cache directory to look into"};
  }
  HEARTH_ASSIGN(
      const StoreAdmin admin,
      OpenAdmin({core.prompt_cache->directory(), core.options.cache_key_file}));
  HEARTH_ASSIGN(WhyReport why,
                admin.Why(core.prompt_cache->identity(), core.kv.spec(), ids));
  CacheMiss miss;
  miss.n_tokens = why.n_tokens;
  miss.n_tokens_stored = why.n_tokens_stored;
  miss.reason = std::move(why.miss_reason);
  miss.nearest_stem = std::move(why.nearest_stem);
  miss.n_tokens_common = why.n_tokens_common;
  miss.key_differences = std::move(why.key_differences);
  const auto by_text =
      core.prompt_cache->FindText(core.kv.spec(), *core.tokenizer, ids);
  if (by_text.has_value()) {
    miss.n_tokens_by_text = static_cast<std::uint64_t>(by_text->n_usable);
  }
  const auto cost = core.prompt_cache->Predict(
      core.kv.spec(), static_cast<int>(why.n_tokens_stored));
  if (cost.has_value() && why.n_tokens_stored > 0) {
    miss.cost = LoadCost{cost->load_ms, cost->compute_ms, cost->load_pays()};
  }
  // Texts compare only when both were tokenised alike.
  if (miss.key_differences.empty() && !miss.nearest_stem.empty() &&
      why.n_tokens_common < ids.size()) {
    miss.parting = PartingAt(*core.tokenizer, ids, why.nearest_tokens,
                             static_cast<std::size_t>(why.n_tokens_common));
  }
  return miss;
}

}  // namespace hearth
