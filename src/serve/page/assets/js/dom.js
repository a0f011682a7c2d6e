// Making and changing elements. (The page's script is one module, written as
// one file a concept; assets.S has their order.)

const byId = (id) => document.getElementById(id);

// An element with attributes; `class` and `text` as their names say, functions
// are listeners ("onclick"), true sets an attribute, false and null leave it.
function el(tag, attributes = {}, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return dress(node, attributes, children);
}

function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

// Writes only what differs: a screen reader hears of real changes alone.
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

// Makes the children of `parent` those of `items`, in order; a child lives as
// long as its item's key is there.
function reconcile(parent, items, keyOf, make, update) {
  const old = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let node = old.get(key);
    if (node) old.delete(key);
    else {
      node = make(item);
      node.dataset.key = key;
    }
    update(node, item);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  for (const node of old.values()) node.remove();
}

// At most one call a frame.
function onNextFrame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame((now) => {
      asked = false;
      work(now);
    });
  };
}

const stillness = matchMedia("(prefers-reduced-motion: reduce)");

// Sizes a canvas to its box in device pixels; its context, in CSS pixels.
function fitCanvas(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  const w = Math.round(width * scale);
  const h = Math.round(height * scale);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

function announce(text) {
  byId("announce").textContent = text;
}

async function copyText(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select and copy by hand";
  }
  announce(button.textContent);
  setTimeout(() => { button.textContent = before; }, 1600);
}
