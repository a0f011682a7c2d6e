#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>

#include "cli/bench/bench.h"
#include "cli/options/engine_args.h"
#include "cli/terminal/units.h"

namespace hearth::cli {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : 0.5 * (values[half - 1] + values[half]);
}

OrderedJson Spread(const std::vector<double>& values) {
  return {{"median", Median(values)}, {"all", values}};
}

std::string SpreadText(const std::vector<double>& values, int decimals) {
  std::string text = Fixed(Median(values), decimals);
  if (values.size() > 1) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    text += " (" + Fixed(*low, decimals) + " - " + Fixed(*high, decimals) + ")";
  }
  return text;
}

std::uint64_t StatusBytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) {
      return 1024 * std::strtoull(line.c_str() + key.size() + 1, nullptr, 10);
    }
  }
  return 0;
}

void BenchArgs::Add(Command& command) {
  AddModelOptions(command, engine);
  command.Name("--kv", kv, "storage of keys and values").Default(kv);
  command.Flag("--json", json, "one JSON object on stdout instead");
  command.Flag("--quiet,-q", quiet, "no progress");
}

Result<void> BenchArgs::Finalize() {
  const auto storage = KvStorageNamed(kv);
  if (!storage.has_value()) {
    return {Code::kInvalidArgument,
            "--kv " + kv + ": no such KV format; `hearth inspect` lists them"};
  }
  engine.kv_storage = *storage;
  return {};
}

std::vector<std::string> BenchArgs::Words() const {
  std::vector<std::string> words = {"--kv", kv};
  if (!engine.model_path.empty()) words.push_back(engine.model_path);
  const auto number = [&words](const char* name, int n) {
    if (n > 0) words.insert(words.end(), {name, std::to_string(n)});
  };
  number("--threads", engine.n_threads);
  number("--threads-prefill", engine.n_threads_prefill);
  for (const AdapterChoice& adapter : engine.adapters) {
    char scale[32];
    const auto end = std::to_chars(scale, scale + sizeof scale, adapter.scale);
    words.insert(words.end(),
                 {"--lora", adapter.path + "=" + std::string(scale, end.ptr)});
  }
  return words;
}

std::vector<std::int32_t> RandomTokens(int n, int n_vocab) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(n));
  std::uint64_t state = 1;
  for (std::int32_t& token : tokens) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    token = static_cast<std::int32_t>((state >> 33) %
                                      static_cast<std::uint64_t>(n_vocab));
  }
  return tokens;
}

void PrintJson(const OrderedJson& json) {
  PrintNow(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) +
           "\n");
}

}  // namespace hearth::cli
