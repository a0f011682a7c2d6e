// A `hearth serve` of its own, for the demonstration and for tests.
import { spawn } from "node:child_process";

// `words`: what follows `serve`; a port of its own unless they name one.
// Resolves when it listens; rejects with what it said when it ends before.
export function startServer(program, words, env = {}) {
  const began = performance.now();
  const port = words.includes("--port") ? [] : ["--port", "0"];
  const child = spawn(program, ["serve", ...port, ...words],
    { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const kill = async (signal) => {
    child.kill(signal);
    await ended;
  };
  let said = "";
  return new Promise((resolve, reject) => {
    child.stderr.on("data", (bytes) => {
      said += bytes;
      const url = said.match(/listening on (http:\/\/127\.0\.0\.1:(\d+))/);
      if (!url) return;
      resolve({ url: url[1], port: Number(url[2]), readyMs: performance.now() - began, kill, said: () => said });
    });
    ended.then((code) => reject(new Error(`hearth serve ended (${code}): ${said}`)));
  });
}

// What has been said, but not written: a kill before that would lose it.
export async function untilSaved(url) {
  for (let i = 0; i < 200; ++i) {
    const text = await (await fetch(`${url}/metrics`)).text();
    if (/^hearth_save_queue_bytes 0$/m.test(text)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the server does not come to an end with saving");
}
