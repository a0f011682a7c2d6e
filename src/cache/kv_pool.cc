#include "cache/kv_layout.h"
#include "cache/kv_sequence.h"

namespace hearth {

Result<std::shared_ptr<BlockPool>> MakeKvPool(const KvSpec& spec,
                                              const KvRetention& retention,
                                              const KvRoom& room) {
  return BlockPool::Make(
      {.block_bytes = KvLayout(spec, spec.block_tokens).block_bytes(),
       .tail_bytes = spec.quantised() ? KvLayout::Tail(spec).block_bytes() : 0,
       .n_blocks = room.n_blocks,
       .preallocate = room.preallocate,
       .whole = !retention.windowed(),
       .bytes_max = room.bytes_max});
}

}  // namespace hearth
