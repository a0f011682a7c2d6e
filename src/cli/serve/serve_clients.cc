#include "cli/serve/serve_clients.h"

#include "cli/terminal/text.h"

namespace hearth::cli {

std::string ClientLines(const std::string& url, const std::string& model,
                        bool can_chat) {
  const std::string name = Escaped(model);
  std::string text = "\n  OpenAI base URL      " + url +
                     "/v1\n"
                     "  Anthropic base URL   " +
                     url +
                     "\n"
                     "  Ollama host          " +
                     url + "\n";
  if (!can_chat) {
    return text + "\n  curl " + url +
           "/v1/completions -d '{\"prompt\":\"Once upon a time\"}'\n\n";
  }
  return text +
         "\n"
         "  curl         curl " +
         url +
         "/v1/chat/completions -d "
         "'{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'\n"
         "  Claude Code  ANTHROPIC_BASE_URL=" +
         url + " ANTHROPIC_AUTH_TOKEN=none ANTHROPIC_MODEL=" + name +
         " claude\n"
         "  Codex        codex -c model_provider=hearth -c model=" +
         name + " -c 'model_providers.hearth={name=\"hearth\",base_url=\"" +
         url +
         "/v1\",wire_api=\"responses\"}'\n"
         "  Qwen Code    OPENAI_BASE_URL=" +
         url + "/v1 OPENAI_API_KEY=none OPENAI_MODEL=" + name +
         " qwen --auth-type openai\n"
         "  Cline        cline auth -p openai-compatible -b " +
         url + "/v1 -k none -m " + name +
         "\n"
         "  Ollama       OLLAMA_HOST=" +
         url + " ollama run " + name +
         "\n"
         "  opencode, pi, Continue: docs/server.md\n\n";
}

}  // namespace hearth::cli
