#include "engine/ram_budget.h"

#include <string>
#include <vector>

namespace hearth {
namespace {

std::string Mebibytes(std::uint64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

}  // namespace

Result<void> RamBudget::MakeRoom(KvHolder& asking, std::uint64_t bytes) {
  if (bytes_max_ == 0) return {};
  Remove(asking);
  Add(asking);
  std::uint64_t held = 0, can_go = 0;
  std::vector<KvHolder*> idle;
  for (KvHolder* holder : holders_) {
    const std::uint64_t n = holder->HeldBytes();
    held += n;
    if (holder == &asking || n == 0 || !holder->Idle()) continue;
    can_go += n;
    idle.push_back(holder);
  }
  if (held + bytes <= bytes_max_) return {};
  if (held - can_go + bytes > bytes_max_) {
    return {Code::kResourceFull,
            "the KV cache would take " + Mebibytes(held - can_go + bytes) +
                " of memory and --kv-ram-budget allows " +
                Mebibytes(bytes_max_) +
                "; shorten the prompt, choose a smaller --kv-quantize or raise "
                "it"};
  }
  for (KvHolder* holder : idle) {
    const std::uint64_t n = holder->HeldBytes();
    holder->LetGo();
    held -= n;
    if (held + bytes <= bytes_max_) break;
  }
  return {};
}

}  // namespace hearth
