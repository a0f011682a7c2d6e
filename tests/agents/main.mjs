// Each agent does a task of two tool calls; the server is killed with SIGKILL
// and started again; the conversation goes on. Prints what was computed.
//   main.mjs HEARTH [AGENT]...
// HEARTH_AGENTS_MODEL: words of `serve` for another model than the one inside.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { agents } from "./agents.mjs";
import { startCoach } from "./coach.mjs";
import { startServer } from "../../scripts/served.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const modules = process.env.HEARTH_AGENTS_MODULES;
const secondsMax = Number(process.env.HEARTH_AGENTS_SECONDS || 600);
const model = (process.env.HEARTH_AGENTS_MODEL || "").split(" ").filter(Boolean);
const [program, ...wanted] = process.argv.slice(2);
// Room for two blocks: the end of the prompt's last one and of the answer's.
const beyondMax = 128;

const serve = (home) => startServer(path.resolve(program),
  [...model, "--context", "131072", "--alias", "tiny", "--log-file", path.join(home, "log"), "--prompt-cache-dir", path.join(home, "cache")]);

// -> whether it ended well in time. What it said goes to files beside.
function runAgent(words, env, cwd, out) {
  return new Promise((resolve) => {
    const child = spawn(words[0], words.slice(1), { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => { text += bytes; });
    const stop = () => { try { process.kill(-child.pid, "SIGKILL"); } catch { /* it has ended */ } };
    const timer = setTimeout(stop, 1000 * secondsMax);
    child.on("error", (error) => { text += error; });
    child.on("close", (code) => {
      clearTimeout(timer);
      stop();
      writeFileSync(out, text);
      resolve(code === 0);
    });
  });
}

const requestsIn = (file) => readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)).filter((r) => r.prompt > 0);
const kept = (r) => r.prompt + r.completion;

async function work(name) {
  const agent = agents[name];
  const home = mkdtempSync(path.join(tmpdir(), "hearth-agent-"));
  const project = path.join(home, "project");
  mkdirSync(project);
  const server = { url: "" };
  const coach = await startCoach(server);
  let running = await serve(home);
  try {
    server.url = running.url;
    agent.prepare(home, coach.url);
    const own = typeof agent.env === "function" ? agent.env(coach.url) : agent.env;
    const env = { PATH: process.env.PATH, HOME: home, TERM: "dumb", LANG: "C.UTF-8", ...own };
    const began = performance.now();
    let good = await runAgent(agent.first("Run echo hearth twice and say what it printed.", home), env, project, path.join(home, "first.out"));
    const before = requestsIn(path.join(home, "log"));
    await new Promise((resolve) => setTimeout(resolve, 1000)); // what a kill may lose is half a second
    await running.kill("SIGKILL");
    running = await serve(home);
    server.url = running.url;
    good = await runAgent(agent.next("Thank you. What was it again?", home), env, project, path.join(home, "next.out")) && good;
    const all = requestsIn(path.join(home, "log"));
    return { name, good, before, after: all.slice(before.length), seconds: (performance.now() - began) / 1000,
      said: () => `${readFileSync(path.join(home, "first.out"), "utf8").slice(-600)}\n--\n${readFileSync(path.join(home, "next.out"), "utf8").slice(-600)}` };
  } finally {
    await running.kill("SIGKILL");
    coach.stop();
    if (!process.env.HEARTH_AGENTS_KEEP) process.on("exit", () => rmSync(home, { recursive: true, force: true }));
    else console.log(`${name}: ${home}`);
  }
}

// The conversation's requests are those that have all of it: an agent asks for
// titles and the like beside.
function judge(done) {
  const faults = [];
  if (!done.good) faults.push("it did not end well");
  const main = done.before.filter((r) => r.status === 200).sort((a, b) => a.prompt - b.prompt);
  const next = done.after.find((r) => r.status === 200 && r.prompt > (main.at(-1)?.prompt ?? 0));
  if (main.length < 3) faults.push(`${main.length} requests, not the three of a task with two calls`);
  if (!next || main.length === 0) return { faults: [...faults, "nothing was asked after the restart"] };
  const last = main.at(-1);
  const figures = { prompt: next.prompt, computed: next.prompt - next.reused, fresh: next.prompt - kept(last) };
  if (figures.computed > Math.max(figures.fresh, 0) + beyondMax) faults.push(`${figures.computed} tokens computed, ${figures.fresh} new`);
  return { faults, figures };
}

let failed = false;
for (const name of wanted.length > 0 ? wanted : Object.keys(agents)) {
  const done = await work(name);
  const { faults, figures } = judge(done);
  const list = (requests) => requests.map((r) => `${r.prompt - r.reused} of ${r.prompt}${r.status === 200 ? "" : ` (${r.status})`}`).join(", ");
  console.log(`${name}: ${done.seconds.toFixed(0)} s; computed before: ${list(done.before)}; after SIGKILL and restart: ${list(done.after)}` +
    (figures ? `; new ${figures.fresh}` : ""));
  if (faults.length > 0) {
    failed = true;
    console.log(`  ${faults.join("; ")}\n${done.said().replace(/^/gm, "  | ")}`);
  }
}
process.exitCode = failed ? 1 : 0;
