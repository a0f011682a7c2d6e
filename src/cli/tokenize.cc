// hearth tokenize and detokenize.
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"
#include "cli/input.h"
#include "hearth/tokenizer.h"

namespace hearth::cli {
namespace {

struct TokenizeArgs {
  std::string source;
  std::string text;
  std::string file;
  bool has_text = false;
  bool no_special = false;
  bool json = false;
};

Result<std::string> Tokenize(const TokenizeArgs& args) {
  if (!args.has_text && args.file.empty()) {
    return {Code::kInvalidArgument, "give --text TEXT or --file FILE"};
  }
  std::string text = args.text;
  if (!args.file.empty()) {
    HEARTH_ASSIGN(text, ReadInput(args.file));
  }
  HEARTH_ASSIGN(const auto codec, OpenTextCodec(args.source));
  HEARTH_ASSIGN(const auto ids, codec->Encode(text, !args.no_special));
  if (args.json) return Json(ids).dump() + "\n";
  std::string line;
  for (const std::int32_t id : ids) {
    line += (line.empty() ? "" : " ") + std::to_string(id);
  }
  return line + "\n";
}

struct DetokenizeArgs {
  std::string source;
  std::vector<std::int32_t> ids;
  std::string ids_file;
};

// A JSON array, or numbers apart by blanks.
Result<std::vector<std::int32_t>> ReadIds(const std::string& path) {
  HEARTH_ASSIGN(const std::string text, ReadInput(path));
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos &&
      (text[first] == '[' || text[first] == '{')) {
    return ParseIds(text, path);
  }
  std::vector<std::int32_t> ids;
  std::istringstream words(text);
  std::int32_t id;
  while (words >> id) ids.push_back(id);
  if (!words.eof()) {
    return {Code::kInvalidArgument, path + ": not a list of token ids"};
  }
  return ids;
}

Result<std::string> Detokenize(const DetokenizeArgs& args) {
  std::vector<std::int32_t> ids = args.ids;
  if (ids.empty()) {
    HEARTH_ASSIGN(ids, ReadIds(args.ids_file.empty() ? "-" : args.ids_file));
  }
  HEARTH_ASSIGN(const auto codec, OpenTextCodec(args.source));
  return codec->Decode(ids);
}

int Print(const Result<std::string>& text) {
  if (!text.ok()) return Fail(text.error());
  std::fwrite(text->data(), 1, text->size(), stdout);
  return kOk;
}

}  // namespace

void AddTokenize(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<TokenizeArgs>();
  CLI::App* command = app.add_subcommand("tokenize", "Text to token ids");
  command->add_option("MODEL", args->source,
                      "a model or a tokenizer.json; default: the model inside "
                      "the program");
  auto* text = command->add_option("--text", args->text, "the text");
  text->each([args](const std::string&) { args->has_text = true; });
  command->add_option("--file", args->file, "a file; - is standard input")
      ->excludes(text);
  command->add_flag("--no-special", args->no_special,
                    "add no BOS, and read special tokens as plain text");
  command->add_flag("--json", args->json, "a JSON array");
  command->callback([args, &exit_code] { exit_code = Print(Tokenize(*args)); });
}

void AddDetokenize(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<DetokenizeArgs>();
  CLI::App* command = app.add_subcommand("detokenize", "Token ids to text");
  command->add_option("MODEL", args->source, "as for tokenize");
  command->add_option("--ids", args->ids, "comma separated")->delimiter(',');
  command->add_option("--file", args->ids_file,
                      "a JSON array or blank-separated numbers; default: "
                      "standard input");
  command->callback(
      [args, &exit_code] { exit_code = Print(Detokenize(*args)); });
}

}  // namespace hearth::cli
