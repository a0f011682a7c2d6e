// hearth tokenize and detokenize.
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/options/command.h"
#include "cli/terminal/input.h"
#include "hearth/tokenizer.h"

namespace hearth::cli {
namespace {

struct TokenizeArgs {
  std::string source;
  std::string text;
  std::string file;
  Option text_option;
  bool no_special = false;
  bool json = false;
};

Result<std::string> Tokenize(const TokenizeArgs& args) {
  if (!args.text_option.given() && args.file.empty()) {
    return {Code::kInvalidArgument, "give --text TEXT or --file FILE"};
  }
  std::string text = args.text;
  if (!args.file.empty()) {
    HEARTH_ASSIGN(text, ReadPrompt(args.file));
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
  std::vector<int> ids;
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
  std::vector<std::int32_t> ids(args.ids.begin(), args.ids.end());
  if (ids.empty()) {
    HEARTH_ASSIGN(ids, ReadIds(args.ids_file.empty() ? "-" : args.ids_file));
  }
  HEARTH_ASSIGN(const auto codec, OpenTextCodec(args.source));
  return codec->Decode(ids);
}

int PrintResult(const Result<std::string>& text) {
  if (!text.ok()) return Fail(text.error());
  Print(*text);
  return kOk;
}

}  // namespace

void AddTokenize(const Command& program, int& exit_code) {
  auto args = std::make_shared<TokenizeArgs>();
  Command command = program.Sub("tokenize", "Text to token ids");
  command.Name("MODEL", args->source,
               "a model or a tokenizer.json; default: the model inside the "
               "program");
  args->text_option = command.Text("--text", args->text, "the text");
  command.Name("--file", args->file, "a file; - is standard input")
      .Excludes(args->text_option);
  command.Flag("--no-special", args->no_special,
               "add no BOS, and read special tokens as plain text");
  command.Flag("--json", args->json, "a JSON array");
  command.Run(exit_code, [args] { return PrintResult(Tokenize(*args)); });
}

void AddDetokenize(const Command& program, int& exit_code) {
  auto args = std::make_shared<DetokenizeArgs>();
  Command command = program.Sub("detokenize", "Token ids to text");
  command.Name("MODEL", args->source, "as for tokenize");
  const Option ids =
      command.Integers("--ids", args->ids, 0, std::numeric_limits<int>::max(),
                       "separated by commas");
  command
      .Name("--file", args->ids_file,
            "a JSON array or blank-separated numbers; default: standard input")
      .Excludes(ids);
  command.Run(exit_code, [args] { return PrintResult(Detokenize(*args)); });
}

}  // namespace hearth::cli
