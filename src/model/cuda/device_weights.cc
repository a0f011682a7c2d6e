#include "model/cuda/device_weights.h"

#include <algorithm>
#include <utility>

#include "cuda/kernels/repack.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"

namespace hearth {
namespace {

// What is sent at a time; memory is taken in pieces of at least as much.
constexpr std::uint64_t kPieceBytes = std::uint64_t{32} << 20;

std::uint64_t Padded(std::uint64_t bytes) { return (bytes + 255) / 256 * 256; }

// The form of a format on a device, all but the addresses.
gpu::Matrix FormOf(const WeightMatrix& w) {
  gpu::Matrix m = {};
  m.n_out = w.n_out;
  m.n_in = w.n_in;
  m.in_out = w.layout == WeightLayout::kInOut;
  m.codes_kind = gpu::Codes::kBytes;
  m.scales_kind = gpu::Scales::kHalf;
  const auto super = [&m](bool halves, bool minimums) {
    m.scales_kind = gpu::Scales::kSuper;
    m.halves = halves;
    m.minimums = minimums;
  };
  switch (w.dtype) {
    case DType::kF32:
    case DType::kTgInt4:  // its products are exact floats
      m.codes_kind = gpu::Codes::kF32;
      break;
    case DType::kF16:
      m.codes_kind = gpu::Codes::kF16;
      break;
    case DType::kBF16:
      m.codes_kind = gpu::Codes::kBF16;
      break;
    case DType::kQ4_0:
      m.codes_kind = gpu::Codes::kNibbles;
      m.bias = 8;
      break;
    case DType::kQ4_1:
      m.codes_kind = gpu::Codes::kNibbles;
      m.minimums = true;
      break;
    case DType::kQ5_1:
      m.minimums = true;
      break;
    case DType::kQ2_K:
      m.codes_kind = gpu::Codes::kNibbles;
      super(true, true);
      break;
    case DType::kQ3_K:
      m.codes_kind = gpu::Codes::kNibbles;
      m.bias = 4;
      super(true, false);
      break;
    case DType::kQ4_K:
      m.codes_kind = gpu::Codes::kNibbles;
      super(false, true);
      break;
    case DType::kQ5_K:
      super(false, true);
      break;
    case DType::kQ6_K:
      super(true, false);
      break;
    case DType::kIQ4_XS:
      super(false, false);
      break;
    case DType::kMXFP4:
      m.scales_kind = gpu::Scales::kFloat;
      break;
    case DType::kQ8_0:
    case DType::kQ5_0:
    case DType::kIQ4_NL:
    default:  // CheckDeviceRuns refuses the rest
      break;
  }
  return m;
}

struct Sizes {
  std::uint64_t codes = 0, scales = 0, small = 0;
  std::uint64_t total() const {
    return Padded(codes) + Padded(scales) + Padded(small);
  }
};
Sizes SizesOf(const gpu::Matrix& m) {
  const auto n = static_cast<std::uint64_t>(m.n_out * m.n_in);
  const std::uint64_t groups = n / 32;
  const std::uint64_t minimums = m.minimums ? 2 : 1;
  switch (m.codes_kind) {
    case gpu::Codes::kF32:
      return {4 * n, 0, 0};
    case gpu::Codes::kF16:
    case gpu::Codes::kBF16:
      return {2 * n, 0, 0};
    case gpu::Codes::kNibbles:
    case gpu::Codes::kBytes:
      break;
  }
  Sizes sizes;
  sizes.codes = groups * (m.codes_kind == gpu::Codes::kNibbles ? 16 : 32);
  switch (m.scales_kind) {
    case gpu::Scales::kHalf:
      sizes.scales = groups * 2 * minimums;
      break;
    case gpu::Scales::kFloat:
      sizes.scales = groups * 4;
      break;
    case gpu::Scales::kSuper:
      sizes.scales = groups / 8 * 2 * minimums;
      sizes.small = groups * (m.halves ? 2 : 1) * minimums;
      break;
  }
  return sizes;
}

// f(matrix) and g(floats) for everything that a forward pass reads.
template <class F, class G>
void ForEach(const LoadedModel& model, const F& f, const G& g) {
  const auto linear = [&](const Linear& l) {
    if (l.empty()) return;
    f(l.w);
    g(l.bias);
  };
  const auto norm = [&](const NormWeights& n) {
    g(n.weight);
    g(n.bias);
  };
  const Weights& w = model.weights;
  for (const LayerWeights& layer : w.layers) {
    for (const NormWeights* n :
         {&layer.attention_norm, &layer.post_attention_norm, &layer.mlp_norm,
          &layer.post_mlp_norm}) {
      norm(*n);
    }
    for (const Linear* l :
         {&layer.q, &layer.k, &layer.v, &layer.qkv, &layer.o, &layer.mlp.gate,
          &layer.mlp.up, &layer.mlp.gate_up, &layer.mlp.down}) {
      linear(*l);
    }
    g(layer.q_norm);
    g(layer.k_norm);
    g(layer.sinks);
  }
  norm(w.final_norm);
  linear(w.head);
}

}  // namespace

std::uint64_t DeviceWeights::BytesOf(const LoadedModel& model) {
  std::map<const void*, std::uint64_t> bytes;
  ForEach(
      model,
      [&](const WeightMatrix& w) {
        bytes[w.data] = SizesOf(FormOf(w)).total();
      },
      [&](const std::vector<float>& values) {
        if (!values.empty()) bytes[values.data()] = Padded(4 * values.size());
      });
  std::uint64_t total = kPieceBytes;  // on their way
  for (const auto& [data, n] : bytes) total += n;
  return total;
}

bool DeviceWeights::HasColumns(const LoadedModel& model) {
  bool has = false;
  ForEach(
      model,
      [&](const WeightMatrix& w) {
        has = has || w.layout == WeightLayout::kInOut ||
              w.dtype == DType::kTgInt4;
      },
      [](const std::vector<float>&) {});
  return has;
}

Result<DeviceWeights> DeviceWeights::Send(const LoadedModel& model,
                                          gpu::Device& device) {
  DeviceWeights sent;
  sent.staging_ = gpu::Buffer(device);
  HEARTH_TRY(sent.staging_.Reserve(kPieceBytes));
  Result<void> done;
  ForEach(
      model,
      [&](const WeightMatrix& w) {
        if (done.ok()) done = sent.SendMatrix(w, device);
      },
      [&](const std::vector<float>& values) {
        if (done.ok()) done = sent.SendFloats(values, device);
      });
  HEARTH_TRY(done);
  HEARTH_TRY(device.Wait());
  sent.staging_ = gpu::Buffer();
  return sent;
}

Result<std::uint8_t*> DeviceWeights::Take(std::uint64_t bytes,
                                          gpu::Device& device) {
  const std::uint64_t n = Padded(bytes);
  if (chunks_.empty() || chunks_.back().bytes() - used_ < n) {
    gpu::Buffer chunk(device);
    HEARTH_TRY(chunk.Reserve(std::max(n, kPieceBytes)));
    chunks_.push_back(std::move(chunk));
    used_ = 0;
  }
  auto* at = chunks_.back().As<std::uint8_t>() + used_;
  used_ += n;
  return at;
}

Result<void> DeviceWeights::SendFloats(const std::vector<float>& values,
                                       gpu::Device& device) {
  if (values.empty() || floats_.contains(values.data())) return {};
  HEARTH_ASSIGN(std::uint8_t * at, Take(4 * values.size(), device));
  device.Upload(reinterpret_cast<gpu::Address>(at),
                std::as_bytes(std::span(values)));
  floats_[values.data()] = reinterpret_cast<const float*>(at);
  return {};
}

Result<void> DeviceWeights::SendMatrix(const WeightMatrix& w,
                                       gpu::Device& device) {
  if (matrices_.contains(w.data)) return {};
  gpu::Matrix m = FormOf(w);
  const Sizes sizes = SizesOf(m);
  HEARTH_ASSIGN(std::uint8_t * codes, Take(sizes.codes, device));
  m.codes = codes;
  const auto at = reinterpret_cast<gpu::Address>(codes);
  if (IsBlockQuantised(w.dtype)) {
    HEARTH_TRY(SendBlocks(w, device, m));
  } else if (w.dtype == DType::kTgInt4) {
    std::vector<float> values(static_cast<std::size_t>(w.n_out * w.n_in));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int byte = std::to_integer<int>(w.data[i / 2]);
      const F16 scale{LoadLe<std::uint16_t>(w.scales + i / 64 * 2)};
      values[i] = ToFloat(scale) *
                  static_cast<float>(((byte >> (4 * (i & 1))) & 15) - 8);
    }
    device.Upload(at, std::as_bytes(std::span(values)));
  } else {
    device.Upload(at, ByteSpan(w.data, static_cast<std::size_t>(sizes.codes)));
  }
  matrices_[w.data] = m;
  return {};
}

// Piece by piece through the staging memory, where the device repacks it.
Result<void> DeviceWeights::SendBlocks(const WeightMatrix& w,
                                       gpu::Device& device, gpu::Matrix& sent) {
  const Sizes sizes = SizesOf(sent);
  HEARTH_ASSIGN(std::uint8_t * scales, Take(sizes.scales, device));
  HEARTH_ASSIGN(std::uint8_t * small, Take(sizes.small, device));
  sent.scales = scales;
  sent.small = small;
  const DTypeInfo& info = InfoOf(w.dtype);
  const std::int64_t n_blocks = w.n_out * w.n_in / info.block_elements;
  const std::int64_t per_piece =
      static_cast<std::int64_t>(kPieceBytes) / info.block_bytes;
  const std::int64_t groups = info.block_elements / 32;
  for (std::int64_t block = 0; block < n_blocks; block += per_piece) {
    const std::int64_t n = std::min(per_piece, n_blocks - block);
    device.Upload(staging_.at(),
                  ByteSpan(w.data + block * info.block_bytes,
                           static_cast<std::size_t>(n * info.block_bytes)));
    const gpu::RepackArgs args{.type = static_cast<gpu::FileType>(w.dtype),
                               .from = staging_.As<std::uint8_t>(),
                               .first_group = block * groups,
                               .n_groups = n * groups,
                               .codes = const_cast<std::uint8_t*>(sent.codes),
                               .scales = scales,
                               .small = small};
    device.Run(gpu::Kernel::kRepack,
               {static_cast<unsigned>((n * groups + gpu::kRepackThreads - 1) /
                                      gpu::kRepackThreads)},
               args);
  }
  return {};
}

}  // namespace hearth
