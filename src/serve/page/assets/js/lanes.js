// A bar for each conversation: one cell a block, coloured by where it is. All
// bars have one scale, so that lengths can be compared.

const lanesShownAtFirst = 24;
const cellGap = 1;
const fadeMs = 500; // a cell changes its colour
const sweepMs = 500; // from a bar's first changed cell to its last

const lanePictures = new Map(); // lane's id -> what its canvas shows
let showAllLanes = false;

const laneStates = {
  waiting: "waiting", matching: "looking it up", prefill: "reading", decode: "answering",
  paused: "paused", resting: "in memory", stored: "on disk", gone: "not kept",
};
const isRunning = (lane) => !["resting", "stored", "gone"].includes(lane.state);

function sortedLanes() {
  return [...state.lanes.values()].sort((a, b) =>
    isRunning(b) - isRunning(a) || b.since_ms - a.since_ms || b.id - a.id);
}

// The place of each block: that of the token it begins with; a block that is
// not whole yet counts.
function cellsOf(lane) {
  const step = state.model.block_tokens;
  const cells = [];
  let end = 0;
  for (const [place, tokens] of lane.parts) {
    end += tokens;
    while (cells.length * step < end) cells.push(place);
  }
  return cells;
}

const laneTokens = (lane) => lane.parts.reduce((sum, part) => sum + part[1], 0);

function laneFigures(lane) {
  const done = laneTokens(lane) - lane.parts.reduce((sum, p) => sum + (p[0] === "todo" ? p[1] : 0), 0);
  const words = [];
  if (lane.state === "prefill") words.push(`${formatCount(done)} of ${formatCount(lane.prompt_tokens)}`);
  else words.push(plural(laneTokens(lane), "token"));
  if (lane.rate > 0) words.push(`${formatRate(lane.rate)}/s`);
  if (["prefill", "decode", "paused"].includes(lane.state)) {
    words.push(`${formatShare(lane.reused_tokens, lane.prompt_tokens)} reused`);
  }
  if (!isRunning(lane)) words.push(formatAgo(lane.since_ms, serverNow()));
  return words.join(" · ");
}

function makeLane() {
  return el("li", { class: "lane" },
    el("p", { class: "lane-name" }, el("strong", {}), " ", el("span", { class: "quiet" })),
    el("canvas", { class: "lane-bar", "aria-hidden": "true" }),
    el("p", { class: "lane-state" }, el("span", { class: "pill" }), " ", el("span", { class: "figures" })),
    el("p", { class: "lane-miss quiet" }));
}

function updateLane(node, lane) {
  const [name, canvas, status, miss] = node.children;
  setText(name.children[0], lane.client);
  const turns = lane.turns > 1 ? plural(lane.turns, "turn") : "";
  setText(name.children[1], [lane.label, turns].filter(Boolean).join(" · "));
  setText(status.children[0], laneStates[lane.state] || lane.state);
  setAttribute(status.children[0], "data-state", lane.state);
  setText(status.children[1], laneFigures(lane));
  const why = lane.miss && lane.state !== "waiting" ? `not more reused: ${lane.miss}` : "";
  setText(miss, why);
  setAttribute(miss, "title", why);
  notePicture(lane, canvas);
}

// Cells that changed begin to fade, one after the other along the bar.
function notePicture(lane, canvas) {
  const cells = cellsOf(lane);
  let picture = lanePictures.get(lane.id);
  if (!picture) {
    // A lane that is seen for the first time at rest has always been so.
    picture = { cells: isRunning(lane) ? [] : cells.map((place) => ({ place, from: place, since: 0 })) };
    lanePictures.set(lane.id, picture);
  }
  picture.canvas = canvas;
  const now = performance.now();
  const fresh = cells.reduce((n, place, i) => n + (picture.cells[i]?.place !== place ? 1 : 0), 0);
  let nth = 0;
  cells.forEach((place, i) => {
    const cell = picture.cells[i];
    if (cell && cell.place === place) return;
    // The clock begins with the page, so no point of it is long ago enough.
    const since = stillness.matches ? -Infinity : now + (sweepMs * nth++) / Math.max(fresh, 8);
    picture.cells[i] = { place, from: cell ? cell.place : null, since };
  });
  picture.cells.length = cells.length;
}

function colourOf(place) {
  return place ? palette.places[place] : palette.paper;
}

function drawLane(picture, maxCells, now) {
  const width = picture.canvas.clientWidth;
  if (width === 0) return false;
  const height = 16;
  const context = fitCanvas(picture.canvas, width, height);
  context.clearRect(0, 0, width, height);
  const pitch = Math.min(14, width / Math.max(maxCells, 24));
  const gap = pitch >= 4 ? cellGap : 0;
  const snap = (at) => Math.round(at * (devicePixelRatio || 1)) / (devicePixelRatio || 1);
  let moving = false;
  picture.cells.forEach((cell, i) => {
    const t = Math.min(1, Math.max(0, (now - cell.since) / fadeMs));
    if (t < 1) moving = true;
    // Edges lie on device pixels: cells narrower than one make no stripes.
    const x = snap(i * pitch);
    const w = Math.max(0, snap((i + 1) * pitch) - x - gap);
    const colour = t < 1 ? mix(colourOf(cell.from), colourOf(cell.place), t) : colourOf(cell.place);
    context.fillStyle = css(colour);
    if (cell.place === "todo") context.fillRect(x, height / 2 - 2, w, 4);
    else context.fillRect(x, 0, w, height);
  });
  return moving;
}

const drawLanes = onNextFrame((now) => {
  let maxCells = 0;
  for (const [id, picture] of lanePictures) {
    if (!state.lanes.has(id) || !picture.canvas.isConnected) lanePictures.delete(id);
    else maxCells = Math.max(maxCells, picture.cells.length);
  }
  let moving = false;
  for (const picture of lanePictures.values()) {
    moving = drawLane(picture, maxCells, now) || moving;
  }
  if (moving) drawLanes();
});

function showLanes() {
  const all = sortedLanes();
  const shown = showAllLanes ? all : all.slice(0, lanesShownAtFirst);
  reconcile(byId("lane-list"), shown, (lane) => lane.id, makeLane, updateLane);
  byId("lanes-empty").hidden = all.length > 0;
  byId("legend").hidden = all.length === 0;
  const running = all.filter(isRunning).length;
  setText(byId("lanes-count"), all.length === 0 ? "" : `${formatCount(running)} running, ${formatCount(all.length - running)} at rest`);
  const more = byId("lanes-more");
  more.hidden = all.length <= lanesShownAtFirst;
  setText(more, showAllLanes ? "Show fewer" : `Show all ${formatCount(all.length)}`);
  drawLanes();
}

function setUpLanes() {
  fillLegend(byId("legend"), places, "place");
  byId("lanes-more").addEventListener("click", () => {
    showAllLanes = !showAllLanes;
    showLanes();
  });
  whenChanged(["lanes", "model"], showLanes);
  whenChanged(["palette"], drawLanes);
  new ResizeObserver(drawLanes).observe(byId("lane-list"));
  // Ages grow while nothing else changes.
  setInterval(showLanes, 10000);
}
