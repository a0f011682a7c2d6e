// How each agent is pointed at a server, asked without a terminal, and asked to
// go on with its last conversation.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const context = 131072;

function write(home, file, text) {
  const at = path.join(home, file);
  mkdirSync(path.dirname(at), { recursive: true });
  writeFileSync(at, typeof text === "string" ? text : JSON.stringify(text));
}

export const agents = {
  pi: {
    prepare: (home, url) => write(home, ".pi/agent/models.json", { providers: { hearth: { baseUrl: `${url}/v1`, api: "openai-completions", apiKey: "none",
      models: [{ id: "tiny", name: "tiny", contextWindow: context, maxTokens: 256 }] } } }),
    env: { PI_OFFLINE: "1" },
    first: (text) => ["pi", "--provider", "hearth", "--model", "tiny", "-p", text],
    next: (text) => ["pi", "--provider", "hearth", "--model", "tiny", "-c", "-p", text],
  },
  continue: {
    prepare: (home, url) => write(home, "config.yaml", ["name: t", "version: 0.0.1", "schema: v1", "models:", "  - name: tiny",
      "    provider: openai", "    model: tiny", `    apiBase: ${url}/v1`, "    apiKey: none", "    roles: [chat]",
      "    defaultCompletionOptions:", `      contextLength: ${context}`, "      maxTokens: 256", ""].join("\n")),
    env: { CONTINUE_CLI_ENABLE_TELEMETRY: "0" },
    first: (text, home) => ["cn", "--config", `${home}/config.yaml`, "--auto", "-p", text],
    next: (text, home) => ["cn", "--config", `${home}/config.yaml`, "--auto", "--resume", "-p", text],
  },
  codex: {
    prepare: (home, url) => write(home, ".codex/config.toml", ['model_provider = "hearth"', 'model = "tiny"', "[model_providers.hearth]",
      'name = "hearth"', `base_url = "${url}/v1"`, 'wire_api = "responses"', ""].join("\n")),
    first: (text) => ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", text],
    next: (text) => ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "resume", "--last", text],
  },
  "claude-code": {
    prepare: () => {},
    env: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: "none", ANTHROPIC_MODEL: "tiny", ANTHROPIC_DEFAULT_HAIKU_MODEL: "tiny",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" }),
    first: (text) => ["claude", "-p", text, "--allowedTools", "Bash"],
    next: (text) => ["claude", "-c", "-p", text, "--allowedTools", "Bash"],
  },
  opencode: {
    prepare: (home, url) => write(home, ".config/opencode/opencode.json", { $schema: "https://opencode.ai/config.json", model: "hearth/tiny",
      small_model: "hearth/tiny", autoupdate: false, provider: { hearth: { npm: "@ai-sdk/openai-compatible", name: "hearth",
        options: { baseURL: `${url}/v1`, apiKey: "none" }, models: { tiny: { name: "tiny", limit: { context, output: 256 } } } } } }),
    env: { OPENCODE_DISABLE_AUTOUPDATE: "1" },
    first: (text) => ["opencode", "run", "-m", "hearth/tiny", text],
    next: (text) => ["opencode", "run", "-c", "-m", "hearth/tiny", text],
  },
  "qwen-code": {
    prepare: () => {},
    env: (url) => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "none", OPENAI_MODEL: "tiny" }),
    first: (text) => ["qwen", "--auth-type", "openai", "--yolo", "-p", text],
    next: (text) => ["qwen", "--auth-type", "openai", "--yolo", "-c", "-p", text],
  },
};
