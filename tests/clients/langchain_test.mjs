// @langchain/openai over chat and responses.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { load, noThoughts, pickSchema, startServer, whoSchema } from "./served.mjs";

const { ChatOpenAI } = await load("@langchain/openai");
let server;
before(async () => { server = await startServer(); });
after(() => server.stop());

for (const useResponsesApi of [false, true]) {
  const make = (maxTokens) => new ChatOpenAI({
    model: "tiny", temperature: 0, apiKey: "none", maxTokens, maxRetries: 0, useResponsesApi,
    configuration: { baseURL: `${server.url}/v1` }, modelKwargs: useResponsesApi ? { reasoning: { effort: "none" } } : noThoughts,
  });
  test(useResponsesApi ? "responses" : "chat", async () => {
    const got = await make(16).invoke("Hello");
    assert.equal(got.usage_metadata.output_tokens, 16);
    let n = 0;
    for await (const part of await make(16).stream("Hello")) n += part ? 1 : 0;
    assert.ok(n > 0);
    const tools = [{ type: "function", function: { name: "pick", parameters: pickSchema } }];
    const called = await make(300).bindTools(tools, { tool_choice: "pick", parallel_tool_calls: false }).invoke("Pick");
    assert.equal(called.tool_calls[0].name, "pick");
    const who = await make(200).withStructuredOutput({ title: "who", ...whoSchema }, { method: "jsonSchema" }).invoke("Who?");
    assert.match(who.who, /^[ab]$/);
  });
}
