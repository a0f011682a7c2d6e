#include "engine/dialogue/opened_template.h"

#include <memory>
#include <optional>
#include <utility>

#include "output/families.h"

namespace hearth {
namespace {

// Only a token that the text of a prompt turns into as well.
std::optional<std::int32_t> TokenOf(const Tokenizer& tokenizer,
                                    std::string_view spelling) {
  const auto ids =
      tokenizer.Encode(spelling, {.add_special = false, .parse_special = true});
  if (!ids.ok() || ids->size() != 1) return std::nullopt;
  return ids->front();
}

std::optional<std::int32_t> ClosingOf(const ChatSource& source,
                                      const Tokenizer& tokenizer) {
  const std::string answer = "Sentinel hazel of an answer";
  const auto text =
      source.chat.Render({{{"role", "user"}, {"content", "Sentinel"}},
                          {{"role", "assistant"}, {"content", answer}}},
                         nullptr, source.options);
  const std::size_t at = text.ok() ? text->rfind(answer) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const auto ids = tokenizer.Encode(text->substr(at + answer.size()),
                                    {.add_special = false});
  if (!ids.ok() || ids->empty() || !tokenizer.IsSpecial(ids->front())) {
    return std::nullopt;
  }
  return ids->front();
}

}  // namespace

Result<OpenedTemplate> ProbeSource(ChatSource source,
                                   const Tokenizer& tokenizer,
                                   const std::string& with_family) {
  TemplateTraits traits = ProbeTemplate(source.chat, source.options);
  output::FoundFamily family;
  if (with_family.empty()) {
    family = output::FindFamily(source.chat, source.options);
  } else {
    family.program = output::FamilyNamed(with_family);
    family.calls = true;
    if (family.program == nullptr) {
      std::string known;
      for (const auto& one : output::CallFamilies()) {
        known += (known.empty() ? "" : ", ") + one->family;
      }
      return {Code::kNotFound, "no form of calls is named \"" + with_family +
                                   "\"; there are " + known};
    }
  }
  const std::string name = family.calls ? family.program->family : "";
  family.program = std::make_shared<const output::Program>(output::WithTokens(
      *family.program,
      [&](std::string_view spelling) { return TokenOf(tokenizer, spelling); }));
  const auto closing_id = ClosingOf(source, tokenizer);
  return OpenedTemplate{std::move(source), std::move(traits), std::move(family),
                        name, closing_id};
}

}  // namespace hearth
