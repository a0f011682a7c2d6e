// Draft heads made in memory: the bytes of a .heads file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model/config.h"

namespace hearth {

struct HeadsTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
};

// The entries of a kind, in the order of the file. `n_hidden`: EAGLE-lite's.
inline std::vector<HeadsTensor> HeadsEntries(const ModelConfig& base,
                                             bool medusa, int n_heads,
                                             int n_hidden) {
  const auto d = static_cast<std::uint64_t>(base.d_model);
  const auto vocab = static_cast<std::uint64_t>(base.vocab_size);
  const auto hidden = static_cast<std::uint64_t>(n_hidden);
  if (!medusa) {
    return {{"fc1.weight", {hidden, 2 * d}},
            {"fc2.weight", {d, hidden}},
            {"norm.weight", {d}},
            {"norm.bias", {d}},
            {"out.weight", {vocab, d}}};
  }
  std::vector<HeadsTensor> entries;
  for (int k = 0; k < n_heads; ++k) {
    const std::string prefix = "heads." + std::to_string(k) + ".";
    entries.push_back({prefix + "res.weight", {d, d}});
    entries.push_back({prefix + "res.bias", {d}});
    entries.push_back({prefix + "out.weight", {vocab, d}});
  }
  return entries;
}

// value(entry name, index in the tensor) gives the weights.
inline std::vector<std::byte> MakeHeads(
    const ModelConfig& base, bool medusa, int n_heads, int n_hidden,
    const std::function<float(const std::string&, std::uint64_t)>& value) {
  std::string list;
  std::vector<std::byte> body;
  for (const HeadsTensor& t : HeadsEntries(base, medusa, n_heads, n_hidden)) {
    std::string shape;
    std::uint64_t n = 1;
    for (const std::uint64_t dim : t.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(dim);
      n *= dim;
    }
    list += (list.empty() ? "" : ",") + ("{\"name\":\"" + t.name) +
            "\",\"shape\":[" + shape + "]}";
    for (std::uint64_t i = 0; i < n; ++i) AppendLe(body, value(t.name, i));
  }
  const auto number = [](const char* key, int n) {
    return "\"" + std::string(key) + "\":" + std::to_string(n) + ",";
  };
  const std::string header =
      std::string("{\"kind\":\"") + (medusa ? "medusa" : "eagle") + "\"," +
      number("numHeads", n_heads) + number("hiddenDim", n_hidden) +
      number("dModel", base.d_model) + number("vocabSize", base.vocab_size) +
      number("baseLayers", base.n_layers) + number("baseDModel", base.d_model) +
      number("baseHeads", base.n_heads) +
      number("baseCtx", base.context_length) + "\"entries\":[" + list + "]}";
  std::vector<std::byte> out;
  const auto put = [&](ByteSpan bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  put(AsBytes("TGMH"));
  AppendLe<std::uint32_t>(out, 1);
  AppendLe(out, static_cast<std::uint32_t>(header.size()));
  put(AsBytes(header));
  put(body);
  return out;
}

}  // namespace hearth
