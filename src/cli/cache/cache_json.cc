#include "cli/cache/cache_json.h"

#include <cstdint>

namespace hearth::cli {
namespace {

using Object = nlohmann::ordered_json;

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
          {"states", p.n_states},
          {"bytes_states", p.bytes_states},
          {"created_unix_s", Seconds(p.created_ns)},
          {"last_use_unix_s", Seconds(p.last_use_ns)},
          {"pinned", p.pinned}};
}

Object Describe(const KindStats& k) {
  return {{"files", k.n_files}, {"bytes", k.bytes}};
}

}  // namespace

Object ToJson(const PromptList& list) {
  Object json = {{"prompts", Object::array()}};
  for (const PromptInfo& p : list.prompts) {
    json["prompts"].push_back(Describe(p));
  }
  json["locked"] = list.n_locked;
  return json;
}

Object ToJson(const PromptDetails& details) {
  Object json = Describe(details.info);
  json["model_id"] = details.info.model_id;
  json["format_id"] = details.info.format_id;
  json["block_tokens"] = details.info.block_tokens;
  json["chain"] = Object::array();
  for (const BlockInfo& b : details.blocks) {
    json["chain"].push_back({{"id", b.id},
                             {"first_token", b.first_token},
                             {"tokens", b.n_tokens},
                             {"present", b.present},
                             {"piece", b.is_piece},
                             {"bytes", b.bytes},
                             {"shared_by", b.n_sharing}});
  }
  json["state_files"] = Object::array();
  for (const StateInfo& s : details.states) {
    json["state_files"].push_back({{"id", s.id},
                                   {"tokens", s.n_tokens},
                                   {"present", s.present},
                                   {"bytes", s.bytes},
                                   {"shared_by", s.n_sharing}});
  }
  return json;
}

Object ToJson(const StoreStats& s) {
  Object json = {{"total_bytes", s.total_bytes},
                 {"free_bytes", s.free_bytes},
                 {"blocks", Describe(s.blocks)},
                 {"states", Describe(s.states)},
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
                              {"model_id", m.model_id},
                              {"prompts", m.n_prompts},
                              {"tokens", m.n_tokens_unique},
                              {"bytes", m.bytes}});
  }
  return json;
}

Object ToJson(const VerifyReport& r) {
  Object json = {{"files", r.n_files},         {"bytes", r.bytes},
                 {"seconds", r.seconds},       {"locked", r.n_locked},
                 {"defects", Object::array()}, {"incomplete", r.incomplete}};
  for (const Defect& d : r.defects) {
    json["defects"].push_back(
        {{"path", d.path}, {"reason", d.reason}, {"set_aside", d.set_aside}});
  }
  return json;
}

Object ToJson(const GcReport& r) {
  return {{"files_deleted", r.n_files},
          {"bytes_deleted", r.bytes},
          {"bytes_left", r.bytes_left},
          {"left", r.left}};
}

Object ToJson(const CacheMiss& m) {
  Object json = {{"tokens", m.n_tokens},
                 {"tokens_stored", m.n_tokens_stored},
                 {"miss_reason", m.reason},
                 {"nearest", m.nearest_stem},
                 {"tokens_common", m.n_tokens_common},
                 {"key_differences", m.key_differences}};
  if (m.n_tokens_by_text) json["tokens_by_text"] = *m.n_tokens_by_text;
  if (m.cost) {
    json["load_ms"] = m.cost->load_ms;
    json["compute_ms"] = m.cost->compute_ms;
    json["load_pays"] = m.cost->pays;
  }
  if (m.parting) {
    json["byte"] = m.parting->byte;
    json["asked"] = m.parting->asked;
    json["stored"] = m.parting->stored;
  }
  return json;
}

}  // namespace hearth::cli
