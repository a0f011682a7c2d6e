// The ai package with three providers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { load, noThoughts, pickSchema, startServer, whoSchema } from "./served.mjs";

const { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { createAnthropic } = await load("@ai-sdk/anthropic");
let server;
before(async () => { server = await startServer(); });
after(() => server.stop());

const apiKey = "none";
// Each dialect's own way to turn thoughts off.
const off = {
  "/v1/responses": { reasoning: { effort: "none" } },
  "/v1/chat/completions": noThoughts,
  "/v1/messages": { thinking: { type: "disabled" } },
};
const fetchWithoutThoughts = (input, init) => {
  const body = { ...JSON.parse(init.body), ...off[new URL(input).pathname] };
  return fetch(input, { ...init, body: JSON.stringify(body) });
};
const providers = {
  "openai responses": (baseURL, fetch) => createOpenAI({ baseURL, apiKey, fetch })("tiny"),
  "openai chat": (baseURL, fetch) => createOpenAI({ baseURL, apiKey, fetch }).chat("tiny"),
  "openai-compatible": (baseURL, fetch) =>
    createOpenAICompatible({ name: "hearth", baseURL, fetch, supportsStructuredOutputs: true })("tiny"),
  anthropic: (baseURL, fetch) => createAnthropic({ baseURL, apiKey, fetch })("tiny"),
};

for (const [name, make] of Object.entries(providers)) {
  test(name, async () => {
    const common = { model: make(`${server.url}/v1`, fetchWithoutThoughts), maxRetries: 0, temperature: 0 };
    const text = await generateText({ ...common, prompt: "Hello", maxOutputTokens: 16 });
    assert.equal(text.usage.outputTokens, 16);
    const stream = streamText({ ...common, prompt: "Hello", maxOutputTokens: 16 });
    let n = 0;
    for await (const part of stream.fullStream) {
      assert.notEqual(part.type, "error", String(part.error));
      ++n;
    }
    assert.ok(n > 2);
    let picked;
    const called = await generateText({
      ...common, prompt: "Pick", maxOutputTokens: 300, toolChoice: "required",
      tools: { pick: tool({ inputSchema: jsonSchema(pickSchema), execute: ({ n }) => { picked = n; return "7"; } }) },
      stopWhen: stepCountIs(2),
    });
    assert.ok(Number.isInteger(picked));
    assert.equal(called.steps.length, 2);
    const object = await generateObject({ ...common, prompt: "Who?", schema: jsonSchema(whoSchema), maxOutputTokens: 300 });
    assert.match(object.object.who, /^[ab]$/);
    await assert.rejects(generateText({ ...common, prompt: "x".repeat(40000) }), { statusCode: 400 });
  });
}
