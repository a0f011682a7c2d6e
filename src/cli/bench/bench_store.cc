// hearth bench store: what saving and loading KV costs on one disk.
#include <filesystem>
#include <memory>
#include <string>

#include "cli/bench/bench.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/units.h"
#include "hearth/measure.h"

namespace hearth::cli {
namespace {

struct StoreArgs {
  std::string dir;
  std::uint64_t bytes = 256'000'000;
  int repetitions = 3;
  bool from_disk = false;
  bool json = false;
  bool quiet = false;
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
  Progress progress("store", Unit::kRuns, args.quiet);
  for (int r = 0; r < args.repetitions; ++r) {
    const auto rates = MeasureStore(dir, args.bytes, args.from_disk);
    if (!rates.ok()) return Fail(rates.error());
    runs.push_back(*rates);
    progress.Update(runs.size(), static_cast<std::uint64_t>(args.repetitions));
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
  Print(std::to_string(runs[0].n_blocks) + " blocks, " +
        HumanBytes(runs[0].bytes) + ", in " + Escaped(dir) +
        (args.from_disk ? ", loaded from the disk" : "") + "\n\n" +
        FormatTable(table));
  return kOk;
}

}  // namespace

void AddBenchStore(const Command& bench, int& exit_code) {
  auto args = std::make_shared<StoreArgs>();
  Command command = bench.Sub(
      "store", "Measure durable writing, verified loading and mapping of KV");
  command.Name("--dir", args->dir,
               "on the disk to measure; default: the temporary folder");
  command.Size("--bytes", args->bytes, "to store (500M, 2G)")
      .Default(std::to_string(args->bytes));
  command
      .Integer("--repetitions,-r", args->repetitions, 1, 1000,
               "medians are reported")
      .Default(std::to_string(args->repetitions));
  command.Flag("--from-disk", args->from_disk,
               "drop the files from the page cache before loading");
  command.Flag("--json", args->json, "one JSON object on stdout instead");
  command.Flag("--quiet,-q", args->quiet, "no progress");
  command.Run(exit_code, [args] { return RunStore(*args); });
}

}  // namespace hearth::cli
