// The stored prompts as one tree: from left to right their tokens, thick where
// many prompts go the same way; a row for each prompt that nothing goes on from.

const store = { told: null, chosen: null, version: null };

const rowHeight = 30;
const rowsShownAtFirst = 24;
let showAllRows = false;

// Children of each node, rows of the leaves. A trunk keeps the row of its
// first child: the branch that was used last.
function layOutTree(told) {
  const children = told.nodes.map(() => []);
  const roots = [];
  told.nodes.forEach((node, i) => (node.parent < 0 ? roots : children[node.parent]).push(i));
  const newestFirst = (a, b) => told.nodes[b].last_use_ms - told.nodes[a].last_use_ms || a - b;
  const row = new Array(told.nodes.length).fill(0);
  const leaves = [];
  // Depth first without recursion: a chain may be long.
  const stack = [...roots.sort(newestFirst)].reverse();
  const order = [];
  while (stack.length > 0) {
    const at = stack.pop();
    order.push(at);
    row[at] = leaves.length;
    if (children[at].length === 0) leaves.push(at);
    for (const child of [...children[at].sort(newestFirst)].reverse()) stack.push(child);
  }
  return { children, row, leaves, order };
}

function promptsByNode(told) {
  const at = new Map();
  told.prompts.forEach((prompt, i) => at.set(prompt.node, i));
  return at;
}

function shareKind(n) {
  if (n <= 0) return "loose";
  if (n === 1) return "alone";
  if (n === 2) return "two";
  return n <= 4 ? "few" : "many";
}

const strokeOf = (n) => Math.min(16, 3 + 3 * Math.log2(Math.max(1, n)));

function branchOf(told, layout, index, x, width) {
  const node = told.nodes[index];
  const y = rowHeight * (layout.row[index] + 0.5);
  const x0 = x(node.first_token);
  const x1 = Math.max(x(node.first_token + node.tokens), x0 + 2);
  const shapes = [];
  const kind = shareKind(node.prompts);
  let path = `M${x0} ${y}H${x1}`;
  if (node.parent >= 0 && layout.row[node.parent] !== layout.row[index]) {
    const y0 = rowHeight * (layout.row[node.parent] + 0.5);
    path = `M${x0} ${y0}V${y - 8}Q${x0} ${y} ${Math.min(x0 + 8, x1)} ${y}H${x1}`;
  }
  shapes.push(svg("path", {
    d: path, class: `branch share-${kind}`, "stroke-width": width,
    "stroke-dasharray": node.present < node.blocks ? "3 3" : null,
  }));
  return shapes;
}

function drawTree(told, layout, nRows) {
  const picture = byId("tree-picture");
  const width = picture.clientWidth || 200;
  const longest = Math.max(1, ...told.nodes.map((n) => n.first_token + n.tokens));
  const x = (token) => Math.round((6 + ((width - 14) * token) / longest) * 10) / 10;
  const height = rowHeight * nRows;
  setAttribute(picture, "viewBox", `0 0 ${width} ${height}`);
  picture.style.height = `${height}px`;
  const ends = promptsByNode(told);
  const shapes = [];
  // Thin ones first: a trunk lies over its branches' beginnings.
  const drawn = layout.order.filter((i) => layout.row[i] < nRows)
    .sort((a, b) => told.nodes[a].prompts - told.nodes[b].prompts);
  for (const i of drawn) shapes.push(...branchOf(told, layout, i, x, strokeOf(told.nodes[i].prompts)));
  for (const i of drawn) {
    const prompt = ends.get(i);
    if (prompt === undefined) continue;
    const node = told.nodes[i];
    const chosen = told.prompts[prompt].name === store.chosen;
    shapes.push(svg("circle", {
      cx: x(node.first_token + node.tokens), cy: rowHeight * (layout.row[i] + 0.5),
      r: chosen ? 6 : 3.5, class: chosen ? "end chosen" : "end",
      onclick: () => choosePrompt(told.prompts[prompt].name),
    }));
  }
  picture.replaceChildren(...shapes);
}

const shortName = (name) => name.slice(name.lastIndexOf("-") + 1);

function makeRow() {
  return el("button", { type: "button", class: "tree-row" },
    el("code", {}), el("span", { class: "figures" }), el("span", { class: "quiet" }));
}

function updateRow(button, prompt) {
  const marks = [prompt.pinned ? "pinned" : "", prompt.whole ? "" : "has a hole"];
  setText(button.children[0], shortName(prompt.name));
  setText(button.children[1], plural(prompt.tokens, "token"));
  setText(button.children[2], [...marks.filter(Boolean), formatAgo(prompt.last_use_ms, serverNow())].join(" · "));
  setAttribute(button, "aria-pressed", String(prompt.name === store.chosen));
  setAttribute(button, "title", prompt.name);
  button.onclick = () => choosePrompt(prompt.name);
}

function moveAmongRows(event) {
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  const row = event.target.closest(".tree-row");
  if (!step || !row) return;
  event.preventDefault();
  row[step]?.focus();
}

function showTree() {
  const told = store.told;
  if (!told) return;
  const empty = told.prompts.length === 0;
  byId("store-empty").hidden = !empty;
  byId("tree").hidden = empty;
  setText(byId("store-empty-text"), !state.meters || state.meters.has_store
    ? "Nothing is stored yet. A prompt of one block or more is kept by itself while it is read, and serves whatever begins like it."
    : "This server keeps nothing: it was started without a prompt cache directory.");
  const blocks = told.blocks.id.length;
  const states = told.nodes.reduce((sum, node) => sum + node.states, 0);
  setText(byId("store-count"), empty ? "" :
    `${plural(told.prompts.length, "prompt")}, ${plural(blocks, "block")}` +
    (states ? `, ${plural(states, "recurrent state")}` : "") +
    (told.locked ? `, ${formatCount(told.locked)} under another key` : ""));
  const layout = layOutTree(told);
  const ends = promptsByNode(told);
  const rows = layout.leaves.map((leaf) => told.prompts[ends.get(leaf)]).filter(Boolean);
  const n = showAllRows ? rows.length : Math.min(rows.length, rowsShownAtFirst);
  drawTree(told, layout, n);
  reconcile(byId("tree-rows"), rows.slice(0, n), (prompt) => prompt.name, makeRow, updateRow);
  const more = byId("tree-more");
  more.hidden = rows.length <= rowsShownAtFirst;
  setText(more, showAllRows ? "Show fewer" : `Show all ${formatCount(rows.length)}`);
  showPrompt();
}

// Asks for the store again when the server says that it may have changed; a
// look now and then sees what other programs did to it.
async function followStore() {
  let looked = 0;
  for (;;) {
    const version = state.meters?.store_version;
    const due = version !== store.version || performance.now() - looked > 15000;
    if (state.meters && due && !document.hidden) {
      store.version = version;
      looked = performance.now();
      try {
        store.told = await getJson("/hearth/v1/cache");
        changed("store");
      } catch {
        // The status line already says that the server is away.
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function setUpTree() {
  byId("tree").append(
    svg("svg", { id: "tree-picture", "aria-hidden": "true" }),
    el("div", { id: "tree-rows", class: "tree-rows", onkeydown: moveAmongRows }));
  byId("tree-more").addEventListener("click", () => {
    showAllRows = !showAllRows;
    showTree();
  });
  whenChanged(["store", "palette"], showTree);
  new ResizeObserver(onNextFrame(showTree)).observe(byId("tree"));
  followStore();
}
