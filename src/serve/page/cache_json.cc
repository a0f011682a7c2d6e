#include "serve/page/cache_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace hearth::serve {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::int64_t Ms(std::int64_t ns) { return ns / 1'000'000; }

Json ToJson(const PromptInfo& p, int node) {
  Json json = {{"name", p.stem},
               {"model", p.model_name},
               {"tokens", p.n_tokens},
               {"usable", p.n_tokens_usable},
               {"whole", p.whole},
               {"bytes", p.bytes},
               {"bytes_shared", p.bytes_shared},
               {"states", p.n_states},
               {"bytes_states", p.bytes_states},
               {"created_ms", Ms(p.created_ns)},
               {"last_use_ms", Ms(p.last_use_ns)},
               {"pinned", p.pinned},
               {"node", node}};
  if (!p.preview.empty()) json["preview"] = p.preview;
  return json;
}

Json ToJson(const PromptTreeNode& n) {
  return {{"parent", n.parent},
          {"first_token", n.first_token},
          {"tokens", n.n_tokens},
          {"blocks", n.n_blocks},
          {"present", n.n_blocks_present},
          {"bytes", n.bytes},
          {"states", n.n_states},
          {"bytes_states", n.bytes_states},
          {"prompts", n.n_prompts},
          {"last_use_ms", Ms(n.last_use_ns)}};
}

Json BlocksJson(const PromptTree& tree, std::int64_t now_ms) {
  const std::size_t n = std::min(tree.blocks.size(), kPageBlocksMax);
  std::vector<std::string> ids;
  std::vector<int> nodes, sharing, present;
  std::vector<std::uint64_t> tokens;
  std::vector<std::int64_t> ages;
  for (std::size_t i = 0; i < n; ++i) {
    const PromptTreeBlock& block = tree.blocks[i];
    ids.push_back(block.id.substr(0, 12));
    nodes.push_back(block.node);
    tokens.push_back(block.n_tokens);
    sharing.push_back(block.n_sharing);
    present.push_back(block.present ? 1 : 0);
    ages.push_back(
        std::max<std::int64_t>(0, (now_ms - Ms(block.last_use_ns)) / 1000));
  }
  return {{"id", std::move(ids)},
          {"node", std::move(nodes)},
          {"tokens", std::move(tokens)},
          {"shared", std::move(sharing)},
          {"present", std::move(present)},
          {"age_s", std::move(ages)},
          {"left_out", tree.blocks.size() - n}};
}

}  // namespace

std::string CacheTreeJson(const PromptTree& tree, std::int64_t now_ms) {
  std::vector<int> node_of(tree.prompts.size(), -1);
  Json nodes = Json::array();
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const int prompt = tree.nodes[i].prompt;
    if (prompt >= 0)
      node_of[static_cast<std::size_t>(prompt)] = static_cast<int>(i);
    nodes.push_back(ToJson(tree.nodes[i]));
  }
  Json prompts = Json::array();
  for (std::size_t i = 0; i < tree.prompts.size(); ++i) {
    prompts.push_back(ToJson(tree.prompts[i], node_of[i]));
  }
  return Line({{"now_ms", now_ms},
               {"locked", tree.n_locked},
               {"prompts", std::move(prompts)},
               {"nodes", std::move(nodes)},
               {"blocks", BlocksJson(tree, now_ms)}});
}

std::string CacheWhyJson(const CacheMiss& miss) {
  Json json = {{"tokens", miss.n_tokens},
               {"tokens_kept", miss.n_tokens_stored},
               {"miss_reason", miss.reason},
               {"nearest", miss.nearest_stem},
               {"tokens_common", miss.n_tokens_common},
               {"key_differences", miss.key_differences}};
  if (miss.cost.has_value()) {
    json["load_ms"] = miss.cost->load_ms;
    json["compute_ms"] = miss.cost->compute_ms;
  }
  return Line(json);
}

}  // namespace hearth::serve
