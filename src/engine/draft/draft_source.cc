#include "engine/draft/drafter.h"
#include "engine/engine_core.h"
#include "formats/tinygpt/heads_file.h"

namespace hearth {

Result<std::unique_ptr<DraftSource>> OpenDraftSource(EngineCore& target) {
  const std::string& draft = target.options.draft;
  if (draft.empty()) return std::unique_ptr<DraftSource>();
  if (draft == "prompt-lookup") return MakePromptLookup();
  if (draft == "mtp") return OpenMtp(target);
  if (IsDraftHeadsFile(draft)) return OpenDraftHeads(target);
  return OpenDraftModel(target);
}

}  // namespace hearth
