// An agent's loop on the openai client: asks, runs the tools that are called,
// gives their results back, until there is an answer.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { callTool, tools } from "./folder.mjs";

const require = createRequire(path.join(process.env.HEARTH_DEMO_MODULES, "of.js"));
const { OpenAI } = await import(pathToFileURL(require.resolve("openai")));

const kRoundsMax = 8;

// One streamed request -> its message and figures.
async function request(client, messages) {
  const began = performance.now();
  const stream = await client.chat.completions.create({
    model: "default", messages, tools, temperature: 0, max_tokens: 200,
    stream: true, stream_options: { include_usage: true },
  });
  const message = { role: "assistant", content: "" };
  let firstMs = null, usage = null;
  for await (const chunk of stream) {
    usage = chunk.usage ?? usage;
    const delta = chunk.choices[0]?.delta;
    if (!delta?.content && !delta?.tool_calls) continue;
    firstMs ??= performance.now() - began;
    message.content += delta.content ?? "";
    for (const piece of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      const call = (message.tool_calls[piece.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
      call.id ||= piece.id ?? "";
      call.function.name += piece.function?.name ?? "";
      call.function.arguments += piece.function?.arguments ?? "";
    }
  }
  return { message, firstMs, prompt: usage.prompt_tokens, reused: usage.prompt_tokens_details?.cached_tokens ?? 0 };
}

// -> the answer, the calls made for it, and each request's figures.
export async function work(url, folder, system, question) {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const messages = [{ role: "system", content: system }, { role: "user", content: question }];
  const began = performance.now(), requests = [], calls = [];
  while (requests.length < kRoundsMax) {
    const { message, ...figures } = await request(client, messages);
    requests.push(figures);
    messages.push(message);
    if (!message.tool_calls) {
      return { answer: message.content, calls, requests, wallMs: performance.now() - began };
    }
    for (const call of message.tool_calls) {
      calls.push(`${call.function.name} ${call.function.arguments}`);
      messages.push({ role: "tool", tool_call_id: call.id, content: callTool(folder, call.function.name, call.function.arguments) });
    }
  }
  throw new Error(`no answer after ${kRoundsMax} requests: ${calls.join("; ")}`);
}
