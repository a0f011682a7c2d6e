#include "serve/page/client_name.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace hearth::serve {
namespace {

struct KnownClient {
  std::string_view product;  // lower case; how the User-Agent begins
  std::string_view name;
};

constexpr KnownClient kKnown[] = {
    {"claude-cli", "Claude Code"},
    {"claude-code", "Claude Code"},
    {"codex", "Codex"},
    {"opencode", "opencode"},
    {"cline", "Cline"},
    {"continue", "Continue"},
    {"qwencode", "Qwen Code"},
    {"anthropic/js", "Anthropic SDK"},
    {"anthropic/python", "Anthropic SDK"},
    {"openai/js", "OpenAI SDK"},
    {"openai/python", "OpenAI SDK"},
    {"asyncopenai/python", "OpenAI SDK"},
    {"ai-sdk", "AI SDK"},
    {"ai/", "AI SDK"},
    {"langchainjs", "LangChain"},
    {"ls/js", "LangChain"},
    {"ollama", "ollama"},
    {"mozilla", "browser"},
};

}  // namespace

std::string ClientName(std::string_view user_agent) {
  std::string lower(user_agent.substr(0, 64));
  std::transform(
      lower.begin(), lower.end(), lower.begin(),
      [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const KnownClient& known : kKnown) {
    if (lower.starts_with(known.product)) return std::string(known.name);
  }
  std::string name;
  for (const char c : user_agent.substr(0, user_agent.find('/'))) {
    if (name.size() == 32) break;
    if (c >= ' ' && c <= '~') name += c;
  }
  return name.empty() ? "unknown" : name;
}

}  // namespace hearth::serve
