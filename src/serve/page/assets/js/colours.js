// The colours of blocks, read from the style sheet so that both have one
// palette. Every pair differs in lightness too, for eyes that mix the hues.

const places = [
  ["computed", "computed now"],
  ["memory", "in memory"],
  ["mapped", "mapped from disk"],
  ["fetched", "fetched"],
  ["disk", "at rest on disk"],
  ["todo", "to compute"],
];

const sharing = [
  ["alone", "one prompt"],
  ["two", "two"],
  ["few", "three or four"],
  ["many", "five or more"],
  ["loose", "none yet"],
];

const palette = { paper: [0, 0, 0], ink: [0, 0, 0], line: [0, 0, 0], places: {}, sharing: {} };

// A variable of the style sheet as the theme in use has it.
function readColour(probe, name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
}

function readPalette() {
  const probe = document.body.appendChild(el("span", { hidden: true }));
  palette.paper = readColour(probe, "--card");
  palette.ink = readColour(probe, "--ink");
  palette.line = readColour(probe, "--line");
  for (const [place] of places) palette.places[place] = readColour(probe, `--place-${place}`);
  for (const [kind] of sharing) palette.sharing[kind] = readColour(probe, `--share-${kind}`);
  probe.remove();
  changed("palette");
}

const mix = (a, b, t) => [0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * t));
const css = (c) => `rgb(${c[0]},${c[1]},${c[2]})`;

const themes = ["auto", "light", "dark"];

function setUpTheme() {
  const button = byId("theme");
  const show = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Colours: ${theme}`;
    readPalette();
  };
  button.addEventListener("click", () => {
    const theme = themes[(themes.indexOf(localStorage.getItem("hearth-theme") || "auto") + 1) % 3];
    localStorage.setItem("hearth-theme", theme);
    show(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readPalette);
  show(localStorage.getItem("hearth-theme") || "auto");
}

function fillLegend(list, entries, variable) {
  list.replaceChildren(...entries.map(([name, text]) => {
    const swatch = el("span", { class: `swatch ${variable}-${name}`, "aria-hidden": "true" });
    return el("li", {}, swatch, text);
  }));
}
