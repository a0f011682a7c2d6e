// Made states of a server, for looking at the page without one: nobody, one
// conversation, forty. Deterministic.

const clients = ["Claude Code", "Codex", "opencode", "Cline", "browser", "Qwen Code", "pi", "OpenAI SDK"];
const states = ["decode", "decode", "prefill", "waiting", "matching"];

function random(seed) {
  let x = seed;
  return () => {
    x = (x * 1103515245 + 12345) % 2147483648;
    return x / 2147483648;
  };
}

function lane(id, now, next) {
  const client = clients[id % clients.length];
  const trunk = client === "Claude Code" ? 16384 : 2048 + (id % 5) * 1024;
  const own = Math.floor(next() * 9000) + 200;
  const running = id <= 5;
  const state = running ? states[id - 1] : id < 20 ? "resting" : "stored";
  const prompt = trunk + own;
  const reused = id % 4 === 3 ? trunk : prompt - Math.floor(own / 3);
  const generated = state === "decode" ? 180 + id : running ? 0 : 320;
  const done = state === "prefill" ? reused + Math.floor((prompt - reused) / 2) : prompt;
  const where = ["mapped", "memory", "fetched"][id % 3];
  const parts = running
    ? [[where, reused], ["computed", done - reused], ["todo", prompt - done], ["computed", generated]]
    : [[state === "resting" ? "memory" : "disk", prompt + generated]];
  return {
    id, state, client, label: "", parts: parts.filter((p) => p[1] > 0),
    prompt_tokens: prompt, reused_tokens: reused, generated, turns: 1 + Math.floor(next() * 30),
    rate: state === "decode" ? 28 + next() * 4 : state === "prefill" ? 318 : 0,
    miss: reused < prompt - own / 2 ? `no stored block begins like token ${reused}` : "",
    since_ms: now - id * 61000,
  };
}

function finished(number, now, next) {
  const prompt = 1800 + Math.floor(next() * 16000);
  const warm = next() < 0.85;
  const failed = number % 23 === 0;
  const reused = failed ? 0 : warm ? prompt - Math.floor(next() * 400) - 1 : 0;
  return {
    number, lane: 1, id: `req_${number}`, client: clients[number % clients.length],
    path: ["/v1/messages", "/v1/responses", "/v1/chat/completions"][number % 3],
    started_ms: now - (100 - number) * 37000, status: failed ? 400 : number === 100 ? 0 : 200,
    fault: failed ? "context_length_exceeded" : "", tier: reused ? ["disk", "memory"][number % 2] : "none",
    miss: failed || reused > prompt - 64 ? "" : warm ? `parts from the nearest stored prompt at token ${reused}` : "no stored prompt begins like it",
    prompt_tokens: prompt, reused_tokens: reused, computed_tokens: prompt - reused, written_tokens: prompt - reused,
    completion_tokens: failed ? 0 : 40 + Math.floor(next() * 600), preemptions: 0,
    queue_ms: next() * 40, lookup_ms: 3, prefill_ms: (prompt - reused) * 3.1, ttft_ms: failed ? 0 : 60 + (prompt - reused) * 3.1,
    decode_ms: 9000, kv_bytes: prompt * 12288,
  };
}

export function madeState(conversations, now) {
  const next = random(7);
  const lanes = Array.from({ length: conversations }, (_, i) => lane(i + 1, now, next)).reverse();
  const n = conversations === 0 ? 0 : conversations === 1 ? 3 : 100;
  const requests = Array.from({ length: n }, (_, i) => finished(i + 1 + (100 - n), now, next)).reverse();
  const quiet = conversations === 0;
  const series = (low, high, often) => Array.from({ length: 120 }, () => (quiet || next() > often ? null : low + next() * next() * (high - low)));
  return {
    sequence: 1, now_ms: now,
    model: { id: quiet ? "hearth-agent-32m" : "Qwen3-4B-Instruct-Q4_K_M", context_tokens: quiet ? 8192 : 32768, block_tokens: 64 },
    meters: {
      memory_held: quiet ? 0 : 1.9e9, memory_mapped: quiet ? 0 : 3.2e9, memory_budget: 4.1e9, has_store: true,
      disk_used: quiet ? 1.1e6 : 14.2e9, disk_budget: 20e9, save_queue: conversations > 1 ? 12.6e6 : 0,
      connections: 1 + conversations, store_version: 1,
    },
    today: quiet ? { requests: 0, prompt_tokens: 0, reused_tokens: 0, completion_tokens: 0, seconds_spared: 0 }
      : { requests: 412, prompt_tokens: 6412880, reused_tokens: 6120411, completion_tokens: 91233, seconds_spared: 19412 },
    rates: { prefill: quiet ? 0 : 318, decode: quiet ? 0 : 57, running: Math.min(5, conversations), waiting: conversations > 4 ? 1 : 0, resting: 0 },
    lanes, requests,
    series: { step_ms: 5000, ttft_ms: series(60, 2400, 0.5), gap_ms: series(18, 260, 0.8), tokens: series(0, 300, 1).map((v) => v ?? 0) },
  };
}

// A store of prompts that share a trunk, with about `blockCount` blocks.
export function madeStore(promptCount, blockCount, now) {
  const next = random(11);
  const nodes = [];
  const prompts = [];
  const blocks = { id: [], node: [], tokens: [], shared: [], age_s: [], present: [], left_out: 0 };
  const add = (parent, count, ageMs, holes = 0) => {
    const first = parent < 0 ? 0 : nodes[parent].first_token + nodes[parent].tokens;
    nodes.push({ parent, first_token: first, tokens: count * 64, blocks: count, present: count - holes, bytes: count * 786432, states: 0, bytes_states: 0, prompts: 0, last_use_ms: now - ageMs });
    return nodes.length - 1;
  };
  const end = (node, age, holes) => {
    for (let at = node; at >= 0; at = nodes[at].parent) ++nodes[at].prompts;
    const tokens = nodes[node].first_token + nodes[node].tokens;
    prompts.push({
      name: `qwen3-4b-instruct-${(0x9e3779b97f4a * (prompts.length + 1) % 2 ** 48).toString(16).padStart(12, "0")}`,
      model: "qwen3-4b-instruct", tokens, usable: holes ? tokens - 640 : tokens, whole: !holes, bytes: tokens * 12288, bytes_shared: tokens * 9000, states: 0, bytes_states: 0,
      created_ms: now - age - 3600e3, last_use_ms: now - age, pinned: prompts.length === 2, node,
    });
  };
  if (promptCount > 0) {
    const per = Math.max(2, Math.floor(blockCount / (promptCount + 6)));
    const trunks = promptCount === 1 ? [add(-1, per, 1000)] : [add(-1, per * 3, 1000), add(-1, per, 9e6)];
    for (let i = 0; i < promptCount; ++i) {
      const age = Math.floor(next() ** 3 * 3 * 86400e3) + 2000;
      let at = i % 7 === 6 && trunks[1] !== undefined ? trunks[1] : trunks[0];
      if (promptCount > 3 && i % 5 === 1) {
        at = add(at, Math.floor(per / 2), age);
        end(add(at, Math.floor(per / 3), age + 9e5), age + 9e5, 0);
      }
      const holes = i === 4 ? 10 : 0;
      end(add(at, Math.max(1, Math.floor(per * (0.3 + next()))), age, holes), age, holes);
    }
  }
  nodes.forEach((node, i) => {
    for (let b = 0; b < node.blocks; ++b) {
      blocks.id.push(((i * 100003 + b * 7919 + 12345) >>> 0).toString(16).padStart(8, "0"));
      blocks.node.push(i);
      blocks.tokens.push(64);
      blocks.shared.push(node.prompts);
      blocks.age_s.push(Math.floor((now - node.last_use_ms) / 1000) + b);
      blocks.present.push(b < node.present ? 1 : 0);
    }
  });
  prompts.sort((a, b) => b.last_use_ms - a.last_use_ms);
  return { now_ms: now, locked: 0, prompts, nodes, blocks };
}
