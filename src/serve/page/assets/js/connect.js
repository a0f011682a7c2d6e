// How each client is pointed at this server, ready to copy.

const clients = [
  {
    name: "Claude Code",
    where: "In a shell:",
    text: (base, model) => `export ANTHROPIC_BASE_URL=${base}
export ANTHROPIC_AUTH_TOKEN=hearth
export ANTHROPIC_MODEL=${model}
export ANTHROPIC_DEFAULT_HAIKU_MODEL=${model}
claude`,
  },
  {
    name: "Codex",
    where: "In ~/.codex/config.toml:",
    text: (base, model) => `model = "${model}"
model_provider = "hearth"

[model_providers.hearth]
name = "hearth"
base_url = "${base}/v1"
wire_api = "responses"`,
  },
  {
    name: "opencode",
    where: "In ~/.config/opencode/opencode.json:",
    text: (base, model) => JSON.stringify({
      model: `hearth/${model}`,
      provider: {
        hearth: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL: `${base}/v1`, apiKey: "hearth" },
          models: { [model]: {} },
        },
      },
    }, null, 2),
  },
  {
    name: "Cline",
    where: "In a shell:",
    text: (base, model) => `cline auth -p openai-compatible -b ${base}/v1 -k hearth -m ${model}`,
  },
  {
    name: "Continue",
    where: "In ~/.continue/config.yaml:",
    text: (base, model) => `name: hearth
version: 1.0.0
schema: v1
models:
  - name: hearth
    provider: openai
    model: ${model}
    apiBase: ${base}/v1
    apiKey: hearth`,
  },
  {
    name: "pi",
    where: "In ~/.pi/agent/models.json:",
    text: (base, model) => JSON.stringify({
      providers: {
        hearth: {
          baseUrl: `${base}/v1`, api: "openai-completions", apiKey: "hearth", models: [{ id: model }],
        },
      },
    }, null, 2),
  },
  {
    name: "Qwen Code",
    where: "In a shell:",
    text: (base, model) => `export OPENAI_BASE_URL=${base}/v1
export OPENAI_API_KEY=hearth
export OPENAI_MODEL=${model}
qwen --auth-type openai`,
  },
  {
    name: "OpenAI SDK",
    where: "In Python; the JavaScript package takes baseURL:",
    text: (base, model) => `from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key="hearth")
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Say something."}])
print(answer.choices[0].message.content)`,
  },
  {
    name: "Ollama",
    where: "Programs that speak Ollama's API:",
    text: (base, model) => `OLLAMA_HOST=${base} ollama run ${model}`,
  },
  {
    name: "curl",
    where: "In a shell:",
    text: (base, model) => `curl ${base}/v1/chat/completions -H 'Content-Type: application/json' \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Say something."}]}'`,
  },
];

let chosenClient = 0;

function chooseClient(i, focus) {
  chosenClient = (i + clients.length) % clients.length;
  showConnect();
  if (focus) byId(`client-${chosenClient}`).focus();
}

function moveAmongClients(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  chooseClient(chosenClient + step, true);
}

function showConnect() {
  clients.forEach((client, i) => {
    const tab = byId(`client-${i}`);
    setAttribute(tab, "aria-selected", String(i === chosenClient));
    tab.tabIndex = i === chosenClient ? 0 : -1;
  });
  const client = clients[chosenClient];
  const panel = byId("client-panel");
  setAttribute(panel, "aria-labelledby", `client-${chosenClient}`);
  const text = client.text(location.origin, state.model.id || "hearth");
  const copy = el("button", { type: "button", text: "Copy", onclick: () => copyText(text, copy) });
  panel.replaceChildren(
    el("div", { class: "row" }, el("p", { text: client.where }), copy),
    el("pre", { tabindex: "0", "aria-label": `Settings for ${client.name}` }, el("code", { text })));
}

function setUpConnect() {
  byId("client-tabs").append(...clients.map((client, i) => el("button", {
    type: "button", role: "tab", id: `client-${i}`, "aria-controls": "client-panel", text: client.name,
    onclick: () => chooseClient(i, false),
  })));
  byId("client-tabs").addEventListener("keydown", moveAmongClients);
  whenChanged(["model"], showConnect);
  showConnect();
}
