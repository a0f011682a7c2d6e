#include "convert/tinygpt/tinygpt_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/bytes.h"
#include "convert/stream_writer.h"
#include "formats/describe.h"
#include "formats/tensors/tensor_names.h"
#include "tensor/half.h"

namespace hearth {
namespace {

// The skeletons of the training program: bytes in, learned positions, tied
// head, MLP of four times the width.
struct TinygptPreset {
  std::string_view name;
  int layers, heads, d_model, context;
};

constexpr std::array<TinygptPreset, 6> kPresets = {{
    {"tiny", 4, 4, 128, 128},
    {"small", 6, 6, 192, 256},
    {"huge", 12, 8, 256, 256},
    {"mega", 24, 8, 512, 1024},
    {"behemoth", 32, 16, 1024, 1024},
    {"titan", 48, 24, 1536, 1024},
}};
constexpr int kVocab = 256;
// Where the body starts in the file, so that mapped rows are aligned.
constexpr std::size_t kBodyAlignment = 64;

enum class Init { kNormal, kZero, kOne };

struct Tensor {
  std::string name;
  int rows, columns;  // columns 0: one-dimensional
  Init init;
  float deviation;  // of kNormal

  std::uint64_t Elements() const {
    return std::uint64_t{static_cast<unsigned>(rows)} *
           static_cast<unsigned>(std::max(columns, 1));
  }
};

// In the order of the training program's manifest.
std::vector<Tensor> Manifest(const TinygptPreset& p, const TinygptInit& init) {
  constexpr float kDeviation = 0.02f;
  // Layers that feed the residual stream start smaller, so that its size does
  // not grow with depth.
  const float residual =
      kDeviation / std::sqrt(2.0f * static_cast<float>(p.layers));
  const int d_kv = p.d_model / p.heads * init.n_kv_heads;
  std::vector<Tensor> out;
  const auto matrix = [&](std::string name, int rows, int columns,
                          float deviation) {
    out.push_back({std::move(name), rows, columns, Init::kNormal, deviation});
  };
  const auto linear = [&](Role role, int layer, int n_out, int n_in,
                          float deviation) {
    matrix(WeightName(kTinygptNames, role, layer), n_out, n_in, deviation);
    out.push_back(
        {BiasName(kTinygptNames, role, layer), n_out, 0, Init::kZero, 0});
  };
  const auto norm = [&](Role role, int layer) {
    out.push_back(
        {WeightName(kTinygptNames, role, layer), p.d_model, 0, Init::kOne, 0});
    out.push_back(
        {BiasName(kTinygptNames, role, layer), p.d_model, 0, Init::kZero, 0});
  };
  matrix(WeightName(kTinygptNames, Role::kTokenEmbedding), kVocab, p.d_model,
         kDeviation);
  matrix(WeightName(kTinygptNames, Role::kPositionEmbedding), p.context,
         p.d_model, kDeviation);
  norm(Role::kFinalNorm, 0);
  for (int i = 0; i < p.layers; ++i) {
    norm(Role::kAttentionNorm, i);
    if (init.yoco && i > std::max(0, p.layers / 2 - 1)) {
      linear(Role::kCrossQ, i, p.d_model, p.d_model, kDeviation);
      linear(Role::kCrossO, i, p.d_model, p.d_model, residual);
    } else {
      linear(Role::kQ, i, p.d_model, p.d_model, kDeviation);
      linear(Role::kK, i, d_kv, p.d_model, kDeviation);
      linear(Role::kV, i, d_kv, p.d_model, kDeviation);
      linear(Role::kO, i, p.d_model, p.d_model, residual);
    }
    norm(Role::kMlpNorm, i);
    linear(Role::kUp, i, 4 * p.d_model, p.d_model, kDeviation);
    linear(Role::kDown, i, p.d_model, 4 * p.d_model, residual);
  }
  return out;
}

std::string HeaderText(const TinygptPreset& p, const TinygptInit& init,
                       const std::vector<Tensor>& manifest) {
  const auto number = [](const char* key, std::uint64_t value) {
    return "\"" + std::string(key) + "\":" + std::to_string(value);
  };
  const auto size = [](int n) { return static_cast<std::uint64_t>(n); };
  std::string text =
      "{\"config\":{" + number("layers", size(p.layers)) + "," +
      number("dModel", size(p.d_model)) + "," + number("ctx", size(p.context)) +
      "," + number("heads", size(p.heads)) + "," +
      number("nKvHeads", size(init.n_kv_heads)) + "," +
      number("dMlp", size(4 * p.d_model)) + "," + number("vocabSize", kVocab) +
      (init.yoco ? ",\"useYOCO\":true" : "") +
      "},\"weightDtype\":\"fp16\","
      "\"includesOptimizerState\":false,\"manifest\":[";
  std::uint64_t offset = 0;
  for (const Tensor& t : manifest) {
    if (offset > 0) text += ",";
    text += "{\"name\":\"" + t.name + "\",\"shape\":[" +
            std::to_string(t.rows) +
            (t.columns > 0 ? "," + std::to_string(t.columns) : "") + "]," +
            number("floatOffset", offset) + "}";
    offset += t.Elements();
  }
  text += "],";
  text += number("stateByteLength", 2 * offset) + "}";
  while ((16 + text.size()) % kBodyAlignment != 0) text += ' ';
  return text;
}

// A counter-based generator: number `i` of stream `key`, by the finaliser of
// SplitMix64. Nothing depends on what was drawn before.
std::uint64_t RandomBits(std::uint64_t key, std::uint64_t i) {
  std::uint64_t x = key + (i + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Close to a standard normal: the sum of four uniform 16-bit numbers, which is
// integer arithmetic up to one exact conversion and thus the same everywhere.
float RandomNormal(std::uint64_t bits) {
  const auto sum = static_cast<int>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                    (bits >> 32 & 0xffff) + (bits >> 48));
  constexpr float kDeviationOfSum = 37837.23f;  // 65536 * sqrt(4 / 12)
  return static_cast<float>(sum - 2 * 0xffff) / kDeviationOfSum;
}

Result<void> AppendTensor(const Tensor& t, std::uint64_t key,
                          StreamWriter& file) {
  constexpr std::uint64_t kBatch = 1 << 18;
  std::vector<F16> batch;
  for (std::uint64_t i = 0; i < t.Elements(); i += kBatch) {
    batch.resize(std::min(kBatch, t.Elements() - i));
    for (std::size_t j = 0; j < batch.size(); ++j) {
      const float value =
          t.init == Init::kOne ? 1.0f
          : t.init == Init::kZero
              ? 0.0f
              : RandomNormal(RandomBits(key, i + j)) * t.deviation;
      batch[j] = ToF16(value);
    }
    HEARTH_TRY(file.Append(std::as_bytes(std::span(batch))));
  }
  return {};
}

}  // namespace

std::string TinygptPresetNames() {
  std::string names;
  for (const TinygptPreset& p : kPresets) {
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  return names;
}

Result<void> InitTinygpt(std::string_view preset, const std::string& path,
                         TinygptInit init, const WriteOptions& options) {
  const auto it = std::find_if(kPresets.begin(), kPresets.end(),
                               [&](const auto& p) { return p.name == preset; });
  if (it == kPresets.end()) {
    return {Code::kInvalidArgument, "no preset is called " + Quoted(preset) +
                                        "; there are " + TinygptPresetNames()};
  }
  if (init.n_kv_heads == 0) init.n_kv_heads = it->heads;
  if (init.n_kv_heads < 1 || it->heads % init.n_kv_heads != 0) {
    return {Code::kInvalidArgument,
            std::to_string(init.n_kv_heads) + " KV heads do not divide the " +
                std::to_string(it->heads) + " heads of " + Quoted(preset)};
  }
  const std::vector<Tensor> manifest = Manifest(*it, init);
  const std::string header = HeaderText(*it, init, manifest);
  std::uint64_t total = 12 + header.size() + sizeof(std::int32_t);
  for (const Tensor& t : manifest) total += t.Elements() * sizeof(F16);
  HEARTH_ASSIGN(StreamWriter file,
                StreamWriter::Create(path, options, {}, total));
  HEARTH_TRY(file.Append(AsBytes("TGPT")));
  std::vector<std::byte> head;
  AppendLe<std::uint32_t>(head, 2);
  AppendLe(head, static_cast<std::uint32_t>(header.size()));
  HEARTH_TRY(file.Append(head));
  HEARTH_TRY(file.Append(AsBytes(header)));
  const std::int32_t step = 0;
  HEARTH_TRY(file.Append(std::as_bytes(std::span(&step, 1))));
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    HEARTH_TRY(AppendTensor(manifest[i], RandomBits(init.seed, i), file));
  }
  return file.Commit();
}

}  // namespace hearth
