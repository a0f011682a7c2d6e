// A real `hearth serve` with the model inside the program, for tests.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const program = process.env.HEARTH_PROGRAM || "build/dev/hearth";

export function newFolder() {
  const path = mkdtempSync(join(tmpdir(), "hearth-page-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

// `port` 0: any. Rejects with what the program said when it ends before it
// listens.
export function serve(cacheFolder, { port = 0, env = {} } = {}) {
  const child = spawn(program,
    ["serve", "--port", String(port), "--prompt-cache-dir", cacheFolder, "--no-log"],
    { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const kill = async (signal) => {
    child.kill(signal);
    await ended;
  };
  return new Promise((resolve, reject) => {
    child.stderr.on("data", (data) => {
      said += data;
      const url = said.match(/listening on (http:\/\/127\.0\.0\.1:(\d+))/);
      if (url) resolve({ url: url[1], port: Number(url[2]), kill, said: () => said });
    });
    ended.then((code) => reject(new Error(`hearth serve ended (${code}): ${said}`)));
  });
}

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
