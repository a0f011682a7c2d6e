#include "store/remote/redis_servers.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

using Clock = std::chrono::steady_clock;

// Redirections of one command: a cluster at rest needs one, a slot that moves
// two, a failover one more.
constexpr int kHopsMax = 5;
// How long a node that could not be reached is left alone: what others have is
// asked for meanwhile.
constexpr std::chrono::seconds kAway{10};

RedisNode NodeOf(const RemoteUrl& url) { return {url.host, url.port}; }

}  // namespace

Result<std::unique_ptr<RedisServers>> RedisServers::Connect(
    const RemoteUrl& url, Deadline deadline) {
  HEARTH_ASSIGN(auto client, RedisClient::Connect(url, deadline));
  std::unique_ptr<RedisServers> servers(new RedisServers(url));
  servers->clients_[NodeOf(url)] = std::move(client);
  return servers;
}

RedisServers::Target RedisServers::TargetOf(const std::string& key) const {
  const RedisNode* node =
      map_.empty() ? nullptr : map_.NodeOf(ClusterSlotOf(key));
  // Whoever has a connection knows where it is.
  if (node == nullptr && !clients_.empty()) node = &clients_.begin()->first;
  return {node == nullptr ? NodeOf(url_) : *node};
}

Result<RedisClient*> RedisServers::At(const RedisNode& node,
                                      Deadline deadline) {
  const auto known = clients_.find(node);
  if (known != clients_.end()) return known->second.get();
  const auto away = away_until_.find(node);
  if (away != away_until_.end() && away->second > Clock::now()) {
    return {Code::kIo, "it was away just now"};
  }
  RemoteUrl url = url_;
  url.host = node.host;
  url.port = node.port;
  // One that swallows the connection must not take everybody's time.
  const auto share = Clock::now() + (deadline - Clock::now()) / 3;
  HEARTH_ASSIGN(auto client, RedisClient::Connect(url, share));
  return (clients_[node] = std::move(client)).get();
}

void RedisServers::GiveUpOn(const RedisNode& node, const Error& error) {
  clients_.erase(node);
  away_until_[node] = Clock::now() + kAway;
  trouble_ = "node " + node.Name() + " of the cluster: " + error.message;
}

// Spares a redirection for every slot.
void RedisServers::Learn(const RedisNode& from, Deadline deadline) {
  const auto client = At(from, deadline);
  if (!client.ok()) return;
  const auto nodes = (*client)->ClusterNodes(deadline);
  if (nodes.ok()) {
    map_.Read(*nodes, from);
  } else {
    clients_.erase(from);
  }
}

Result<std::vector<std::optional<RedisReply>>> RedisServers::AskAll(
    std::span<const std::string> keys, const Command& command,
    Deadline deadline) {
  std::vector<std::optional<RedisReply>> replies(keys.size());
  std::map<std::size_t, Target> pending;
  for (std::size_t i = 0; i < keys.size(); ++i) pending[i] = TargetOf(keys[i]);
  for (int hop = 0; hop < kHopsMax && !pending.empty(); ++hop) {
    std::map<std::pair<RedisNode, bool>, std::vector<std::size_t>> groups;
    for (const auto& [key, target] : pending) {
      groups[{target.node, target.asking}].push_back(key);
    }
    bool learn = false;
    for (const auto& [where, group] : groups) {
      const RedisNode& node = where.first;
      auto client = At(node, deadline);
      auto got = client.ok() ? command(**client, group, where.second)
                             : Result<std::vector<RedisReply>>(client.error());
      if (!got.ok()) {
        if (map_.empty()) return got.error();
        GiveUpOn(node, got.error());
        for (const std::size_t key : group) {
          pending.erase(key);
          // A replica may have taken over: another node knows.
          const Target other = TargetOf(keys[key]);
          const auto live = clients_.begin();
          if (live == clients_.end()) continue;
          pending[key] = {other.node == node ? live->first : other.node};
        }
        continue;
      }
      for (std::size_t i = 0; i < group.size(); ++i) {
        RedisReply& reply = (*got)[i];
        if (!reply.elsewhere.has_value()) {
          replies[group[i]] = std::move(reply);
          pending.erase(group[i]);
          continue;
        }
        const RedisRedirect& to = *reply.elsewhere;
        learn |= map_.empty();
        if (!to.once) map_.Move(to.slot, to.to);
        pending[group[i]] = {to.to, to.once};
      }
    }
    if (learn) Learn(groups.begin()->first.first, deadline);
  }
  if (clients_.empty()) {
    return {Code::kIo, trouble_.empty() ? "no node answers" : trouble_};
  }
  return replies;
}

Result<std::vector<std::optional<std::string>>> RedisServers::Get(
    std::span<const std::string> keys, std::size_t bytes_max,
    Deadline deadline) {
  HEARTH_ASSIGN(auto replies,
                AskAll(
                    keys,
                    [&](RedisClient& at, std::span<const std::size_t> which,
                        bool asking) {
                      std::vector<std::string> some;
                      for (const std::size_t i : which) some.push_back(keys[i]);
                      return at.Get(some, bytes_max, asking, deadline);
                    },
                    deadline));
  std::vector<std::optional<std::string>> values;
  for (auto& reply : replies) {
    values.push_back(reply.has_value() ? std::move(reply->text) : std::nullopt);
  }
  return values;
}

Result<bool> RedisServers::Exists(const std::string& key, Deadline deadline) {
  HEARTH_ASSIGN(
      const auto replies,
      AskAll(
          {&key, 1},
          [&](RedisClient& at, std::span<const std::size_t>, bool asking) {
            return at.Exists(key, asking, deadline);
          },
          deadline));
  return replies[0].has_value() && replies[0]->number > 0;
}

Result<bool> RedisServers::Set(const std::string& key, ByteSpan value,
                               Deadline deadline) {
  HEARTH_ASSIGN(
      const auto replies,
      AskAll(
          {&key, 1},
          [&](RedisClient& at, std::span<const std::size_t>, bool asking) {
            return at.Set(key, value, asking, deadline);
          },
          deadline));
  return replies[0].has_value();
}

}  // namespace hearth
