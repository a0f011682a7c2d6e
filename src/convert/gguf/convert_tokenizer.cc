#include "convert/gguf/convert_tokenizer.h"

#include <string>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "convert/gguf/json_vocabulary.h"
#include "engine/text/chat_templates.h"
#include "engine/text/tokenizer_factory.h"

namespace hearth {
namespace {

// "default" has no name in GGUF's key.
Result<void> AddChatTemplates(const LoadedModel& model,
                              std::vector<GgufMetadata>& out) {
  constexpr const char* kKey = "tokenizer.chat_template";
  HEARTH_ASSIGN(std::vector<NamedTemplate> templates, ReadChatTemplates(model));
  std::vector<std::string> names;
  for (NamedTemplate& one : templates) {
    if (one.name == "default") {
      out.push_back({kKey, std::move(one.text)});
      continue;
    }
    out.push_back({std::string(kKey) + "." + one.name, std::move(one.text)});
    names.push_back(one.name);
  }
  if (!names.empty()) {
    out.push_back({"tokenizer.chat_templates", std::move(names)});
  }
  return {};
}

}  // namespace

Result<std::vector<GgufMetadata>> GgufTokenizerMetadata(
    const LoadedModel& model, std::vector<std::string>& notes) {
  switch (model.tokenizer_source) {
    case TokenizerSource::kGguf:
      return std::vector<GgufMetadata>();
    case TokenizerSource::kBytes:
      return {Code::kUnsupported,
              model.path + ": GGUF has no tokenizer of plain bytes"};
    case TokenizerSource::kDirectory:
      break;
  }
  const std::string path = model.tokenizer_dir + "/tokenizer.json";
  HEARTH_ASSIGN(const std::string text, ReadTextFile(path));
  HEARTH_ASSIGN(const Json json, ParseJson(text, path));
  // MakeTokenizer checks the file's form with good messages, so that the reader
  // here need not.
  HEARTH_TRY(MakeTokenizer(model));
  std::vector<GgufMetadata> out;
  try {
    HEARTH_ASSIGN(out, JsonVocabulary(model, json).Run(notes));
  } catch (const Json::exception& error) {
    return {Code::kCorrupt, path + ": " + error.what()};
  }
  HEARTH_TRY(AddChatTemplates(model, out));
  return out;
}

}  // namespace hearth
