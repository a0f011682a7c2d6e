#include "engine/weight_prefetch.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hearth {
namespace {

// Between two looks at the stop flag.
constexpr std::uintptr_t kPieceBytes = std::uintptr_t{1} << 18;

// What a step reads: the layers, then the output matrix. An embedding that is
// not the output matrix too gives a step a row or two.
std::vector<ByteSpan> ReadingOrder(const LoadedModel& model) {
  const std::byte* head = model.weights.head.w.data;
  std::vector<ByteSpan> spans, last;
  for (const TensorRecord& tensor : model.tensors) {
    if (tensor.bytes.data() == head) {
      last.push_back(tensor.bytes);
    } else if (tensor.bytes.data() != model.weights.token_embedding.data) {
      spans.push_back(tensor.bytes);
    }
  }
  spans.insert(spans.end(), last.begin(), last.end());
  return spans;
}

bool Worthwhile(const LoadedModel& model) {
  if (model.files.empty() || model.config.n_experts > 0) return false;
  std::uint64_t bytes = 0;
  for (const MappedFile& file : model.files) bytes += file.bytes().size();
  struct sysinfo memory;
  return ::sysinfo(&memory) == 0 &&
         bytes / 3 < std::uint64_t{memory.totalram} * memory.mem_unit / 4;
}

// False: the kernel (before 5.14) cannot.
bool MapIn(std::uintptr_t begin, std::uintptr_t end) {
#ifdef MADV_POPULATE_READ
  // A page that cannot be read is reported by whoever needs it.
  return ::madvise(reinterpret_cast<void*>(begin), end - begin,
                   MADV_POPULATE_READ) == 0;
#else
  (void)begin, (void)end;
  return false;
#endif
}

}  // namespace

WeightPrefetch::WeightPrefetch(const LoadedModel& model) {
  if (!Worthwhile(model)) return;
  thread_ = std::thread([this, spans = ReadingOrder(model)] {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    for (const ByteSpan span : spans) {
      auto at = reinterpret_cast<std::uintptr_t>(span.data()) / page * page;
      const auto end = reinterpret_cast<std::uintptr_t>(span.data()) +
                       span.size();
      for (; at < end; at += kPieceBytes) {
        if (stop_ || !MapIn(at, std::min(end, at + kPieceBytes))) return;
      }
    }
  });
}

WeightPrefetch::~WeightPrefetch() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace hearth
