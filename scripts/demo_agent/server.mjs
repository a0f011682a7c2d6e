// A `hearth serve` of the demonstration, on a port of its own.
import { spawn } from "node:child_process";

// Resolves when it listens; rejects with what it said when it ends before.
export function startServer(program, words) {
  const began = performance.now();
  const child = spawn(program, ["serve", "--port", "0", "--no-log", ...words],
    { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let said = "";
  return new Promise((resolve, reject) => {
    child.stderr.on("data", (bytes) => {
      said += bytes;
      const url = said.match(/listening on (http:\/\/127\.0\.0\.1:\d+)/);
      if (!url) return;
      resolve({
        url: url[1],
        readyMs: performance.now() - began,
        async killNow() {
          child.kill("SIGKILL");
          await ended;
        },
      });
    });
    ended.then(() => reject(new Error(`hearth serve ended: ${said}`)));
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
