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
  colours: new Map(), // packed colours by kind, age and flash
  pixels: document.createElement("canvas"), // one pixel a cell
};

const flashSteps = 16;

// As a pixel of an ImageData; few different ones, so that a frame of ten
// thousand cells makes none anew.
function fieldColour(cell, now, nowMs, dim) {
  const found = ageLimitsMs.findIndex((limit) => nowMs - cell.lastUse < limit);
  const age = found < 0 ? ageSteps - 1 : found;
  const t = cell.flash ? Math.min(1, (now - cell.since) / flashMs) : 1;
  const step = Math.floor(t * flashSteps);
  const kind = shareKind(cell.shared);
  const key = `${kind}${age}${dim ? "d" : ""}${cell.flash === "gone" ? "g" : ""}${step}`;
  let packed = field.colours.get(key);
  if (packed === undefined) {
    let colour = mix(palette.sharing[kind], palette.paper, age * 0.11);
    if (dim) colour = mix(colour, palette.paper, 0.55);
    if (cell.flash === "gone") colour = palette.paper;
    colour = mix(palette.ink, colour, step / flashSteps);
    packed = ((255 << 24) | (colour[2] << 16) | (colour[1] << 8) | colour[0]) >>> 0;
    field.colours.set(key, packed);
  }
  return packed;
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
      lastUse: store.told.now_ms - 1000 * blocks.age_s[i], node: blocks.node[i],
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

// One pixel a cell; true while a flash is on.
function paintPixels(rows, now) {
  const { pixels, columns } = field;
  if (pixels.width !== columns || pixels.height !== rows) {
    pixels.width = columns;
    pixels.height = rows;
  }
  const context = pixels.getContext("2d");
  const image = context.createImageData(columns, rows);
  const words = new Uint32Array(image.data.buffer);
  const nowMs = serverNow();
  const chosen = chosenNodes();
  let moving = false;
  field.cells.forEach((cell, i) => {
    words[i] = fieldColour(cell, now, nowMs, chosen !== null && !chosen.has(cell.node));
    if (cell.flash && now - cell.since < flashMs) moving = true;
  });
  context.putImageData(image, 0, 0);
  return moving;
}

// The lines between the cells, and what a prompt knows of but is not there: an
// empty frame.
function drawLines(context, width, height) {
  const { pitch } = field;
  const gap = pitch >= 5 ? 1 : 0.5;
  context.fillStyle = css(palette.paper);
  for (let x = pitch - gap; x < width; x += pitch) context.fillRect(x, 0, gap, height);
  for (let y = pitch - gap; y < height; y += pitch) context.fillRect(0, y, width, gap);
  field.cells.forEach((cell, i) => {
    if (cell.present) return;
    context.fillRect((i % field.columns) * pitch + 1, Math.floor(i / field.columns) * pitch + 1,
      pitch - gap - 2, pitch - gap - 2);
  });
}

// Draws all cells; true while something moves.
function drawField(now) {
  const canvas = byId("field");
  const width = canvas.clientWidth;
  if (width === 0 || field.cells.length === 0) return false;
  const height = layOutField(width);
  const rows = height / field.pitch;
  const context = fitCanvas(canvas, width, height);
  const moving = paintPixels(rows, now);
  context.clearRect(0, 0, width, height);
  context.imageSmoothingEnabled = false;
  context.drawImage(field.pixels, 0, 0, field.columns * field.pitch, height);
  drawLines(context, field.columns * field.pitch, height);
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
