// The @anthropic-ai/sdk package.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { load, pickSchema, startServer } from "./served.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");
let server, client;
before(async () => {
  server = await startServer();
  client = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
});
after(() => server.stop());

const asked = {
  model: "tiny", max_tokens: 5, temperature: 0, thinking: { type: "disabled" },
  messages: [{ role: "user", content: "Hello" }],
};

test("whole, streamed, counted", async () => {
  const whole = await client.messages.create(asked);
  assert.equal(whole.stop_reason, "max_tokens");
  assert.equal(whole.usage.output_tokens, 5);
  const streamed = await client.messages.stream(asked).finalMessage();
  assert.equal(streamed.usage.output_tokens, 5);
  const counted = await client.messages.countTokens({ model: "tiny", messages: asked.messages });
  assert.ok(counted.input_tokens > 0);
});

test("a call and its result", async () => {
  const call = {
    ...asked, max_tokens: 300, tool_choice: { type: "any", disable_parallel_tool_use: true },
    tools: [{ name: "pick", input_schema: pickSchema, cache_control: { type: "ephemeral" } }],
  };
  for (const got of [await client.messages.create(call),
                     await client.messages.stream(call).finalMessage()]) {
    assert.equal(got.stop_reason, "tool_use");
    const use = got.content.find((block) => block.type === "tool_use");
    assert.ok(Number.isInteger(use.input.n));
    const next = await client.messages.create({
      ...call, max_tokens: 4, tool_choice: { type: "none" },
      messages: [...asked.messages, { role: "assistant", content: got.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "7" }] }],
    });
    assert.ok(next.usage.cache_read_input_tokens > 0);
  }
});

test("errors", async () => {
  await assert.rejects(client.messages.create({ ...asked, messages: [] }),
    (error) => error.status === 400 && error.error.error.type === "invalid_request_error");
});
