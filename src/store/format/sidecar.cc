#include "store/format/sidecar.h"

#include <ctime>

#include "base/json.h"

namespace hearth {
namespace {

std::string UtcText(std::int64_t unix_s) {
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm parts = {};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "";
  char text[32];
  const std::size_t n =
      std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, n);
}

// "int8", or "int8/fp16" for keys and values that differ.
std::string FormatName(const KvLayer& layer) {
  std::string name(NameOf(layer.key_format));
  if (layer.value_format != layer.key_format) {
    name += "/" + std::string(NameOf(layer.value_format));
  }
  return name;
}

// Layers that are all alike are told once.
void PutShape(const KvSpec& spec, nlohmann::ordered_json& note) {
  if (const auto all = spec.uniform(); all.has_value()) {
    note["kv_format"] = FormatName(spec.layers.front());
    note["kv_layers"] = all->n_layers;
    note["kv_heads"] = all->n_heads;
    note["head_dim"] = all->head_dim;
    return;
  }
  for (const KvLayer& layer : spec.layers) {
    note["kv_layers"].push_back({{"kv_format", FormatName(layer)},
                                 {"kv_heads", layer.n_heads},
                                 {"key_dim", layer.key_dim},
                                 {"value_dim", layer.value_dim}});
  }
}

}  // namespace

std::string SidecarText(const KvIdentity& identity, const KvSpec& spec,
                        const SidecarFacts& facts) {
  const auto block_tokens = static_cast<std::size_t>(spec.block_tokens);
  nlohmann::ordered_json note;
  note["format"] = "hearth prompt cache 1";
  note["model"] = identity.model_name;
  note["model_id"] = ToHex(identity.model_id);
  note["format_id"] = ToHex(identity.format_id);
  note["end_id"] = ToHex(facts.end_id);
  PutShape(spec, note);
  note["block_tokens"] = spec.block_tokens;
  note["tokens"] = facts.n_tokens;
  note["full_blocks"] = facts.n_tokens / block_tokens;
  note["tail_tokens"] = facts.n_tokens % block_tokens;
  note["kv_bytes"] = spec.BytesOf(static_cast<int>(facts.n_tokens));
  note["manifest_bytes"] = facts.manifest_bytes;
  note["created"] = UtcText(facts.created_unix_s);
  note["created_unix_s"] = facts.created_unix_s;
  if (!facts.preview.empty()) note["preview"] = facts.preview;
  // Text that is not UTF-8 must not make a save fail.
  return note.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hearth
