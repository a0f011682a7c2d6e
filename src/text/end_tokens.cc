#include "text/end_tokens.h"

#include <algorithm>
#include <array>

#include "text/pipeline_tokenizer.h"

namespace hearth {
namespace {

constexpr std::array<std::string_view, 23> kEndSpellings = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<turn|>",
    "<|tool_response>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<|eot|>",
    "<|end_of_turn|>",
    "<|endofassistant|>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"};

bool Holds(const TokenizerSpec& spec, std::string_view content) {
  return std::any_of(
      spec.added.begin(), spec.added.end(),
      [&](const AddedToken& token) { return token.content == content; });
}

// Formats whose answers are several messages: <|end|> ends one of them.
bool HasMessagesInAnswers(const TokenizerSpec& spec) {
  const bool calls = Holds(spec, "<|call|>") || Holds(spec, "<|calls|>");
  return calls && (Holds(spec, "<|return|>") || Holds(spec, "<|flush|>"));
}

}  // namespace

bool EndsAnswers(std::string_view spelling) {
  return std::find(kEndSpellings.begin(), kEndSpellings.end(), spelling) !=
         kEndSpellings.end();
}

void FindEnds(TokenizerSpec& spec) {
  if (spec.eos) spec.ends.push_back(*spec.eos);
  const bool messages = HasMessagesInAnswers(spec);
  for (const AddedToken& token : spec.added) {
    if (messages && token.content == "<|end|>") continue;
    if (EndsAnswers(token.content)) spec.ends.push_back(token.id);
  }
  std::sort(spec.ends.begin(), spec.ends.end());
  spec.ends.erase(std::unique(spec.ends.begin(), spec.ends.end()),
                  spec.ends.end());
}

}  // namespace hearth
