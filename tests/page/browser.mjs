// Debian's chromium, without a screen.

import { createRequire } from "node:module";

// Installed by scripts/test-page into a folder of its own.
const load = createRequire(`${process.env.HEARTH_PAGE_MODULES || process.cwd()}/`);
export const { chromium } = load("playwright-core");
export const axePath = load.resolve("axe-core/axe.min.js");

export function startBrowser(extra = []) {
  return chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync", ...extra],
  });
}
