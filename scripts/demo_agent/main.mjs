// One question to an agent with a long system prompt, three times: cold, after
// kill -9 without a prompt cache (warm: only the files are in memory), and after
// another kill -9 with it (hot).
//   main.mjs HEARTH [MODEL]      MODEL: the one inside the program without it
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { work } from "./agent.mjs";
import { makeFolder } from "./folder.mjs";
import { startServer, untilSaved } from "../served.mjs";

const [program, ...model] = process.argv.slice(2);
const question = "Which port does the server use? It is in one of the files in notes.";
const expected = "8642";
// As agents have them: what it is, its rules, and a handbook.
const system = ["You are an agent. Use the tools to do what the user asks.",
  "# Rules\n\n1. Prefer reading a file over guessing what is in it.\n2. If a tool fails, say so.\n3. Stop when the task is done.",
  readFileSync(path.join(import.meta.dirname, "handbook.md"), "utf8")].join("\n\n");

async function arm(name, words, home) {
  const server = await startServer(program, ["--no-log", ...model, ...words]);
  try {
    const done = await work(server.url, home, system, question);
    if (!words.includes("--no-prompt-cache")) await untilSaved(server.url);
    return { name, readyMs: server.readyMs, ...done };
  } finally {
    await server.kill("SIGKILL");
  }
}

function print(arms) {
  const ms = (x) => `${x.toFixed(0)} ms`;
  const first = (a) => a.requests[0];
  const cells = [["", ...arms.map((a) => a.name)],
    ["server ready after", ...arms.map((a) => ms(a.readyMs))],
    ["first request: prompt tokens", ...arms.map((a) => String(first(a).prompt))],
    ["  of them reused", ...arms.map((a) => String(first(a).reused))],
    ["  first token after", ...arms.map((a) => ms(first(a).firstMs))],
    ["later requests: first token after", ...arms.map((a) => a.requests.slice(1).map((r) => ms(r.firstMs)).join(", "))],
    ["the whole job", ...arms.map((a) => ms(a.wallMs))]];
  const wide = cells[0].map((_, i) => Math.max(...cells.map((row) => row[i].length)));
  for (const row of cells) {
    console.log(row.map((cell, i) => (i === 0 ? cell.padEnd(wide[i]) : cell.padStart(wide[i]))).join("  "));
  }
}

const home = mkdtempSync(path.join(tmpdir(), "hearth-demo-"));
try {
  makeFolder(path.join(home, "notes"));
  const cached = ["--prompt-cache-dir", path.join(home, "cache")];
  const cold = await arm("cold", cached, home);
  const warm = await arm("warm, no prompt cache", ["--no-prompt-cache"], home);
  const hot = await arm("hot", cached, home);
  const arms = [cold, warm, hot];
  print(arms);
  console.log(`\nuser: ${question}`);
  for (const call of hot.calls) console.log(`calls: ${call}`);
  console.log(`answer: ${hot.answer}`);
  const same = arms.every((a) => a.answer === cold.answer && a.calls.join() === cold.calls.join());
  console.log(`\nall three the same: ${same ? "yes" : "NO"}; first token ${(warm.requests[0].firstMs / hot.requests[0].firstMs).toFixed(1)}x sooner`);
  const good = same && hot.requests[0].reused === hot.requests[0].prompt - 1;
  // Another model may do the job in other ways, or not at all.
  process.exitCode = good && (model.length > 0 || cold.answer.includes(expected)) ? 0 : 1;
} finally {
  rmSync(home, { recursive: true, force: true });
}
