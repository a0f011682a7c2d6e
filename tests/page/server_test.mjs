// The page of a server at work: what it tells of requests, of a restart and of
// a damaged block, the chat, and who is not let in.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startBrowser } from "./browser.mjs";
import { chat, newFolder, program, serve, words } from "./served.mjs";

let browser;
before(async () => { browser = await startBrowser(["--host-resolver-rules=MAP rebound.test 127.0.0.1"]); });
after(() => browser.close());

async function openPage(server, said) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.push(error.stack));
  await page.goto(`${server.url}/`);
  return page;
}

// A server with an empty store, and a page that shows it.
async function withServer(work, options) {
  const folder = newFolder();
  const server = await serve(folder.path, options);
  const said = [];
  const page = await openPage(server, said);
  try {
    await work({ server, page, folder, said });
  } finally {
    await page.close();
    await server.kill("SIGKILL");
    folder.remove();
  }
}

const live = (page) => page.locator('#status[data-state="live"]').waitFor();
const row = (page, text) => page.locator("#request-rows tr", { hasText: text });
const history = (n, seed) => [{ role: "user", content: words(n, seed) }];

test("its files come with a strict policy and a tag, and nothing is said", () => withServer(async ({ server, page, said }) => {
  await live(page);
  await page.locator("#lanes-empty").waitFor();
  assert.deepEqual(said, []);
  for (const path of ["/", "/page.css", "/page.js", "/icon.svg"]) {
    const answer = await fetch(server.url + path);
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get("content-security-policy"), /^default-src 'none'; script-src 'self'/);
    const tag = answer.headers.get("etag");
    const again = await fetch(server.url + path, { headers: { "If-None-Match": tag } });
    assert.equal(again.status, 304, path);
  }
}));

test("lanes, requests and the tree follow the API", () => withServer(async ({ server, page }) => {
  await live(page);
  const messages = history(180, 1);
  const first = await chat(server.url, messages);
  await page.locator(".lane", { hasText: "page-test" }).waitFor();
  await row(page, "page-test").first().waitFor();
  await page.locator(".tree-row").first().waitFor();
  messages.push(first.choices[0].message, { role: "user", content: "Go on." });
  await chat(server.url, messages);
  await page.locator(".lane", { hasText: "2 turns" }).waitFor();
  assert.equal(await page.locator(".lane").count(), 1);
  await row(page, "memory").waitFor();
  await page.locator("#field-part").waitFor();
  await chat(server.url, history(180, 5));
  await page.locator(".lane").nth(1).waitFor();
}));

test("a restart: the page comes back, and what was stored is reused", () => withServer(async ({ server, page, folder }) => {
  await live(page);
  await chat(server.url, history(180, 2));
  await page.locator(".tree-row").first().waitFor();
  await server.kill("SIGKILL");
  await page.locator('#status[data-state="lost"]').waitFor();
  const again = await serve(folder.path, { port: server.port });
  try {
    await live(page);
    await page.locator("#lanes-empty").waitFor();
    assert.equal(await page.locator(".tree-row").count() > 0, true);
    await chat(again.url, history(180, 2));
    await row(page, "disk").waitFor();
  } finally {
    await again.kill("SIGKILL");
  }
}));

// Every second byte of a file behind its header.
function damage(path) {
  const bytes = readFileSync(path);
  for (let i = Math.floor(bytes.length / 2); i < bytes.length; i += 2) bytes[i] ^= 0xff;
  writeFileSync(path, bytes);
}

test("a damaged block is a shorter reuse with its reason", () => withServer(async ({ server, page, folder }) => {
  await live(page);
  await chat(server.url, history(180, 3));
  await page.locator(".tree-row").first().waitFor();
  await server.kill("SIGTERM");
  const told = readdirSync(join(folder.path, "blocks"), { recursive: true }).filter((name) => name.endsWith(".kv"));
  assert.ok(told.length > 1);
  for (const name of told) damage(join(folder.path, "blocks", name));
  const again = await serve(folder.path, { port: server.port });
  try {
    await live(page);
    await chat(again.url, history(180, 3));
    await row(page, /damage|checksum|quarantine/).waitFor();
  } finally {
    await again.kill("SIGKILL");
  }
}));

test("a block that was set aside is a hole in the tree until it is computed again", () => withServer(async ({ server, page, folder }) => {
  await live(page);
  await chat(server.url, history(180, 5));
  await page.locator(".tree-row").first().waitFor();
  await server.kill("SIGTERM");
  const blocks = readdirSync(join(folder.path, "blocks"), { recursive: true }).filter((name) => name.endsWith(".kv"));
  damage(join(folder.path, "blocks", blocks[0]));
  const checked = spawnSync(program, ["cache", "verify", folder.path], { encoding: "utf8" });
  assert.match(checked.stdout + checked.stderr, /1 /);
  const again = await serve(folder.path, { port: server.port });
  try {
    await page.reload();
    await page.locator(".tree-row", { hasText: "has a hole" }).click();
    await page.locator("#prompt", { hasText: /Something is missing after token/ }).waitFor();
    await chat(again.url, history(180, 5));
    await page.locator(".tree-row", { hasText: "has a hole" }).waitFor({ state: "detached" });
  } finally {
    await again.kill("SIGKILL");
  }
}));

test("chat with the model inside: an answer, a second turn, what an edit keeps", () => withServer(async ({ page }) => {
  await live(page);
  await page.locator("summary", { hasText: "Settings" }).click();
  await page.locator("#chat-max").fill("24");
  await page.locator("#chat-text").fill(`Tell me of ${words(150, 4)}.`);
  await page.locator("#chat-send").click();
  await page.locator(".message.assistant", { hasText: /of \d+ prompt tokens reused/ }).waitFor();
  await page.locator("#chat-text").fill("And then?");
  await page.locator("#chat-send").click();
  await page.locator(".message.assistant", { hasText: /[1-9]\d* of \d+ prompt tokens reused/ }).nth(0).waitFor();
  await page.locator(".message.user").nth(1).getByRole("button", { name: "Edit" }).click();
  await page.locator("#edit-text").fill("And why?");
  await page.locator("#edit-note", { hasText: /This keeps [1-9]/ }).waitFor();
  await page.getByRole("button", { name: "Send as another way" }).click();
  await page.locator(".fork").nth(1).locator(".message.assistant", { hasText: "reused" }).waitFor();
}));

test("pin and evict act on the store", () => withServer(async ({ server, page }) => {
  await live(page);
  await chat(server.url, history(180, 6));
  await page.locator(".tree-row").first().click();
  await page.getByRole("button", { name: "Pin: never evict" }).click();
  await page.getByRole("button", { name: "Unpin" }).click();
  await page.getByRole("button", { name: "Pin: never evict" }).waitFor();
  const rows = await page.locator(".tree-row").count();
  await page.getByRole("button", { name: "Evict", exact: true }).click();
  await page.getByRole("button", { name: "Evict: sure?" }).click();
  await page.waitForFunction((n) => document.querySelectorAll(".tree-row").length !== n ||
    document.getElementById("prompt").hidden, rows);
}));

// What a page of another site gets when it tries.
const attempts = (url) => `
  const tries = {
    read: () => fetch("${url}/hearth/v1/cache").then((a) => a.text()),
    events: () => fetch("${url}/hearth/v1/events").then((a) => a.text()),
    post: () => fetch("${url}/v1/chat/completions", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"messages":[]}'}).then((a) => a.text()),
    blind: () => fetch("${url}/v1/chat/completions", {method: "POST", mode: "no-cors", body: '{"messages":[{"role":"user","content":"x"}],"max_tokens":1}'}).then((a) => a.type),
  };
  const got = {};
  for (const [name, work] of Object.entries(tries)) got[name] = await work().catch((error) => "refused: " + error.name);
  document.title = JSON.stringify(got);`;

test("a page of another origin can neither read nor post", () => withServer(async ({ server, page }) => {
  await live(page);
  const foreign = createServer((_, reply) => reply.writeHead(200, { "Content-Type": "text/html" })
    .end(`<!doctype html><script type="module">${attempts(server.url)}</script>`));
  await new Promise((resolve) => foreign.listen(0, "127.0.0.1", resolve));
  const other = await browser.newPage();
  try {
    await other.goto(`http://127.0.0.1:${foreign.address().port}/`);
    await other.waitForFunction(() => document.title.startsWith("{"));
    const got = JSON.parse(await other.title());
    for (const name of ["read", "events", "post"]) assert.match(got[name], /^refused/, name);
    assert.equal(got.blind, "opaque", "it learns nothing of the blind one");
    // And the blind one was refused: nothing was computed.
    await chat(server.url, history(20, 7));
    await row(page, "page-test").waitFor();
    assert.equal(await page.locator(".lane").count(), 1);
  } finally {
    await other.close();
    foreign.closeAllConnections();
    await new Promise((resolve) => foreign.close(resolve));
  }
}));

test("a name that was bound to this machine later opens nothing", () => withServer(async ({ server }) => {
  const other = await browser.newPage();
  try {
    const answer = await other.goto(`http://rebound.test:${server.port}/`);
    assert.equal(answer.status(), 403);
  } finally {
    await other.close();
  }
}));

test("a server with a key asks for it, once a tab", () => withServer(async ({ page }) => {
  await page.locator("#key").fill("wrong");
  await page.keyboard.press("Enter");
  await page.locator("#key-fault", { hasText: "does not know" }).waitFor();
  await page.locator("#key").fill("open-sesame");
  await page.keyboard.press("Enter");
  await live(page);
  assert.equal(await page.locator("#key-form").isVisible(), false);
  await page.reload();
  await live(page);
}, { env: { HEARTH_API_KEY: "open-sesame" } }));
