// A real `hearth serve` with the model inside the program, for tests.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "../../scripts/served.mjs";

export const program = process.env.HEARTH_PROGRAM || "build/dev/hearth";

export function newFolder() {
  const path = mkdtempSync(join(tmpdir(), "hearth-page-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

// `port` 0: any.
export const serve = (cacheFolder, { port = 0, env = {} } = {}) =>
  startServer(program, ["--port", String(port), "--prompt-cache-dir", cacheFolder, "--no-log"], env);

// About `n` words that no other `seed` begins with.
export function words(n, seed) {
  const list = ["the", "small", "dog", "ran", "to", "a", "red", "house", "and", "saw", "his", "friend"];
  return Array.from({ length: n }, (_, i) => list[(i * 7 + i * i * seed + seed) % list.length]).join(" ");
}

export async function chat(url, messages, options = {}) {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "User-Agent": "page-test/1" },
    body: JSON.stringify({ messages, max_tokens: 12, temperature: 0, ...options }),
  });
  const body = await answer.json();
  if (!answer.ok) throw new Error(`${answer.status}: ${JSON.stringify(body)}`);
  return body;
}
