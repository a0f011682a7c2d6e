#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "cli/bench/bench.h"
#include "cli/engine_args.h"
#include "cli/units.h"

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

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      text += (i > 0 ? "  " : "") + (i == 0 ? row[i] + pad : pad + row[i]);
    }
    text += "\n";
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

void BenchArgs::Add(CLI::App& command) {
  AddModelOptions(command, engine);
  command.add_option("--kv", kv, "storage of keys and values")
      ->capture_default_str();
  command.add_flag("--json", json, "one JSON object on stdout instead");
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
  const std::string line =
      json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace hearth::cli
