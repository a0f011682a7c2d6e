#include "cli/cache/cache_text.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/terminal/table.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"

namespace hearth::cli {
namespace {

// As a JSON string: the line breaks and blanks of an excerpt show.
std::string Quoted(const std::string& text) {
  using Json = nlohmann::json;
  return Escaped(
      Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string LockedLine(std::uint64_t n, const char* what) {
  if (n == 0) return {};
  return std::to_string(n) + what + "; --cache-key-file names the key\n";
}

}  // namespace

std::string ToText(const PromptList& list) {
  Table table = {
      {"PROMPT", "TOKENS", "USABLE", "SIZE", "SHARED", "LAST USE", ""}};
  for (const PromptInfo& p : list.prompts) {
    table.push_back({p.stem, std::to_string(p.n_tokens),
                     std::to_string(p.n_tokens_usable), HumanBytes(p.bytes),
                     HumanBytes(p.bytes_shared), HumanAgo(p.last_use_ns),
                     p.pinned ? "pinned" : ""});
  }
  const std::string text =
      table.size() > 1 ? FormatTable(table) : "no stored prompts\n";
  return text + LockedLine(list.n_locked,
                           " prompts of another key, or of none, are not "
                           "shown");
}

std::string ToText(const PromptDetails& details) {
  const PromptInfo& info = details.info;
  const std::string text =
      Escaped(info.stem) + ": " + std::to_string(info.n_tokens) + " tokens, " +
      std::to_string(info.n_tokens_usable) + " usable, " +
      HumanBytes(info.bytes) + "\nmodel id  " + info.model_id + "\n\n";
  Table table = {{"BLOCK", "TOKENS", "SIZE", "SHARED BY", ""}};
  for (const BlockInfo& b : details.blocks) {
    table.push_back({b.id.substr(0, 16),
                     std::to_string(b.first_token) + "-" +
                         std::to_string(b.first_token + b.n_tokens - 1),
                     HumanBytes(b.bytes), std::to_string(b.n_sharing),
                     !b.present   ? "MISSING"
                     : b.is_piece ? "piece"
                                  : ""});
  }
  if (details.states.empty()) {
    return text + FormatTable(table) +
           (info.carries_states ? "\nno states are stored\n" : "");
  }
  Table states = {{"STATES BEHIND", "SIZE", "SHARED BY", ""}};
  for (const StateInfo& s : details.states) {
    states.push_back({std::to_string(s.n_tokens) + " tokens",
                      HumanBytes(s.bytes), std::to_string(s.n_sharing),
                      s.present ? "" : "MISSING"});
  }
  return text + FormatTable(table) + "\n" + FormatTable(states);
}

std::string ToText(const StoreStats& stats) {
  const std::pair<const char*, const KindStats*> kinds[] = {
      {"blocks", &stats.blocks},
      {"states", &stats.states},
      {"manifests", &stats.manifests},
      {"sidecars", &stats.sidecars},
      {"memos", &stats.memos},
      {"quarantined", &stats.quarantined},
      {"temporaries", &stats.temporaries},
      {"other", &stats.other}};
  Table table = {{"KIND", "FILES", "SIZE"}};
  for (const auto& [name, kind] : kinds) {
    table.push_back(
        {name, std::to_string(kind->n_files), HumanBytes(kind->bytes)});
  }
  table.push_back({"all", "", HumanBytes(stats.total_bytes)});
  Table models = {{"MODEL", "PROMPTS", "TOKENS", "SIZE"}};
  for (const ModelStats& m : stats.models) {
    models.push_back({m.model_name, std::to_string(m.n_prompts),
                      std::to_string(m.n_tokens_unique), HumanBytes(m.bytes)});
  }
  std::string text = FormatTable(table);
  if (models.size() > 1) text += "\n" + FormatTable(models);
  return text;
}

std::string ToText(const VerifyReport& report) {
  std::string text = std::to_string(report.n_files) + " files, " +
                     HumanBytes(report.bytes) + " read in " +
                     Fixed(report.seconds, 2) + " s, " +
                     std::to_string(report.defects.size()) + " damaged\n";
  for (const Defect& d : report.defects) {
    text += Escaped(d.path + ": " + d.reason) +
            (d.set_aside ? " (set aside)\n" : "\n");
  }
  text += LockedLine(report.n_locked,
                     " files of another key, or of none, were not read");
  for (const std::string& stem : report.incomplete) {
    text += Escaped(stem) + ": blocks or states are missing\n";
  }
  return text;
}

std::string ToText(const GcReport& report) {
  std::string text = std::to_string(report.n_files) + " files deleted, " +
                     HumanBytes(report.bytes) + "; " +
                     HumanBytes(report.bytes_left) + " left\n";
  for (const std::string& line : report.left) {
    text += "not deleted: " + Escaped(line) + "\n";
  }
  return text;
}

std::string ToText(const CacheMiss& miss) {
  const std::string common = std::to_string(miss.n_tokens_common);
  std::string text = std::to_string(miss.n_tokens_stored) + " of " +
                     std::to_string(miss.n_tokens) +
                     " tokens would be reused\n";
  if (!miss.reason.empty()) text += "reason    " + Escaped(miss.reason) + "\n";
  if (miss.cost) {
    text += "worth it  loading them " + HumanMs(miss.cost->load_ms) +
            ", computing them " + HumanMs(miss.cost->compute_ms) +
            (miss.cost->pays ? "\n" : ": computed, unless --cache-always\n");
  }
  if (miss.n_tokens_by_text) {
    text += "by text   " + std::to_string(*miss.n_tokens_by_text) +
            " tokens are stored under other ids; --cache-by-text uses them\n";
  }
  if (miss.nearest_stem.empty()) {
    return text + "nothing stored comes near this prompt\n";
  }
  text += "nearest   " + Escaped(miss.nearest_stem) + ", " + common +
          " tokens in common\n";
  for (const std::string& key : miss.key_differences) {
    text += "differs   in its " + key + "\n";
  }
  if (miss.parting) {
    text += "parts at  token " + common + ", byte " +
            std::to_string(miss.parting->byte) + "\nasked     " +
            Quoted(miss.parting->asked) + "\nstored    " +
            Quoted(miss.parting->stored) + "\n";
  }
  return text;
}

}  // namespace hearth::cli
