// Every block of the store as a cell: hue by how many prompts share it, paler
// the longer ago it was used. What was saved or evicted since the last look
// flashes.

const flashMs = 1200;
const fieldHeightMax = 240;
const ageSteps = 6; // a minute, ten, an hour, six, a day, more
const ageLimitsMs = [60e3, 600e3, 3600e3, 6 * 3600e3, 24 * 3600e3];

const field = {
  cells: [], // {id, tokens, shared, present, lastUse, flash: "saved" | "gone" | "", since}
  columns: 1,
  pitch: 8,
  cursor: -1,
  colours: new Map(),
};

function fieldColour(cell, nowMs) {
  const age = ageLimitsMs.findIndex((limit) => nowMs - cell.lastUse < limit);
  const step = age < 0 ? ageSteps - 1 : age;
  const key = `${shareKind(cell.shared)}${step}`;
  let colour = field.colours.get(key);
  if (!colour) {
    colour = mix(palette.sharing[shareKind(cell.shared)], palette.paper, step * 0.13);
    field.colours.set(key, colour);
  }
  return colour;
}

function takeBlocks() {
  const { blocks } = store.told;
  const before = new Map(field.cells.filter((c) => c.flash !== "gone").map((c) => [c.id, c]));
  const first = field.cells.length === 0;
  const now = performance.now();
  const still = stillness.matches;
  const cells = blocks.id.map((id, i) => {
    const old = before.get(id);
    before.delete(id);
    const fresh = !old && !first && !still;
    return {
      id, tokens: blocks.tokens[i], shared: blocks.shared[i], present: blocks.present[i] !== 0,
      lastUse: blocks.last_use_ms[i], node: blocks.node[i],
      flash: fresh ? "saved" : old?.flash || "", since: fresh ? now : old?.since || 0,
    };
  });
  // Evicted ones stay at the end for the length of a flash.
  if (!still) for (const cell of before.values()) cells.push({ ...cell, flash: "gone", since: now });
  field.cells = cells;
  if (field.cursor >= cells.length) field.cursor = -1;
}

function layOutField(width) {
  const n = Math.max(1, field.cells.length);
  const pitch = Math.floor(Math.sqrt((width * fieldHeightMax) / n));
  field.pitch = Math.max(3, Math.min(14, pitch));
  field.columns = Math.max(1, Math.floor(width / field.pitch));
  return Math.ceil(n / field.columns) * field.pitch;
}

function chosenNodes() {
  const prompt = store.told?.prompts.find((p) => p.name === store.chosen);
  return prompt ? new Set(pathTo(store.told, prompt)) : null;
}

function drawCell(context, cell, x, y, size, now, nowMs, dim) {
  const t = cell.flash ? Math.min(1, (now - cell.since) / flashMs) : 1;
  let colour = fieldColour(cell, nowMs);
  if (dim) colour = mix(colour, palette.paper, 0.7);
  if (cell.flash === "gone") colour = mix(palette.ink, palette.paper, t);
  else if (t < 1) colour = mix(palette.ink, colour, t);
  context.fillStyle = css(colour);
  if (cell.present) context.fillRect(x, y, size, size);
  else {
    // Known to a prompt, but not there: an empty frame.
    context.fillRect(x, y, size, size);
    context.fillStyle = css(palette.paper);
    context.fillRect(x + 1, y + 1, size - 2, size - 2);
  }
  return t < 1;
}

// Draws all cells; true while something moves.
function drawField(now) {
  const canvas = byId("field");
  const width = canvas.clientWidth;
  if (width === 0 || field.cells.length === 0) return false;
  const height = layOutField(width);
  const context = fitCanvas(canvas, width, height);
  context.clearRect(0, 0, width, height);
  const nowMs = serverNow();
  const size = field.pitch - (field.pitch >= 5 ? 1 : 0.5);
  const chosen = chosenNodes();
  let moving = false;
  for (let i = 0; i < field.cells.length; ++i) {
    const cell = field.cells[i];
    const x = (i % field.columns) * field.pitch;
    const y = Math.floor(i / field.columns) * field.pitch;
    const dim = chosen !== null && !chosen.has(cell.node);
    moving = drawCell(context, cell, x, y, size, now, nowMs, dim) || moving;
  }
  if (field.cursor >= 0 && document.activeElement === canvas) {
    context.strokeStyle = css(palette.ink);
    context.lineWidth = 2;
    context.strokeRect((field.cursor % field.columns) * field.pitch - 1,
      Math.floor(field.cursor / field.columns) * field.pitch - 1, field.pitch + 1, field.pitch + 1);
  }
  return moving;
}

const redrawField = onNextFrame((now) => {
  if (drawField(now)) {
    redrawField();
    return;
  }
  // What was evicted has faded: its cells go.
  const left = field.cells.filter((cell) => cell.flash !== "gone");
  for (const cell of left) cell.flash = "";
  if (left.length !== field.cells.length) {
    field.cells = left;
    redrawField();
  }
});

function describeCell(i) {
  const cell = field.cells[i];
  if (!cell) return "";
  const shared = cell.shared === 0 ? "in no prompt yet" : `in ${plural(cell.shared, "prompt")}`;
  const where = cell.present ? `used ${formatAgo(cell.lastUse, serverNow())}` : "missing: computed when it is wanted";
  return `Block ${formatCount(i + 1)} of ${formatCount(field.cells.length)} (${cell.id}): ${plural(cell.tokens, "token")}, ${shared}, ${where}`;
}

function showField() {
  if (!store.told) return;
  takeBlocks();
  byId("field-part").hidden = field.cells.length === 0;
  const n = store.told.blocks.id.length;
  const leftOut = store.told.blocks.left_out ? ` ${formatCount(store.told.blocks.left_out)} more are not drawn.` : "";
  setText(byId("field-title"), `Every block: ${formatCount(n)}`);
  if (field.cursor < 0) {
    setText(byId("field-note"), `Point at a cell, or move with the arrow keys.${leftOut}`);
  }
  redrawField();
}

function pointAt(i) {
  if (i < 0 || i >= field.cells.length) return;
  field.cursor = i;
  setText(byId("field-note"), describeCell(i));
  redrawField();
}

function setUpField() {
  fillLegend(byId("field-legend"), sharing, "share");
  const canvas = byId("field");
  canvas.addEventListener("pointermove", (event) => {
    const column = Math.floor(event.offsetX / field.pitch);
    if (column < field.columns) pointAt(Math.floor(event.offsetY / field.pitch) * field.columns + column);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: field.columns, ArrowUp: -field.columns,
      Home: -field.cursor, End: field.cells.length - 1 - field.cursor,
    }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    pointAt(field.cursor < 0 ? 0 : field.cursor + step);
  });
  canvas.addEventListener("focus", redrawField);
  canvas.addEventListener("blur", redrawField);
  whenChanged(["store"], showField);
  whenChanged(["palette"], () => {
    field.colours.clear();
    redrawField();
  });
  new ResizeObserver(redrawField).observe(byId("field-part"));
}
