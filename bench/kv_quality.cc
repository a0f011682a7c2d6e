// What the KV formats cost in quality, as a table: Kullback-Leibler divergence
// of the next-token distribution from the one with fp32 KV, and how often both
// find the same token likeliest.
//
//   kv_quality TEXT [MODEL [TOKENS]]     MODEL "": the model inside the program
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "testing/next_token.h"

namespace hearth {
namespace {

struct Storage {
  KvStorage keys, values;
};

struct Quality {
  double kl_mean = 0, kl_p99 = 0, top1 = 0, nll = 0;
};

// Over windows of `context` tokens: positions of the first block, which no
// format touches, are left out.
Result<std::vector<Quality>> Measure(const std::string& model,
                                     const std::string& text, int n_tokens,
                                     const std::vector<Storage>& storages) {
  std::vector<std::vector<double>> kls(storages.size());
  std::vector<Quality> qualities(storages.size());
  std::vector<std::unique_ptr<Engine>> engines;
  for (const Storage& storage : storages) {
    EngineOptions options{.model_path = model};
    options.kv_keys = storage.keys;
    options.kv_values = storage.values;
    HEARTH_ASSIGN(auto engine, Engine::Open(options));
    engines.push_back(std::move(engine));
  }
  HEARTH_ASSIGN(const auto ids, engines[0]->codec().Encode(text, false));
  const auto context = static_cast<std::size_t>(
      std::min(1024, engines[0]->info().context_length));
  const auto vocab = static_cast<std::size_t>(engines[0]->info().vocab_size);
  const std::size_t n =
      std::min(ids.size(), static_cast<std::size_t>(n_tokens));
  for (std::size_t first = 0; first + context <= n; first += context) {
    const auto window = std::span(ids).subspan(first, context);
    HEARTH_ASSIGN(const auto reference, engines[0]->Logits(window, {}));
    for (std::size_t f = 0; f < storages.size(); ++f) {
      HEARTH_ASSIGN(const auto logits, engines[f]->Logits(window, {}));
      for (std::size_t t = 64; t + 1 < context; ++t) {
        const auto p = LogSoftmax({reference.data() + t * vocab, vocab});
        const auto q = LogSoftmax({logits.data() + t * vocab, vocab});
        kls[f].push_back(Divergence(p, q));
        qualities[f].top1 += SameFirstChoice(p, q);
        qualities[f].nll -= q[static_cast<std::size_t>(window[t + 1])];
      }
    }
  }
  for (std::size_t f = 0; f < storages.size(); ++f) {
    if (kls[f].empty()) {
      return {Code::kInvalidArgument, "the text is shorter than one context"};
    }
    const auto count = static_cast<double>(kls[f].size());
    for (const double kl : kls[f]) qualities[f].kl_mean += kl / count;
    std::sort(kls[f].begin(), kls[f].end());
    qualities[f].kl_p99 = kls[f][kls[f].size() * 99 / 100];
    qualities[f].top1 /= count;
    qualities[f].nll /= count;
  }
  return qualities;
}

int Run(const std::string& path, const std::string& model, int n_tokens) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return 1;
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<Storage> storages = {{KvStorage::kFp32, KvStorage::kFp32},
                                         {KvStorage::kFp16, KvStorage::kFp16},
                                         {KvStorage::kBf16, KvStorage::kBf16},
                                         {KvStorage::kInt8, KvStorage::kInt8},
                                         {KvStorage::kInt8, KvStorage::kInt4},
                                         {KvStorage::kInt4, KvStorage::kInt8},
                                         {KvStorage::kInt4, KvStorage::kInt4}};
  const auto measured = Measure(model, text, n_tokens, storages);
  if (!measured.ok()) {
    std::fprintf(stderr, "%s\n", measured.error().message.c_str());
    return 1;
  }
  std::printf(
      "| keys | values | KL mean | KL 99 %% | same first choice | nats/token "
      "|\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (std::size_t f = 0; f < storages.size(); ++f) {
    const Quality& q = (*measured)[f];
    std::printf("| %s | %s | %.2e | %.2e | %.2f %% | %.4f |\n",
                std::string(NameOf(storages[f].keys)).c_str(),
                std::string(NameOf(storages[f].values)).c_str(), q.kl_mean,
                q.kl_p99, 100 * q.top1, q.nll);
  }
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: kv_quality TEXT [MODEL [TOKENS]]\n");
    return 1;
  }
  return hearth::Run(argv[1], argc > 2 ? argv[2] : "",
                     argc > 3 ? std::stoi(argv[3]) : 16384);
}
