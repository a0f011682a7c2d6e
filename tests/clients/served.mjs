// A server of the program under test, with a tiny model of random weights: what
// a schema or a required call holds it to is all that is known of its answers.
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { startServer as serve } from "../../scripts/served.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const modules = process.env.HEARTH_CLIENTS_MODULES;
const require = createRequire(path.join(modules, "of.js"));

// What scripts/test-clients installed.
export const load = (name) => import(pathToFileURL(require.resolve(name)));

export async function startServer() {
  const home = mkdtempSync(path.join(tmpdir(), "hearth-clients-"));
  const data = path.join(root, "tests/data");
  const server = await serve(path.resolve(root, process.env.HEARTH_PROGRAM), [
    path.join(data, "models/hf/qwen2"),
    "--template", path.join(data, "chat/templates/Qwen-Qwen3-0.6B.jinja"),
    "--context", "8192", "--alias", "tiny", "--no-log",
    "--prompt-cache-dir", path.join(home, "cache"),
  ]);
  return {
    url: server.url,
    async stop() {
      await server.kill("SIGTERM");
      rmSync(home, { recursive: true, force: true });
    },
  };
}

// The tool that all clients offer, and the schema that all ask for.
export const pickSchema = {
  type: "object",
  properties: { n: { type: "integer", minimum: 0, maximum: 9 } },
  required: ["n"],
  additionalProperties: false,
};
export const whoSchema = {
  type: "object",
  properties: { who: { type: "string", enum: ["a", "b"] } },
  required: ["who"],
  additionalProperties: false,
};
// Thoughts of random weights are long.
export const noThoughts = { chat_template_kwargs: { enable_thinking: false } };
