// Pictures of the page with made data, to be looked at:
//   node tests/page/screenshots.mjs FOLDER [scene:theme:width[:height]]...
// Without a height: all of the page.

import { join } from "node:path";
import { startBrowser } from "./browser.mjs";
import { startMadeServer } from "./made_server.mjs";

const scenes = {
  none: { conversations: 0, prompts: 0, blocks: 0 },
  one: { conversations: 1, prompts: 1, blocks: 300 },
  forty: { conversations: 40, prompts: 32, blocks: 6000 },
};

const [folder, ...wanted] = process.argv.slice(2);
const all = Object.keys(scenes).flatMap((s) => ["light", "dark"].flatMap((t) => [360, 1280, 2560].map((w) => `${s}:${t}:${w}`)));
const browser = await startBrowser();
try {
  for (const name of wanted.length > 0 ? wanted : all) {
    const [scene, theme, width, height] = name.split(":");
    const server = await startMadeServer(scenes[scene]);
    const page = await browser.newPage({
      viewport: { width: Number(width), height: Number(height || Math.max(800, Math.round(width * 0.6))) }, colorScheme: theme });
    page.on("console", (message) => console.log(name, message.type(), message.text()));
    page.on("pageerror", (error) => console.log(name, error.stack));
    await page.goto(server.url);
    await page.waitForTimeout(2500);
    if (scene === "forty") {
      await page.locator(".tree-row").nth(2).click();
      await page.locator("#chat-text").fill("What is a hearth?");
      await page.locator("#chat-send").click();
      await page.waitForTimeout(900);
    }
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: join(folder, `${name.replaceAll(":", "-")}.png`), fullPage: !height });
    await page.close();
    await server.close();
  }
} finally {
  await browser.close();
}
