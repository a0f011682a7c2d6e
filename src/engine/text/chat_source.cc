#include "engine/text/chat_source.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "engine/text/chat_templates.h"
#include "formats/huggingface/python_json.h"

namespace hearth {
namespace {

constexpr std::size_t kConfigBytesMax = std::size_t{64} << 20;

// A token in tokenizer_config.json: its text, or an object with "content".
std::optional<std::string> TokenText(const Json& config, const char* key) {
  const Json* value = JsonFind(config, key);
  if (value != nullptr && value->is_object()) {
    value = JsonFind(*value, "content");
  }
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

void FillTokens(const Json& config, RenderOptions& options) {
  options.bos_token = TokenText(config, "bos_token");
  options.eos_token = TokenText(config, "eos_token");
  options.unk_token = TokenText(config, "unk_token");
}

std::optional<std::string> PieceOf(const Tokenizer& tokenizer,
                                   std::optional<std::int32_t> id) {
  if (!id.has_value()) return std::nullopt;
  return tokenizer.Piece(*id);
}

// The config of a directory; null when there is no such file.
Result<Json> ReadTokenizerConfig(const std::string& directory) {
  const std::string path = directory + "/tokenizer_config.json";
  auto text = ReadTextFile(path, kConfigBytesMax);
  if (!text.ok()) {
    if (text.error().code == Code::kNotFound) return Json();
    return text.error();
  }
  return ParsePythonJson(*text, path);
}

Result<ChatSource> Parsed(std::string source, std::string name,
                          RenderOptions options) {
  HEARTH_ASSIGN(ChatTemplate chat,
                ChatTemplate::Parse(std::move(source), std::move(name)));
  return ChatSource{std::move(chat), std::move(options)};
}

}  // namespace

Result<ChatSource> FindChatSource(const LoadedModel& model,
                                  const Tokenizer& tokenizer, bool with_tools) {
  RenderOptions options;
  options.bos_token = PieceOf(tokenizer, tokenizer.bos_id());
  options.eos_token = PieceOf(tokenizer, tokenizer.eos_id());
  if (model.tokenizer_source == TokenizerSource::kDirectory) {
    HEARTH_ASSIGN(const Json config, ReadTokenizerConfig(model.tokenizer_dir));
    if (config.is_object()) FillTokens(config, options);
  }
  HEARTH_ASSIGN(const auto templates, ReadChatTemplates(model));
  HEARTH_ASSIGN(const NamedTemplate* found,
                PickChatTemplate(templates, with_tools, model.path));
  if (found != nullptr) {
    return Parsed(found->text, found->where, std::move(options));
  }
  return {Code::kNotFound,
          model.path + ": has no chat template; give one in a file"};
}

Result<ChatSource> ReadChatSource(const std::string& path) {
  HEARTH_ASSIGN(std::string text, ReadTextFile(path, kConfigBytesMax));
  std::string directory = std::filesystem::path(path).parent_path().string();
  if (directory.empty()) directory = ".";
  HEARTH_ASSIGN(const Json config, ReadTokenizerConfig(directory));
  RenderOptions options;
  if (config.is_object()) FillTokens(config, options);
  return Parsed(std::move(text), path, std::move(options));
}

Result<std::chrono::local_seconds> ParseWallClock(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, used = 0;
  char separator = 0;
  const int n =
      std::sscanf(text.c_str(), "%4d-%2d-%2d%n%c%2d:%2d:%2d", &year, &month,
                  &day, &used, &separator, &hour, &minute, &second);
  const std::chrono::year_month_day date(
      std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
      std::chrono::day(static_cast<unsigned>(day)));
  const bool time_ok = n == 3
                           ? text.size() == static_cast<std::size_t>(used)
                           : n >= 6 && (separator == 'T' || separator == ' ');
  if (!time_ok || month < 1 || day < 1 || !date.ok() || hour < 0 || hour > 23 ||
      minute < 0 || minute > 59 || second < 0 || second > 60) {
    return {Code::kInvalidArgument,
            "\"" + text + "\" is no ISO 8601 date and time"};
  }
  return std::chrono::local_seconds(std::chrono::local_days(date)) +
         std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

}  // namespace hearth
