#include "store/remote/cluster_map.h"

#include <algorithm>
#include <charconv>

namespace hearth {
namespace {

constexpr std::size_t kHostBytesMax = 255;

std::optional<int> Number(std::string_view text, int most) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < 0 || value > most) {
    return std::nullopt;
  }
  return value;
}

// The next word, which is taken off `text`.
std::string_view Word(std::string_view& text, char end = ' ') {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return word;
}

// "10.0.0.7:6381"; behind an IPv6 address the last colon counts.
std::optional<RedisNode> ParseNode(std::string_view text,
                                   const RedisNode& said_by) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon > kHostBytesMax) {
    return std::nullopt;
  }
  const auto port = Number(text.substr(colon + 1), 65535);
  if (!port.has_value() || *port == 0) return std::nullopt;
  const std::string_view host = text.substr(0, colon);
  // What goes to the resolver and into messages.
  const bool odd = std::any_of(host.begin(), host.end(), [](unsigned char c) {
    return c <= ' ' || c >= 0x7f;
  });
  if (odd || host == "?") return std::nullopt;
  return RedisNode{host.empty() ? said_by.host : std::string(host), *port};
}

}  // namespace

int ClusterSlotOf(std::string_view key) {
  unsigned crc = 0;
  for (const char c : key) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000u) != 0 ? (crc << 1) ^ 0x1021u : crc << 1;
    }
    crc &= 0xffffu;
  }
  return static_cast<int>(crc) % kClusterSlots;
}

std::optional<RedisRedirect> ParseRedirect(std::string_view text,
                                           const RedisNode& said_by) {
  RedisRedirect redirect;
  const std::string_view kind = Word(text);
  if (kind != "MOVED" && kind != "ASK") return std::nullopt;
  redirect.once = kind == "ASK";
  const auto slot = Number(Word(text), kClusterSlots - 1);
  const auto node = ParseNode(Word(text), said_by);
  if (!slot.has_value() || !node.has_value()) return std::nullopt;
  redirect.slot = *slot;
  redirect.to = *node;
  return redirect;
}

std::uint16_t ClusterMap::NumberOf(const RedisNode& node) {
  auto at = std::find(nodes_.begin(), nodes_.end(), node);
  if (at == nodes_.end()) {
    if (nodes_.size() >= kNodesMax) return 0;
    at = nodes_.insert(nodes_.end(), node);
  }
  return static_cast<std::uint16_t>(at - nodes_.begin() + 1);
}

void ClusterMap::Move(int slot, const RedisNode& to) {
  slots_[static_cast<std::size_t>(slot)] = NumberOf(to);
}

const RedisNode* ClusterMap::NodeOf(int slot) const {
  const std::uint16_t number = slots_[static_cast<std::size_t>(slot)];
  return number == 0 ? nullptr : &nodes_[number - 1u];
}

// A line a node: <id> <ip:port@cport[,hostname]> <flags> <master> <ping> <pong>
// <epoch> <link> <slot or from-to> ...
void ClusterMap::Read(std::string_view text, const RedisNode& said_by) {
  while (!text.empty()) {
    std::string_view line = Word(text, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    (void)Word(line);
    std::string_view address = Word(line);
    const std::string_view flags = Word(line);
    if (flags.find("master") == std::string_view::npos ||
        flags.find("fail") != std::string_view::npos) {
      continue;
    }
    const auto node = ParseNode(Word(address, '@'), said_by);
    if (!node.has_value()) continue;
    for (int i = 0; i < 5; ++i) (void)Word(line);
    while (!line.empty()) {
      std::string_view range = Word(line);
      // "[93->-id]": on its way; who has it says so.
      const auto first = Number(Word(range, '-'), kClusterSlots - 1);
      if (!first.has_value()) continue;
      const auto last =
          range.empty() ? first : Number(range, kClusterSlots - 1);
      if (!last.has_value()) continue;
      for (int slot = *first; slot <= *last; ++slot) Move(slot, *node);
    }
  }
}

}  // namespace hearth
