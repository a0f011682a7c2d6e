// Looking: List, Show, Stats, Why, and pins. Deleting, checking and moving:
// store_admin_files.cc.
#include "store/admin/store_admin.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/files/temporary_name.h"
#include "store/admin/prompt_tree.h"
#include "store/budget/budgeted_writer.h"
#include "store/directory/layout.h"
#include "store/directory/prompt_survey.h"
#include "store/directory/root.h"
#include "store/format/token_reader.h"
#include "store/kv_store.h"

namespace hearth {

namespace {

constexpr std::size_t kNoteBytesMax = std::size_t{1} << 20;

std::vector<std::string> KeyDifferences(const PromptHeader& header,
                                        const KvIdentity& identity,
                                        const KvSpec& spec) {
  std::vector<std::string> fields;
  if (header.model_id != identity.model_id) fields.push_back("model");
  if (header.format_id != identity.format_id ||
      header.block_tokens != spec.block_tokens) {
    fields.push_back("kv format");
  }
  // The root also differs when one of the others does.
  if (fields.empty() && header.root_id != RootId(identity)) {
    fields.push_back("name space");
  }
  return fields;
}

}  // namespace

Result<StoreAdmin> StoreAdmin::Open(const std::string& root, FileOps* file_ops,
                                    std::shared_ptr<const Vault> vault) {
  FileOps* ops = file_ops ? file_ops : &FileOps::System();
  HEARTH_ASSIGN(const Directory folder, Directory::Open(*ops, root));
  HEARTH_TRY(PrepareRoot(*ops, root));
  return StoreAdmin(root, ops, std::move(vault));
}

Result<std::vector<PromptInfo>> StoreAdmin::List() const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const auto survey, Survey(root));
  std::vector<PromptInfo> list;
  for (const SurveyedPrompt& prompt : survey->prompts) {
    list.push_back(InfoOf(*survey, prompt, root));
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.last_use_ns != b.last_use_ns ? a.last_use_ns > b.last_use_ns
                                          : a.stem < b.stem;
  });
  return list;
}

Result<std::uint64_t> StoreAdmin::CountLocked() const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const auto survey, Survey(root));
  return std::uint64_t{survey->locked.size()};
}

Result<std::string> StoreAdmin::Resolve(const Directory& root,
                                        const std::string& name) const {
  HEARTH_ASSIGN(const Directory prompts, root.Sub(kPromptsName));
  HEARTH_ASSIGN(const std::vector<std::string> names, prompts.Names());
  std::vector<std::string> fitting;
  for (const std::string& file : names) {
    const std::string stem = StemOf(file, kPromptSuffix);
    if (stem.empty() || IsTemporary(file)) continue;
    if (stem == name) return stem;
    const std::string digits = stem.substr(stem.rfind('-') + 1);
    if (!name.empty() && (stem.starts_with(name) || digits.starts_with(name))) {
      fitting.push_back(stem);
    }
  }
  if (fitting.size() == 1) return fitting[0];
  if (fitting.empty()) {
    return {Code::kNotFound, "no stored prompt is named " + name};
  }
  return {Code::kInvalidArgument, name + " names " +
                                      std::to_string(fitting.size()) +
                                      " stored prompts, among them " +
                                      fitting[0] + " and " + fitting[1]};
}

Result<PromptDetails> StoreAdmin::Show(const std::string& name) const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const std::string stem, Resolve(root, name));
  HEARTH_ASSIGN(const auto survey, Survey(root));
  const auto prompt =
      std::find_if(survey->prompts.begin(), survey->prompts.end(),
                   [&](const auto& p) { return p.stem == stem; });
  if (prompt == survey->prompts.end()) {
    if (survey->locked.count(stem) > 0) {
      return {Code::kIncompatible,
              stem + ": encrypted, and its key was not given"};
    }
    return {Code::kCorrupt, stem + ": its manifest cannot be read"};
  }
  PromptDetails details;
  details.info = InfoOf(*survey, *prompt, root);
  details.tokens = TokenReader(root).Read(prompt->header);
  const auto step = static_cast<std::uint64_t>(prompt->header.block_tokens);
  for (std::size_t i = 0; i < prompt->header.entries.size(); ++i) {
    const PromptEntry& entry = prompt->header.entries[i];
    BlockInfo block;
    block.id = ToHex(entry.id);
    block.first_token = prompt->header.FirstOf(i);
    block.n_tokens = entry.end - block.first_token;
    block.is_piece = block.n_tokens < step;
    block.n_sharing = survey->n_sharing.at(entry.id);
    const auto file = survey->blocks.find(entry.id);
    if (file != survey->blocks.end()) {
      block.present = true;
      block.bytes = file->second->bytes;
    }
    details.blocks.push_back(block);
  }
  for (const PromptEntry& entry : prompt->header.states) {
    StateInfo state;
    state.id = ToHex(entry.id);
    state.n_tokens = entry.end;
    state.n_sharing = survey->n_sharing_state.at(entry.id);
    const auto file = survey->states.find(entry.id);
    state.present = file != survey->states.end();
    if (state.present) state.bytes = file->second->bytes;
    details.states.push_back(std::move(state));
  }
  details.note = Note(stem);
  return details;
}

std::string StoreAdmin::Note(const std::string& stem) const {
  const auto root = Root();
  const auto prompts = root.ok() ? root->Sub(kPromptsName) : root.error();
  if (!prompts.ok()) return "";
  const auto note =
      ReadStored(*prompts, stem + std::string(kSidecarSuffix), kNoteBytesMax);
  return note.ok() ? std::string(AsText(note->bytes)) : "";
}

Result<StoreStats> StoreAdmin::Stats() const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const auto survey, Survey(root));
  StoreStats stats;
  stats.total_bytes = survey->catalog.total_bytes;
  stats.free_bytes = root.FreeBytes();
  for (const CatalogFile& file : survey->catalog.files) {
    KindStats* kind = &stats.other;
    if (file.kind == FileKind::kBlock) kind = &stats.blocks;
    if (file.kind == FileKind::kState) kind = &stats.states;
    if (file.kind == FileKind::kManifest) kind = &stats.manifests;
    if (file.kind == FileKind::kSidecar) kind = &stats.sidecars;
    if (file.kind == FileKind::kMemo) kind = &stats.memos;
    if (file.kind == FileKind::kQuarantined) kind = &stats.quarantined;
    if (file.kind == FileKind::kTemporary) kind = &stats.temporaries;
    ++kind->n_files;
    kind->bytes += file.bytes;
    if (file.kind != FileKind::kBlock) continue;
    stats.n_blocks_loose += survey->n_sharing.count(file.id) == 0 ? 1 : 0;
  }
  std::map<std::pair<std::string, Digest>, ModelStats> models;
  std::unordered_set<Digest> counted, counted_states;
  for (const SurveyedPrompt& prompt : survey->prompts) {
    ModelStats& model =
        models[{prompt.header.model_name, prompt.header.model_id}];
    model.model_name = prompt.header.model_name;
    model.model_id = ToHex(prompt.header.model_id);
    ++model.n_prompts;
    model.bytes += prompt.file->bytes;
    stats.n_pinned += survey->pins.count(prompt.stem);
    for (std::size_t i = 0; i < prompt.header.entries.size(); ++i) {
      const PromptEntry& entry = prompt.header.entries[i];
      const auto file = survey->blocks.find(entry.id);
      if (file == survey->blocks.end() || !counted.insert(entry.id).second) {
        continue;
      }
      model.n_tokens_unique += entry.end - prompt.header.FirstOf(i);
      model.bytes += file->second->bytes;
    }
    for (const PromptEntry& state : prompt.header.states) {
      const auto file = survey->states.find(state.id);
      if (file == survey->states.end()) continue;
      if (counted_states.insert(state.id).second) {
        model.bytes += file->second->bytes;
      }
    }
  }
  for (auto& [key, model] : models) stats.models.push_back(std::move(model));
  return stats;
}

Result<PromptTree> StoreAdmin::Tree() const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const auto survey, Survey(root));
  return MakePromptTree(*survey, root);
}

Result<std::string> StoreAdmin::Pin(const std::string& name) const {
  HEARTH_ASSIGN(Directory root, Root());
  HEARTH_ASSIGN(std::string stem, Resolve(root, name));
  const BudgetedWriter writer(std::move(root), {});
  const FileToWrite pin{PinPath(stem), {}};
  HEARTH_TRY(writer.Write(std::span(&pin, 1), {}));
  return stem;
}

Result<std::string> StoreAdmin::Unpin(const std::string& name) const {
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(std::string stem, Resolve(root, name));
  const auto pins = root.Sub(kPinsName);
  const auto removed =
      pins.ok() ? pins->Remove(stem) : Result<void>(pins.error());
  if (!removed.ok() && removed.error().code != Code::kNotFound) {
    return removed.error();
  }
  return stem;
}

Result<WhyReport> StoreAdmin::Why(const KvIdentity& identity,
                                  const KvSpec& spec,
                                  std::span<const std::int32_t> tokens) const {
  StoreOptions options;
  options.file_ops = ops_;
  options.vault = vault_;
  options.tidy_in_background = false;
  WhyReport report;
  report.n_tokens = tokens.size();
  {
    HEARTH_ASSIGN(const auto store, KvStore::Open(root_, options));
    const StoreMatch match =
        store->Lookup(BlockChain(identity, tokens, spec.block_tokens), spec);
    report.n_tokens_stored = static_cast<std::uint64_t>(match.n_tokens);
    report.miss_reason = match.miss_reason;
  }
  HEARTH_ASSIGN(const Directory root, Root());
  HEARTH_ASSIGN(const auto survey, Survey(root));
  const SurveyedPrompt* nearest = nullptr;
  // The most common tokens; of equals one that this run could use; of equals
  // the last used.
  std::tuple<std::size_t, bool, std::int64_t> best;
  TokenReader reader(root);
  const auto equal = [&](std::span<const std::int32_t> stored) {
    return stored.size() <= tokens.size() &&
           std::equal(stored.begin(), stored.end(), tokens.begin());
  };
  for (const SurveyedPrompt& prompt : survey->prompts) {
    const auto stored = reader.Read(prompt.header, equal);
    const auto n_common =
        static_cast<std::size_t>(std::mismatch(stored.begin(), stored.end(),
                                               tokens.begin(), tokens.end())
                                     .first -
                                 stored.begin());
    const std::tuple<std::size_t, bool, std::int64_t> rank{
        n_common, KeyDifferences(prompt.header, identity, spec).empty(),
        prompt.file->last_use_ns};
    if (nearest != nullptr && rank <= best) continue;
    nearest = &prompt;
    best = rank;
  }
  if (nearest == nullptr) return report;
  report.nearest_stem = nearest->stem;
  report.n_tokens_common = std::get<0>(best);
  report.key_differences = KeyDifferences(nearest->header, identity, spec);
  report.nearest_tokens = reader.Read(nearest->header);
  const std::size_t at = report.n_tokens_common;
  if (at < tokens.size()) report.asked_token = tokens[at];
  if (at < report.nearest_tokens.size()) {
    report.stored_token = report.nearest_tokens[at];
  }
  return report;
}

}  // namespace hearth
