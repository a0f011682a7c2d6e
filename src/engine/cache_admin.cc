#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/engine_core.h"
#include "hearth/cache.h"
#include "store/admin/store_admin.h"

namespace hearth {
namespace {

using Object = nlohmann::ordered_json;

std::string Dump(const Object& json) {
  return json.dump(-1, ' ', false, Object::error_handler_t::replace);
}

double Seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

Object Describe(const PromptInfo& p) {
  return {{"name", p.stem},
          {"model", p.model_name},
          {"tokens", p.n_tokens},
          {"tokens_usable", p.n_tokens_usable},
          {"blocks", p.n_blocks_full},
          {"blocks_present", p.n_blocks_present},
          {"tail_tokens", p.n_tail_tokens},
          {"bytes", p.bytes},
          {"bytes_shared", p.bytes_shared},
          {"created_unix_s", Seconds(p.created_ns)},
          {"last_use_unix_s", Seconds(p.last_use_ns)},
          {"pinned", p.pinned}};
}

Object Describe(const KindStats& k) {
  return {{"files", k.n_files}, {"bytes", k.bytes}};
}

Object Describe(const GcReport& r) {
  return {{"files_deleted", r.n_files},
          {"bytes_deleted", r.bytes},
          {"bytes_left", r.bytes_left},
          {"left", r.left}};
}

Result<std::shared_ptr<const Vault>> VaultOf(const std::string& key_file) {
  if (key_file.empty()) return std::shared_ptr<const Vault>();
  return Vault::FromKeyFile(key_file);
}

Result<StoreAdmin> OpenAdmin(const CacheDir& dir) {
  HEARTH_ASSIGN(auto vault, VaultOf(dir.key_file));
  return StoreAdmin::Open(dir.path, nullptr, std::move(vault));
}

}  // namespace

Result<std::string> CacheList(const CacheDir& dir) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  HEARTH_ASSIGN(const auto prompts, admin.List());
  Object json = {{"prompts", Object::array()}};
  for (const PromptInfo& p : prompts) json["prompts"].push_back(Describe(p));
  HEARTH_ASSIGN(json["locked"], admin.CountLocked());
  return Dump(json);
}

Result<std::string> CacheShow(const CacheDir& dir, const std::string& name) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  HEARTH_ASSIGN(const PromptDetails details, admin.Show(name));
  Object json = Describe(details.info);
  json["model_id"] = ToHex(details.info.model_id);
  json["format_id"] = ToHex(details.info.format_id);
  json["block_tokens"] = details.info.block_tokens;
  json["chain"] = Object::array();
  for (const BlockInfo& b : details.blocks) {
    json["chain"].push_back({{"id", ToHex(b.id)},
                             {"first_token", b.first_token},
                             {"tokens", b.n_tokens},
                             {"present", b.present},
                             {"piece", b.is_piece},
                             {"bytes", b.bytes},
                             {"shared_by", b.n_sharing}});
  }
  return Dump(json);
}

Result<std::string> CacheStats(const CacheDir& dir) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  HEARTH_ASSIGN(const StoreStats s, admin.Stats());
  Object json = {{"total_bytes", s.total_bytes},
                 {"free_bytes", s.free_bytes},
                 {"blocks", Describe(s.blocks)},
                 {"manifests", Describe(s.manifests)},
                 {"sidecars", Describe(s.sidecars)},
                 {"memos", Describe(s.memos)},
                 {"quarantined", Describe(s.quarantined)},
                 {"temporaries", Describe(s.temporaries)},
                 {"other", Describe(s.other)},
                 {"blocks_loose", s.n_blocks_loose},
                 {"pinned", s.n_pinned},
                 {"models", Object::array()}};
  for (const ModelStats& m : s.models) {
    json["models"].push_back({{"model", m.model_name},
                              {"model_id", ToHex(m.model_id)},
                              {"prompts", m.n_prompts},
                              {"tokens", m.n_tokens_unique},
                              {"bytes", m.bytes}});
  }
  return Dump(json);
}

Result<std::string> CacheVerify(const CacheDir& dir) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  HEARTH_ASSIGN(const VerifyReport r, admin.Verify(/*set_aside=*/true));
  Object json = {{"files", r.n_files},         {"bytes", r.bytes},
                 {"seconds", r.seconds},       {"locked", r.n_locked},
                 {"defects", Object::array()}, {"incomplete", r.incomplete}};
  for (const Defect& d : r.defects) {
    json["defects"].push_back(
        {{"path", d.path}, {"reason", d.reason}, {"set_aside", d.set_aside}});
  }
  return Dump(json);
}

Result<std::string> CachePin(const CacheDir& dir, const std::string& name) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  HEARTH_ASSIGN(const std::string stem, admin.Pin(name));
  return Dump({{"pinned", stem}});
}

Result<std::string> CacheUnpin(const CacheDir& dir, const std::string& name) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  HEARTH_ASSIGN(const std::string stem, admin.Unpin(name));
  return Dump({{"unpinned", stem}});
}

Result<std::string> CacheGc(const CacheDir& dir,
                            std::uint64_t disk_budget_bytes) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  SpaceLimits limits;
  limits.disk_budget_bytes = disk_budget_bytes;
  HEARTH_ASSIGN(const GcReport report, admin.Gc(limits));
  return Dump(Describe(report));
}

Result<std::string> CacheWipe(const CacheDir& dir,
                              const std::string& model_name) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  HEARTH_ASSIGN(const GcReport report, admin.Wipe({model_name}));
  return Dump(Describe(report));
}

Result<std::string> CacheExport(const CacheDir& dir, const std::string& name,
                                const std::string& path) {
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  HEARTH_TRY(admin.Export(name, path));
  return Dump({{"exported", path}});
}

Result<std::string> CacheImport(const CacheDir& dir, const std::string& path,
                                std::uint64_t disk_budget_bytes) {
  // Importing into a directory that does not exist yet makes it.
  HEARTH_TRY(KvStore::Open(dir.path));
  HEARTH_ASSIGN(const StoreAdmin admin, OpenAdmin(dir));
  SpaceLimits limits;
  limits.disk_budget_bytes = disk_budget_bytes;
  HEARTH_ASSIGN(const std::string stem, admin.Import(path, limits));
  return Dump({{"imported", stem}});
}

Result<std::string> CacheWhy(Engine& engine, const std::string& prompt) {
  EngineCore& core = engine.core();
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
  HEARTH_ASSIGN(const std::vector<std::int32_t> ids,
                core.tokenizer->Encode(prompt));
  HEARTH_ASSIGN(const WhyReport why,
                admin.Why(core.prompt_cache->identity(), core.kv.spec(), ids));
  Object json = {{"tokens", why.n_tokens},
                 {"tokens_stored", why.n_tokens_stored},
                 {"miss_reason", why.miss_reason},
                 {"nearest", why.nearest_stem},
                 {"tokens_common", why.n_tokens_common},
                 {"key_differences", why.key_differences}};
  const auto by_text =
      core.prompt_cache->FindText(core.kv.spec(), *core.tokenizer, ids);
  if (by_text.has_value()) json["tokens_by_text"] = by_text->n_usable;
  const auto cost = core.prompt_cache->Predict(
      core.kv.spec(), static_cast<int>(why.n_tokens_stored));
  if (cost.has_value() && why.n_tokens_stored > 0) {
    json["load_ms"] = cost->load_ms;
    json["compute_ms"] = cost->compute_ms;
    json["load_pays"] = cost->load_pays();
  }
  // The texts around the place where the two part, and where it is in the
  // prompt. Only meaningful when both were tokenised alike.
  const auto common = static_cast<std::size_t>(why.n_tokens_common);
  if (why.key_differences.empty() && !why.nearest_stem.empty() &&
      common < ids.size()) {
    constexpr std::size_t kAround = 8;
    const std::size_t begin = common - std::min(common, kAround);
    const auto excerpt = [&](const std::vector<std::int32_t>& tokens) {
      const std::size_t end = std::min(tokens.size(), common + kAround);
      return core.tokenizer->Decode(
          std::span(tokens).subspan(begin, end > begin ? end - begin : 0));
    };
    json["byte"] = core.tokenizer->Decode(std::span(ids).first(common)).size();
    json["asked"] = excerpt(ids);
    json["stored"] = excerpt(why.nearest_tokens);
  }
  return Dump(json);
}

}  // namespace hearth
