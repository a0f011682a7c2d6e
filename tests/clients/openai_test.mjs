// The openai package: chat, responses and completions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { load, noThoughts, pickSchema, startServer, whoSchema } from "./served.mjs";

const { default: OpenAI } = await load("openai");
let server, client;
before(async () => {
  server = await startServer();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
after(() => server.stop());

const hello = [{ role: "user", content: "Hello" }];
const tool = { type: "function", function: { name: "pick", parameters: pickSchema } };

test("chat, whole", async () => {
  const got = await client.chat.completions.create({
    model: "tiny", temperature: 0, messages: hello, max_tokens: 5,
  });
  assert.equal(got.usage.completion_tokens, 5);
  assert.equal(got.choices[0].finish_reason, "length");
});

test("chat, streamed", async () => {
  const stream = client.chat.completions.stream({
    model: "tiny", temperature: 0, messages: hello, max_tokens: 5,
    stream_options: { include_usage: true },
  });
  const got = await stream.finalChatCompletion();
  assert.equal(got.usage.completion_tokens, 5);
});

test("a call and its result", async () => {
  const asked = {
    model: "tiny", temperature: 0, messages: hello, tools: [tool], tool_choice: "required",
    parallel_tool_calls: false, max_tokens: 300, ...noThoughts,
  };
  for (const stream of [false, true]) {
    const got = stream
      ? await client.chat.completions.stream(asked).finalChatCompletion()
      : await client.chat.completions.create(asked);
    const message = got.choices[0].message;
    const call = message.tool_calls[0];
    assert.equal(call.function.name, "pick");
    assert.ok(Number.isInteger(JSON.parse(call.function.arguments).n));
    const next = await client.chat.completions.create({
      ...asked, tool_choice: "none", max_tokens: 4,
      messages: [...hello, message, { role: "tool", tool_call_id: call.id, content: "7" }],
    });
    assert.ok(next.usage.prompt_tokens_details.cached_tokens > 0);
  }
});

test("JSON by a schema", async () => {
  const got = await client.chat.completions.parse({
    model: "tiny", temperature: 0, messages: hello, max_tokens: 200, ...noThoughts,
    response_format: { type: "json_schema", json_schema: { name: "who", strict: true, schema: whoSchema } },
  });
  assert.match(got.choices[0].message.content, /^\s*\{\s*"who"\s*:\s*"[ab]"\s*\}\s*$/);
});

test("completions", async () => {
  const got = await client.completions.create({ model: "tiny", temperature: 0, prompt: "Once", max_tokens: 4 });
  assert.equal(typeof got.choices[0].text, "string");
});

test("responses: whole, streamed, continued, a call", async () => {
  const first = await client.responses.create({ model: "tiny", temperature: 0, input: "Hello", max_output_tokens: 16 });
  assert.equal(first.status, "incomplete");
  const types = [];
  for await (const event of await client.responses.create({
    model: "tiny", temperature: 0, input: "And?", previous_response_id: first.id,
    max_output_tokens: 16, stream: true,
  })) types.push(event.type);
  assert.equal(types[0], "response.created");
  assert.ok(["response.completed", "response.incomplete"].includes(types.at(-1)));
  const called = await client.responses.create({
    model: "tiny", temperature: 0, input: "Pick", tool_choice: "required", max_output_tokens: 300,
    parallel_tool_calls: false, reasoning: { effort: "none" },
    tools: [{ type: "function", name: "pick", parameters: pickSchema, strict: true }],
  });
  const call = called.output.find((item) => item.type === "function_call");
  assert.equal(call.name, "pick");
  const next = await client.responses.create({
    model: "tiny", temperature: 0, previous_response_id: called.id, max_output_tokens: 16,
    input: [{ type: "function_call_output", call_id: call.call_id, output: "7" }],
  });
  assert.ok(next.usage.input_tokens_details.cached_tokens > 0);
});

test("errors", async () => {
  await assert.rejects(
    client.chat.completions.create({ model: "tiny", temperature: 0, messages: [{ role: "user", content: "x".repeat(40000) }] }),
    (error) => error.status === 400 && error.code === "context_length_exceeded",
  );
  await assert.rejects(client.embeddings.create({ model: "tiny", input: "a" }), { status: 501 });
  assert.equal((await client.models.list()).data[0].id, "tiny");
});
