#include "store/directory/prompt_survey.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "store/directory/layout.h"

namespace hearth {

Result<std::unique_ptr<PromptSurvey>> Survey(const Directory& root) {
  auto survey = std::make_unique<PromptSurvey>();
  HEARTH_ASSIGN(survey->catalog, ScanStore(root));
  const auto prompts = root.Sub(kPromptsName);
  for (const CatalogFile& file : survey->catalog.files) {
    if (file.kind == FileKind::kBlock) survey->blocks[file.id] = &file;
    if (file.kind == FileKind::kState) survey->states[file.id] = &file;
    if (file.kind == FileKind::kPin) survey->pins.insert(file.name);
    if (file.kind == FileKind::kSidecar) {
      survey->notes[StemOf(file.name, kSidecarSuffix)] = &file;
    }
    if (file.kind != FileKind::kManifest || !prompts.ok()) continue;
    auto header = ReadManifest(*prompts, file.name);
    if (!header.ok()) {
      if (header.error().code == Code::kIncompatible) {
        survey->locked.insert(StemOf(file.name, kPromptSuffix));
      }
      continue;
    }
    for (const PromptEntry& entry : header->entries) {
      ++survey->n_sharing[entry.id];
    }
    for (const PromptEntry& state : header->states) {
      ++survey->n_sharing_state[state.id];
    }
    survey->prompts.push_back(
        {StemOf(file.name, kPromptSuffix), &file, std::move(header).value()});
  }
  return survey;
}

namespace {

// Behind the last states the blocks are there in vain.
void AddStates(const PromptSurvey& survey, const PromptHeader& header,
               PromptInfo& info) {
  std::uint64_t last_state = 0;
  for (const PromptEntry& state : header.states) {
    const auto found = survey.states.find(state.id);
    if (found == survey.states.end()) continue;
    const CatalogFile& file = *found->second;
    ++info.n_states;
    info.bytes += file.bytes;
    info.bytes_states += file.bytes;
    info.last_use_ns = std::max(info.last_use_ns, file.last_use_ns);
    if (survey.n_sharing_state.at(state.id) > 1)
      info.bytes_shared += file.bytes;
    if (state.end <= info.n_tokens_usable) last_state = state.end;
  }
  info.carries_states = true;
  info.whole = info.whole && info.n_states > 0;
  info.n_tokens_usable = last_state;
}

}  // namespace

PromptInfo InfoOf(const PromptSurvey& survey, const SurveyedPrompt& prompt,
                  const Directory& root) {
  const PromptHeader& header = prompt.header;
  PromptInfo info;
  info.stem = prompt.stem;
  info.model_name = header.model_name;
  info.model_id = ToHex(header.model_id);
  info.format_id = ToHex(header.format_id);
  info.block_tokens = header.block_tokens;
  info.n_tokens = header.n_tokens();
  const auto step = static_cast<std::uint64_t>(header.block_tokens);
  info.n_blocks_full = info.n_tokens / step;
  info.n_tail_tokens = info.n_tokens % step;
  info.bytes = prompt.file->bytes;
  info.last_use_ns = prompt.file->last_use_ns;
  info.pinned = survey.pins.count(prompt.stem) > 0;
  const auto note = survey.notes.find(prompt.stem);
  if (note != survey.notes.end()) info.bytes += note->second->bytes;
  bool whole_so_far = true, whole_block = true;
  for (std::size_t i = 0; i < header.entries.size(); ++i) {
    const PromptEntry& entry = header.entries[i];
    const auto file = survey.blocks.find(entry.id);
    const bool present = file != survey.blocks.end();
    whole_so_far = whole_so_far && present;
    if (whole_so_far) info.n_tokens_usable = entry.end;
    whole_block = present && (whole_block || header.FirstOf(i) % step == 0);
    info.n_blocks_present += whole_block && entry.end % step == 0 ? 1 : 0;
    if (!present) continue;
    info.bytes += file->second->bytes;
    info.last_use_ns = std::max(info.last_use_ns, file->second->last_use_ns);
    if (survey.n_sharing.at(entry.id) > 1) {
      info.bytes_shared += file->second->bytes;
    }
  }
  info.whole = whole_so_far;
  if (header.carries_states) AddStates(survey, header, info);
  const auto prompts = root.Sub(kPromptsName);
  if (prompts.ok()) info.created_ns = prompts->BirthNs(prompt.file->name);
  return info;
}

}  // namespace hearth
