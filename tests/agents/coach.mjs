// Between an agent and the server: a model of random weights does no task, so
// each request is held to what a capable model would answer, by what the APIs
// have for that: two calls of the agent's shell, then a text. What is sampled,
// stored and read back is the server's own.
import { createServer, request as ask } from "node:http";

const shells = /^(bash|shell|exec_command|run_shell_command|run_commands)$/i;
const command = "echo hearth";
const callsWanted = 2;

// The shell's schema, so narrow that one call fits.
function narrowed(schema) {
  const exact = ([name, one]) => {
    if (/^(command|cmd|commands)$/.test(name)) {
      return [name, one.type === "array" ? { const: [command] } : { const: command }];
    }
    if (one.type === "boolean") return [name, { const: false }];
    return [name, one.type === "number" || one.type === "integer" ? { const: 1000 } : { const: "Say hearth" }];
  };
  const needed = Object.entries(schema.properties).filter(([name]) => schema.required?.includes(name) || /^(command|cmd)$/.test(name));
  return { type: "object", properties: Object.fromEntries(needed.map(exact)), required: needed.map(([name]) => name), additionalProperties: false };
}

const answer = { type: "object", properties: { done: { const: true } }, required: ["done"], additionalProperties: false };

const dialects = {
  "/v1/chat/completions": {
    results: (body) => body.messages.filter((m) => m.role === "tool").length,
    shell: (body) => body.tools?.map((tool) => tool.function ?? {}).find((f) => shells.test(f.name)),
    schema: "parameters",
    call: (body, name) => Object.assign(body, { tool_choice: { type: "function", function: { name } }, parallel_tool_calls: false }),
    text: (body) => { body.response_format ??= { type: "json_schema", json_schema: { name: "answer", schema: answer } }; },
    cap: (body) => {
      delete body.max_completion_tokens;
      body.max_tokens = 256;
      body.enable_thinking = false;
    },
  },
  "/v1/responses": {
    results: (body) => (Array.isArray(body.input) ? body.input : []).filter((item) => item.type === "function_call_output").length,
    shell: (body) => body.tools?.find((tool) => tool.type === "function" && shells.test(tool.name)),
    schema: "parameters",
    call: (body, name) => Object.assign(body, { tool_choice: { type: "function", name }, parallel_tool_calls: false }),
    text: (body) => { (body.text ??= {}).format ??= { type: "json_schema", name: "answer", schema: answer }; },
    cap: (body) => {
      body.max_output_tokens = 256;
      body.reasoning = { ...body.reasoning, effort: "none" };
    },
  },
  "/v1/messages": {
    results: (body) => body.messages.flatMap((m) => (Array.isArray(m.content) ? m.content : [])).filter((b) => b.type === "tool_result").length,
    shell: (body) => body.tools?.find((tool) => shells.test(tool.name)),
    schema: "input_schema",
    call: (body, name) => { body.tool_choice = { type: "tool", name, disable_parallel_tool_use: true }; },
    text: (body) => { (body.output_config ??= {}).format ??= { type: "json_schema", schema: answer }; },
    cap: (body) => {
      body.max_tokens = 256;
      body.thinking = { type: "disabled" };
    },
  },
};

function coached(path, text) {
  const dialect = dialects[path];
  if (!dialect) return text;
  const body = JSON.parse(text);
  const shell = dialect.shell(body);
  dialect.cap(body);
  // The same in each request of a conversation, as the tools are in its prompt.
  if (shell) shell[dialect.schema] = narrowed(shell[dialect.schema]);
  if (shell && dialect.results(body) < callsWanted) dialect.call(body, shell.name);
  else {
    if (body.tools?.length > 0) body.tool_choice = path === "/v1/messages" ? { type: "none" } : "none";
    dialect.text(body);
  }
  return JSON.stringify(body);
}

// `server.url` may change while it runs: the server's, behind a restart.
export async function startCoach(server) {
  const coach = createServer(async (asked, reply) => {
    let text = "";
    for await (const piece of asked) text += piece;
    const body = Buffer.from(coached(asked.url.split("?")[0], text));
    const target = new URL(server.url);
    const onward = ask({ host: target.hostname, port: target.port, path: asked.url, method: asked.method,
      headers: { ...asked.headers, host: target.host, "content-length": body.length } }, (got) => {
      reply.writeHead(got.statusCode, got.headers);
      got.pipe(reply);
      got.on("error", () => reply.destroy());
    });
    onward.on("error", () => reply.destroy());
    reply.on("close", () => onward.destroy());
    onward.end(body);
  });
  coach.requestTimeout = 0;
  await new Promise((resolve) => coach.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${coach.address().port}`,
    stop() {
      coach.closeAllConnections();
      coach.close();
    },
  };
}
