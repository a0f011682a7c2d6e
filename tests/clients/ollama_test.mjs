// The ollama package.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { load, pickSchema, startServer, whoSchema } from "./served.mjs";

const { Ollama } = await load("ollama");
let server, client;
before(async () => {
  server = await startServer();
  client = new Ollama({ host: server.url });
});
after(() => server.stop());

const asked = {
  model: "tiny", think: false, options: { temperature: 0, num_predict: 5 },
  messages: [{ role: "user", content: "Hello" }],
};

test("whole and streamed", async () => {
  const whole = await client.chat(asked);
  assert.equal(whole.eval_count, 5);
  assert.equal(whole.done_reason, "length");
  let last;
  for await (const part of await client.chat({ ...asked, stream: true })) last = part;
  assert.ok(last.done);
  const plain = await client.generate({ model: "tiny", prompt: "Hello", options: { temperature: 0, num_predict: 3 } });
  assert.equal(plain.eval_count, 3);
});

test("JSON by a schema", async () => {
  const got = await client.chat({ ...asked, format: whoSchema, options: { temperature: 0, num_predict: 200 } });
  assert.match(JSON.parse(got.message.content).who, /^[ab]$/);
});

test("tools are offered, and results taken", async () => {
  const tools = [{ type: "function", function: { name: "pick", description: "", parameters: pickSchema } }];
  const got = await client.chat({
    ...asked, tools,
    messages: [...asked.messages,
      { role: "assistant", content: "", tool_calls: [{ function: { name: "pick", arguments: { n: 7 } } }] },
      { role: "tool", content: "7", tool_name: "pick" }],
  });
  assert.ok(got.done);
});

test("lists and errors", async () => {
  assert.equal((await client.list()).models.length, 1);
  assert.ok((await client.show({ model: "tiny" })).model_info);
  await assert.rejects(client.embed({ model: "tiny", input: "a" }), /./);
});
