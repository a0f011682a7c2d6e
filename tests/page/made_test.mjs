// The page with made data behind it: what it shows, and that everybody can use
// it. What a server at work tells it: server_test.mjs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axePath, startBrowser } from "./browser.mjs";
import { madeState, madeStore } from "./made_scenes.mjs";
import { startMadeServer } from "./made_server.mjs";

let browser;
before(async () => { browser = await startBrowser(); });
after(() => browser.close());

// Opens the page on a scene; fails the test when anything is said on the
// console or thrown.
async function withPage(scene, options, work) {
  const server = await startMadeServer(scene);
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const said = [];
  page.on("console", (message) => {
    // The tests read pixels more often than the page ever does.
    if (!message.text().includes("willReadFrequently")) said.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => said.push(error.stack));
  try {
    await page.goto(server.url);
    await page.locator('#status[data-state="live"]').waitFor();
    await work(page, server);
    assert.deepEqual(said, []);
  } finally {
    await page.close();
    await server.close();
  }
}

const empty = () => ({ conversations: 0, prompts: 0, blocks: 0 });
const full = () => ({ conversations: 40, prompts: 32, blocks: 3000 });

test("an empty server says what to do first", () => withPage(empty(), {}, async (page) => {
  await page.locator("#lanes-empty").waitFor();
  await page.locator("#store-empty-text", { hasText: "Nothing is stored yet" }).waitFor();
  assert.equal(await page.locator("#requests-count").textContent(), "none yet");
  assert.match(await page.locator("#client-panel").textContent(), /ANTHROPIC_BASE_URL=http:\/\/127\.0\.0\.1:\d+/);
}));

test("lanes come, change and go as they are told", () => withPage(empty(), {}, async (page, server) => {
  const { lanes } = madeState(1, Date.now());
  server.tell("change", { now_ms: Date.now(), lanes });
  await page.locator(".lane", { hasText: "answering" }).waitFor();
  server.tell("change", { now_ms: Date.now(), lanes: [{ ...lanes[0], state: "stored", miss: "block 3 is damaged" }] });
  await page.locator(".lane", { hasText: "on disk" }).waitFor();
  assert.match(await page.locator(".lane-miss").textContent(), /block 3 is damaged/);
  server.tell("change", { now_ms: Date.now(), lanes_gone: [lanes[0].id] });
  await page.locator("#lanes-empty").waitFor();
}));

test("forty conversations: some at first, all when asked", () => withPage(full(), {}, async (page) => {
  await page.locator("#lanes-more", { hasText: "Show all 40" }).click();
  assert.equal(await page.locator(".lane").count(), 40);
  assert.equal(await page.locator("#request-rows tr").count(), 100);
}));

test("a stored prompt tells of itself and can be pinned and evicted", () => {
  const scene = full();
  return withPage(scene, {}, async (page) => {
    await page.locator(".tree-row", { hasText: "has a hole" }).click();
    const name = await page.locator("#prompt h3").textContent();
    assert.match(await page.locator("#prompt").textContent(), /Something is missing after token/);
    await page.getByRole("button", { name: "Pin: never evict" }).click();
    await page.locator("#announce", { hasText: "Pinned" }).waitFor({ state: "attached" });
    assert.deepEqual(scene.posted, { pin: name });
    await page.getByRole("button", { name: "Evict", exact: true }).click();
    assert.deepEqual(scene.posted, { pin: name }, "one press evicts nothing");
    await page.getByRole("button", { name: "Evict: sure?" }).click();
    await page.locator("#announce", { hasText: "Evicted" }).waitFor({ state: "attached" });
    assert.deepEqual(scene.posted, { evict: name });
  });
});

test("the recurrent states of a hybrid are counted", () => {
  const store = madeStore(3, 60, Date.now());
  store.nodes[0].states = 2;
  store.nodes[0].bytes_states = 3e6;
  Object.assign(store.prompts[0], { states: 2, bytes_states: 3e6 });
  return withPage({ ...empty(), store }, {}, async (page) => {
    await page.locator("#store-count", { hasText: "2 recurrent states" }).waitFor();
    await page.locator(`.tree-row[title="${store.prompts[0].name}"]`).click();
    await page.locator("#prompt", { hasText: "Recurrent states2, 3.0 MB" }).waitFor();
    await page.locator(`.tree-row[title="${store.prompts[1].name}"]`).click();
    await page.locator("#prompt h3", { hasText: store.prompts[1].name }).waitFor();
    assert.doesNotMatch(await page.locator("#prompt").textContent(), /Recurrent/);
  });
});

test("chat: reasoning folded, calls shown, their results asked for", () => withPage(empty(), {}, async (page) => {
  await page.locator("summary", { hasText: "Settings" }).click();
  await page.locator("#chat-tools").fill('[{"type":"function","function":{"name":"clock"}}]');
  await page.locator("#chat-text").fill("What time is it?");
  await page.keyboard.press("Enter");
  await page.locator(".call code", { hasText: "clock" }).waitFor();
  assert.match(await page.locator(".call pre").textContent(), /"zone": "UTC"/);
  assert.equal(await page.locator(".reasoning").getAttribute("open"), null);
  await page.locator("#chat-note", { hasText: "The model waits for the result of clock" }).waitFor();
  await page.locator("#chat-text").fill("noon");
  await page.locator("#chat-send").click();
  await page.locator(".message.assistant", { hasText: "warm in the morning" }).waitFor();
}));

test("chat: stop, edit with what it keeps, forks side by side, retry", () => withPage(empty(), {}, async (page) => {
  await page.locator("#chat-text").fill("Say slowly what a hearth is.");
  await page.locator("#chat-send").click();
  await page.locator("#chat-stop").click();
  await page.locator(".message.assistant", { hasText: "Stopped. What was computed is kept." }).waitFor();
  await page.getByRole("button", { name: "Edit" }).click();
  await page.locator("#edit-text").fill("What is a stove?");
  await page.locator("#edit-note", { hasText: "This keeps 960 of 1,040 tokens (92 %) in the cache." }).waitFor();
  await page.getByRole("button", { name: "Send as another way" }).click();
  await page.locator(".message", { hasText: "908 of 960 prompt tokens reused from memory" }).waitFor();
  assert.equal(await page.locator(".fork").count(), 2);
  const boxes = await page.locator(".fork").evaluateAll((nodes) => nodes.map((n) => n.getBoundingClientRect().top));
  assert.equal(boxes[0], boxes[1], "side by side");
  await page.locator(".fork").nth(1).getByRole("button", { name: "Retry" }).click();
  await page.locator(".forks .forks").waitFor();
  await page.locator("#chat-send:visible").waitFor();
  await page.locator(".fork").first().getByRole("button", { name: "Go on here" }).first().click();
  await page.locator(".fork").first().locator(".message.on-path").first().waitFor();
}));

test("the keyboard reaches rows, tabs and blocks", () => withPage(full(), {}, async (page) => {
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.locator(".tree-row").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator("#prompt h3").waitFor();
  await page.locator("#client-0").focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator("#client-panel").textContent(), /config\.toml/);
  await page.locator("#field").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.locator("#field-note", { hasText: /^Block 2 of/ }).waitFor();
}));

test("nothing sticks out, from 360 pixels to 4K", async () => {
  for (const width of [360, 768, 1280, 2560, 3840]) {
    await withPage(full(), { viewport: { width, height: 900 } }, async (page) => {
      await page.locator(".tree-row").first().waitFor();
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${width}: ${over} pixels too wide`);
    });
  }
});

// A cell of a lane that has just been computed.
const firstPixel = (page) => page.locator(".lane-bar").first().evaluate((canvas) =>
  [...canvas.getContext("2d").getImageData(1, 8, 1, 1).data].slice(0, 3));

test("without motion a block has its colour at once", () => withPage(empty(), { reducedMotion: "reduce" }, async (page, server) => {
  const lanes = madeState(1, Date.now()).lanes.map((lane) => ({ ...lane, parts: [["computed", 640]] }));
  server.tell("change", { now_ms: Date.now(), lanes });
  await page.locator(".lane").waitFor();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const first = await firstPixel(page);
  await page.waitForTimeout(700);
  // Reading a canvas moves it between rasterizers, which round differently.
  const later = await firstPixel(page);
  assert.ok(later.every((value, i) => Math.abs(value - first[i]) <= 4), `${first} became ${later}`);
}));

// All of the field flashes at once, so that each frame draws every block.
test("10,000 blocks: frames a second are reported", () => {
  const scene = { conversations: 1, prompts: 0, blocks: 0, store: withIds(10000, "a") };
  return withPage(scene, {}, async (page, server) => {
    await page.locator("#field-title", { hasText: "10,000" }).waitFor();
    scene.store = withIds(10000, "b");
    const state = madeState(1, Date.now());
    server.tell("change", { now_ms: Date.now(), meters: { ...state.meters, store_version: 2 } });
    await page.waitForFunction(() => document.getElementById("field").getContext("2d") && window.performance.now() > 0);
    const gaps = await page.evaluate(async () => {
      const canvas = document.getElementById("field");
      const look = () => canvas.getContext("2d").getImageData(2, 2, 1, 1).data.join();
      const before = look();
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      const until = performance.now() + 5000;
      while (look() === before && performance.now() < until) await frame();
      if (look() === before) return [];
      const gaps = [];
      let last = await frame();
      while (gaps.length < 45) {
        const now = await frame();
        gaps.push(now - last);
        last = now;
      }
      return gaps;
    });
    assert.equal(gaps.length, 45, "the field never flashed");
    const mean = gaps.reduce((a, b) => a + b, 0) / gaps.length;
    console.log(`10,000 blocks drawn each frame: ${(1000 / mean).toFixed(1)} frames a second, longest ${Math.max(...gaps).toFixed(1)} ms`);
  });
});

function withIds(n, prefix) {
  const now = Date.now();
  const told = madeStore(8, n - 2000, now);
  const { blocks } = told;
  while (blocks.id.length < n) for (const [key, list] of Object.entries(blocks)) if (Array.isArray(list)) list.push(key === "id" ? "" : key === "node" ? -1 : key === "present" ? 1 : 0);
  for (const list of Object.values(blocks)) if (Array.isArray(list)) list.length = n;
  blocks.id = blocks.id.map((_, i) => `${prefix}${i}`);
  return told;
}

for (const theme of ["light", "dark"]) {
  test(`axe finds no violation, ${theme}`, () => withPage(full(), { colorScheme: theme, bypassCSP: true }, async (page) => {
    await page.locator(".tree-row").nth(1).click();
    await page.locator("summary", { hasText: "Settings" }).click();
    await page.locator("#chat-text").fill("What is a hearth?");
    await page.locator("#chat-send").click();
    await page.locator(".message", { hasText: "prompt tokens reused" }).waitFor();
    await page.getByRole("button", { name: "Edit" }).click();
    await page.locator("#edit-note", { hasText: "This keeps" }).waitFor();
    await page.addScriptTag({ path: axePath });
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`), []);
  }));
}
