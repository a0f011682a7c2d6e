// What a node of a Redis Cluster says of others: a redirection, a list of
// nodes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "store/remote/cluster_map.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hearth::RedisNode said_by{"h", 6379};
  hearth::ClusterMap map;
  if (const auto to = hearth::ParseRedirect(text, said_by)) {
    map.Move(to->slot, to->to);
  }
  map.Read(text, said_by);
  for (int slot = 0; slot < hearth::kClusterSlots; slot += 61) {
    const hearth::RedisNode* node = map.NodeOf(slot);
    if (node == nullptr) continue;
    if (node->host.empty() || node->port < 1 || node->port > 65535) {
      std::abort();
    }
  }
  return 0;
}
