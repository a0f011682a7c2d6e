// The page's own files with made data behind them: to look at it, and to test
// what needs no engine (frames a second, forty conversations, tool calls).

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { madeState, madeStore } from "./made_scenes.mjs";

const pageFolder = join(dirname(fileURLToPath(import.meta.url)), "../../src/serve/page");

// The files as the program has them: assets.S says which, assets.cc how they
// are served.
function pageFiles() {
  const sections = {};
  let name = "";
  for (const line of readFileSync(join(pageFolder, "assets.S"), "utf8").split("\n")) {
    name = line.match(/^hearth_page_(\w+)_begin:/)?.[1] || name;
    const file = line.match(/incbin "(.*)"/)?.[1];
    if (file) sections[name] = (sections[name] || "") + readFileSync(join(pageFolder, "assets", file), "utf8");
  }
  const types = { html: "text/html; charset=utf-8", css: "text/css; charset=utf-8", js: "text/javascript; charset=utf-8", icon: "image/svg+xml" };
  const paths = { html: "/", css: "/page.css", js: "/page.js", icon: "/icon.svg" };
  return new Map(Object.entries(sections).map(([kind, text]) => [paths[kind], { type: types[kind], text }]));
}

function policy() {
  const source = readFileSync(join(pageFolder, "assets.cc"), "utf8");
  const text = source.slice(source.indexOf('"Content-Security-Policy"') + 26);
  return [...text.slice(0, text.indexOf("}")).matchAll(/"([^"]*)"/g)].map((m) => m[1]).join("");
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Streams a made answer: with tools a reasoned call, else text.
async function answerChat(body, reply) {
  reply.writeHead(200, { "Content-Type": "text/event-stream" });
  const send = (value) => reply.write(`data: ${JSON.stringify(value)}\n\n`);
  const delta = (fields, finish = null) => send({ choices: [{ index: 0, delta: fields, finish_reason: finish }] });
  const answered = body.messages.at(-1).role === "tool";
  for (const piece of "The question is short, so the answer can be. ".split(/(?<= )/)) delta({ reasoning_content: piece });
  if (body.tools && !answered) {
    delta({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: body.tools[0].function.name, arguments: "" } }] });
    delta({ tool_calls: [{ index: 0, function: { arguments: '{"zone": ' } }] });
    delta({ tool_calls: [{ index: 0, function: { arguments: '"UTC"}' } }] });
    delta({}, "tool_calls");
  } else {
    const words = "A fire that is banked in the evening is warm in the morning: its embers are kept under ash, and nobody has to light it again.\n```\nhearth serve model.gguf\n```".split(/(?<= )/);
    for (const word of words) {
      if (reply.destroyed) return;
      delta({ content: word });
      // Slow enough to be stopped, when that is asked for.
      await pause(body.messages.at(-1).content.includes("slowly") ? 2000 : 15);
    }
    delta({}, "stop");
  }
  const prompt = 900 + 60 * body.messages.length;
  send({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: 31, prompt_tokens_details: { cached_tokens: prompt - 52 } },
    hearth: { tier: "memory", ttft_ms: 182, decode_ms: 930 } });
  reply.end("data: [DONE]\n\n");
}

async function readJson(asked) {
  let text = "";
  for await (const piece of asked) text += piece;
  return JSON.parse(text);
}

// `scene`: {conversations, prompts, blocks}; may be changed while it runs, then
// `tell(event, data)` reaches the watchers.
export async function startMadeServer(scene) {
  const files = pageFiles();
  const headers = { "Content-Security-Policy": policy(), "X-Content-Type-Options": "nosniff" };
  const watchers = new Set();
  const store = () => scene.store || madeStore(scene.prompts, scene.blocks, Date.now());
  const server = createServer(async (asked, reply) => {
    const path = asked.url.split("?")[0];
    const json = (value) => reply.writeHead(200, { ...headers, "Content-Type": "application/json" }).end(JSON.stringify(value));
    if (files.has(path)) {
      const file = files.get(path);
      reply.writeHead(200, { ...headers, "Content-Type": file.type }).end(file.text);
    } else if (path === "/hearth/v1/events") {
      reply.writeHead(200, { ...headers, "Content-Type": "text/event-stream" });
      reply.write(`event: snapshot\ndata: ${JSON.stringify(madeState(scene.conversations, Date.now()))}\n\n`);
      watchers.add(reply);
      reply.on("close", () => watchers.delete(reply));
    } else if (path === "/hearth/v1/cache" && asked.method === "GET") json(store());
    else if (path === "/hearth/v1/cache") {
      scene.posted = await readJson(asked);
      json({});
    } else if (path === "/hearth/v1/why") {
      await readJson(asked);
      json({ tokens: 1040, tokens_kept: 960, miss_reason: "" });
    } else if (path === "/v1/chat/completions") await answerChat(await readJson(asked), reply);
    else reply.writeHead(404).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    tell: (event, data) => {
      for (const reply of watchers) reply.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    },
    close: () => {
      for (const reply of watchers) reply.destroy();
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
