#include "serve/turn/infill.h"

#include <optional>
#include <string>

namespace hearth::serve {
namespace {

// Each a single token of such a vocabulary.
struct Marks {
  const char *prefix, *suffix, *middle;
  const char *repository, *file;  // may be absent
};
constexpr Marks kMarks[] = {
    // Qwen2.5-Coder and later, CodeGemma
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>",
     "<|file_sep|>"},
    // StarCoder, Granite
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>",
     "<filename>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<reponame>",
     "<filename>"},
    // DeepSeek-Coder: its suffix mark is called "hole"
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "", ""},
    // Code Llama
    {"▁<PRE>", "▁<SUF>", "▁<MID>", "", ""},
    // GLM, Seed
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "", ""}};

// The id of a mark; nothing when the vocabulary has no such token.
std::optional<std::int32_t> IdOf(const TextCodec& codec, const char* mark,
                                 std::size_t n_around) {
  if (*mark == '\0') return std::nullopt;
  const auto ids = codec.Encode(mark, /*special=*/true);
  if (!ids.ok() || ids->size() != n_around + 1) return std::nullopt;
  const auto back = codec.Decode({&ids->back(), 1});
  // Some vocabularies decode their marks to nothing.
  if (back.ok() && !back->empty() && *back != mark) return std::nullopt;
  return ids->back();
}

class Builder {
 public:
  Builder(const TextCodec& codec, std::vector<std::int32_t> ids)
      : codec_(codec), ids_(std::move(ids)) {}

  void Mark(std::int32_t id) { ids_.push_back(id); }
  // Text from outside holds no marks.
  Result<void> Text(const std::string& text) {
    HEARTH_ASSIGN(const auto more, codec_.Encode(text, /*special=*/false));
    ids_.insert(ids_.end(), more.begin(), more.end());
    return {};
  }
  std::vector<std::int32_t> Take() { return std::move(ids_); }

 private:
  const TextCodec& codec_;
  std::vector<std::int32_t> ids_;
};

Result<void> AddFiles(const TextCodec& codec, const WireRequest& request,
                      const Marks& marks, std::size_t n_around, Builder& to) {
  const auto file = IdOf(codec, marks.file, n_around);
  if (request.context_files.empty() || !file.has_value()) return {};
  if (const auto repository = IdOf(codec, marks.repository, n_around)) {
    to.Mark(*repository);
    HEARTH_TRY(to.Text("project\n"));
  }
  for (const auto& one : request.context_files) {
    to.Mark(*file);
    HEARTH_TRY(to.Text(one.first + "\n" + one.second + "\n"));
  }
  to.Mark(*file);
  HEARTH_TRY(to.Text("current\n"));
  return {};
}

}  // namespace

Result<std::vector<std::int32_t>> InfillPrompt(const TextCodec& codec,
                                               const WireRequest& request) {
  // What the model expects before any text.
  HEARTH_ASSIGN(const auto around, codec.Encode("", /*special=*/true));
  for (const Marks& marks : kMarks) {
    const auto prefix = IdOf(codec, marks.prefix, around.size());
    const auto suffix = IdOf(codec, marks.suffix, around.size());
    const auto middle = IdOf(codec, marks.middle, around.size());
    if (!prefix.has_value() || !suffix.has_value() || !middle.has_value()) {
      continue;
    }
    Builder prompt(codec, around);
    HEARTH_TRY(AddFiles(codec, request, marks, around.size(), prompt));
    prompt.Mark(*prefix);
    HEARTH_TRY(
        prompt.Text(request.prompts.empty() ? "" : request.prompts.front()));
    prompt.Mark(*suffix);
    HEARTH_TRY(prompt.Text(request.suffix));
    prompt.Mark(*middle);
    HEARTH_TRY(prompt.Text(request.middle));
    return prompt.Take();
  }
  return {Code::kUnsupported,
          "suffix: this model's vocabulary has no tokens for filling in the "
          "middle; leave it out, or serve a model that has them"};
}

}  // namespace hearth::serve
