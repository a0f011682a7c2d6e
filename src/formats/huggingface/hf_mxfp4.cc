#include "formats/huggingface/hf_mxfp4.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "formats/describe.h"

namespace hearth {
namespace {

constexpr std::string_view kBlocks = "_blocks";
constexpr std::size_t kCodeBytes = 16;
constexpr std::size_t kBlockBytes = 17;

// The nibbles of 32 codes, from pairs of neighbours to pairs 16 apart.
void Reorder(const std::byte* in, std::byte* out) {
  const auto code = [in](std::size_t i) {
    const auto byte = std::to_integer<unsigned>(in[i / 2]);
    return i % 2 == 0 ? byte & 15u : byte >> 4;
  };
  for (std::size_t i = 0; i < kCodeBytes; ++i) {
    out[i] = static_cast<std::byte>(code(i) | code(i + 16) << 4);
  }
}

Result<void> Join(const SourceTensor& blocks, const SourceTensor* scales,
                  const std::string& name, TensorSet& tensors,
                  LoadedModel& model) {
  std::vector<std::uint64_t> shape = blocks.shape;
  const bool codes =
      blocks.type == "U8" && shape.size() >= 3 && shape.back() == kCodeBytes;
  if (codes) shape.pop_back();
  if (!codes || scales == nullptr || scales->type != "U8" ||
      scales->shape != shape) {
    return {Code::kCorrupt, tensors.label() + ": tensor " +
                                Quoted(blocks.name) +
                                " is no U8 [..., 16] with a U8 tensor " +
                                Quoted(name + "_scales") +
                                " of its shape without the last size"};
  }
  const std::size_t n = scales->bytes.size();
  const auto& bytes =
      model.made.emplace_back(std::make_unique<std::byte[]>(n * kBlockBytes));
  for (std::size_t i = 0; i < n; ++i) {
    bytes[i * kBlockBytes] = scales->bytes[i];
    Reorder(blocks.bytes.data() + i * kCodeBytes,
            bytes.get() + i * kBlockBytes + 1);
  }
  shape.back() *= 32;
  tensors.Replace(blocks.name, scales->name,
                  {.name = name,
                   .type = "MXFP4",
                   .dtype = DType::kMXFP4,
                   .shape = std::move(shape),
                   .bytes = ByteSpan(bytes.get(), n * kBlockBytes),
                   .scales = {}});
  return {};
}

}  // namespace

Result<void> JoinMxfp4(TensorSet& tensors, LoadedModel& model) {
  for (const TensorRecord& record : tensors.Records()) {
    if (!record.name.ends_with(kBlocks)) continue;
    const std::string name =
        record.name.substr(0, record.name.size() - kBlocks.size());
    // A copy: joining moves the tensors about.
    const SourceTensor blocks = *tensors.Find(record.name);
    const SourceTensor* scales = tensors.Find(name + "_scales");
    HEARTH_TRY(Join(blocks, scales, name, tensors, model));
  }
  return {};
}

}  // namespace hearth
