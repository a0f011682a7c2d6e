// hearth bench store: what saving and loading KV costs on one disk.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/bench/bench.h"
#include "cli/units.h"
#include "hearth/measure.h"

namespace hearth::cli {
namespace {

struct StoreArgs {
  std::string dir;
  std::uint64_t bytes = 256'000'000;
  int repetitions = 3;
  bool from_disk = false;
  bool json = false;
};

struct Row {
  const char* key;
  const char* text;
  double StoreRates::*seconds;
};

constexpr Row kRows[] = {
    {"disk_write", "the disk alone: one file, flushed",
     &StoreRates::disk_write_s},
    {"save", "store: durable write", &StoreRates::save_s},
    {"file_read", "that one file: read again", &StoreRates::file_read_s},
    {"memory_copy", "memory: a copy into fresh pages",
     &StoreRates::memory_copy_s},
    {"verified_load", "store: found, verified, mapped", &StoreRates::verify_s},
    {"mapped_load", "store: found, mapped, not verified", &StoreRates::map_s},
    {"mapped_read", "reading what was mapped", &StoreRates::read_s},
    {"encrypted_save", "encrypted: durable write",
     &StoreRates::encrypted_save_s},
    {"encrypted_load", "encrypted: found, decrypted, verified",
     &StoreRates::encrypted_load_s},
};

int RunStore(const StoreArgs& args) {
  const std::string dir = args.dir.empty()
                              ? std::filesystem::temp_directory_path().string()
                              : args.dir;
  std::vector<StoreRates> runs;
  for (int r = 0; r < args.repetitions; ++r) {
    const auto rates = MeasureStore(dir, args.bytes, args.from_disk);
    if (!rates.ok()) return Fail(rates.error());
    runs.push_back(*rates);
  }
  OrderedJson json;
  json["dir"] = dir;
  json["bytes"] = runs[0].bytes;
  json["blocks"] = runs[0].n_blocks;
  json["from_disk"] = args.from_disk;
  std::vector<std::vector<std::string>> table = {{"", "GB/s", "ms"}};
  for (const Row& row : kRows) {
    std::vector<double> gb_per_s, ms;
    for (const StoreRates& run : runs) {
      const double seconds = run.*row.seconds;
      gb_per_s.push_back(1e-9 * static_cast<double>(run.bytes) / seconds);
      ms.push_back(1e3 * seconds);
    }
    json[row.key] = {{"GB_per_s", Spread(gb_per_s)}, {"ms", Spread(ms)}};
    table.push_back({row.text, SpreadText(gb_per_s, 2), Fixed(Median(ms), 2)});
  }
  if (args.json) {
    PrintJson(json);
    return kOk;
  }
  std::printf("%d blocks, %s, in %s%s\n\n%s", runs[0].n_blocks,
              HumanBytes(runs[0].bytes).c_str(), dir.c_str(),
              args.from_disk ? ", loaded from the disk" : "",
              FormatTable(table).c_str());
  return kOk;
}

}  // namespace

void AddBenchStore(CLI::App& bench, int& exit_code) {
  auto args = std::make_shared<StoreArgs>();
  CLI::App* command = bench.add_subcommand(
      "store", "Measure durable writing, verified loading and mapping of KV");
  command->add_option("--dir", args->dir,
                      "on the disk to measure; default: the temporary folder");
  command->add_option("--bytes", args->bytes, "to store (K, M, G are known)")
      ->transform(CLI::AsSizeValue(true))
      ->capture_default_str();
  command
      ->add_option("--repetitions,-r", args->repetitions,
                   "medians are reported")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_flag("--from-disk", args->from_disk,
                    "drop the files from the page cache before loading");
  command->add_flag("--json", args->json, "one JSON object on stdout instead");
  command->callback([args, &exit_code] { exit_code = RunStore(*args); });
}

}  // namespace hearth::cli
