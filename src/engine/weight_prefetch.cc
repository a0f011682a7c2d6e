#include "engine/weight_prefetch.h"

#include <sys/sysinfo.h>

#include <cstdint>
#include <vector>

#include "base/start_thread.h"

namespace hearth {
namespace {

// What the kernel maps around a page that is touched. Where it maps more, or
// less, the rest comes with the first step.
constexpr std::size_t kMappedAtOnceBytes = std::size_t{1} << 16;

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

}  // namespace

WeightPrefetch::WeightPrefetch(const LoadedModel& model) {
  if (!Worthwhile(model)) return;
  // A touch, not MADV_POPULATE_READ: that holds the address space's lock, for
  // which the mapping of stored blocks would wait, and it takes longer.
  thread_ = TryStartThread([this, spans = ReadingOrder(model)] {
    for (const ByteSpan span : spans) {
      for (std::size_t at = 0; at < span.size(); at += kMappedAtOnceBytes) {
        if (stop_) return;
        (void)*static_cast<const volatile std::byte*>(span.data() + at);
      }
    }
  });
}

WeightPrefetch::~WeightPrefetch() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace hearth
