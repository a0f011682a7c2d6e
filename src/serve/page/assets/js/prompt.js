// The chosen stored prompt: its figures, what it goes on from, and what can be
// done with it.

function choosePrompt(name) {
  store.chosen = store.chosen === name ? null : name;
  changed("store");
}

// Nodes from the root to the prompt's end.
function pathTo(told, prompt) {
  const path = [];
  for (let at = prompt.node; at >= 0; at = told.nodes[at].parent) path.unshift(at);
  return path;
}

function whyNotAll(told, prompt) {
  if (prompt.whole) {
    return "All of it is there: the same prompt would be reused but for its last token.";
  }
  return `Something is missing after token ${formatCount(prompt.usable)}: ` +
    `the ${plural(prompt.tokens - prompt.usable, "token")} from there on would be computed.`;
}

async function changeStore(change, done) {
  try {
    await postJson("/hearth/v1/cache", change);
    announce(done);
    store.version = null; // look again
  } catch (error) {
    setText(byId("prompt-fault"), error.message);
  }
}

function figure(term, text) {
  return el("div", {}, el("dt", { text: term }), el("dd", { text }));
}

function earlierTurns(told, prompt, path) {
  const ends = promptsByNode(told);
  const earlier = path.slice(0, -1).map((node) => told.prompts[ends.get(node)]).filter(Boolean);
  if (earlier.length === 0) return [];
  const shown = earlier.slice(-8);
  return [el("p", { class: "earlier" },
    earlier.length > shown.length ? `Goes on from ${formatCount(earlier.length)} stored prompts, the last: ` : "Goes on from: ",
    ...shown.map((other) => el("button", {
      type: "button", class: "plain", text: `${shortName(other.name)} (${formatCount(other.tokens)})`,
      onclick: () => choosePrompt(other.name),
    })))];
}

function actionsFor(prompt) {
  const pin = el("button", {
    type: "button", text: prompt.pinned ? "Unpin" : "Pin: never evict",
    onclick: () => changeStore(prompt.pinned ? { unpin: prompt.name } : { pin: prompt.name },
      prompt.pinned ? "Unpinned" : "Pinned"),
  });
  const evict = el("button", {
    type: "button", class: "danger", text: "Evict",
    onclick: () => {
      // The second press does it: nothing brings an evicted prompt back.
      if (evict.dataset.sure) return changeStore({ evict: prompt.name }, "Evicted");
      evict.dataset.sure = "yes";
      evict.textContent = "Evict: sure?";
      return null;
    },
  });
  return el("div", { class: "row" }, pin, evict,
    el("p", { id: "prompt-fault", class: "fault", role: "alert" }));
}

let shownPrompt = "";

function showPrompt() {
  const box = byId("prompt");
  const prompt = store.told.prompts.find((p) => p.name === store.chosen);
  box.hidden = !prompt;
  const text = JSON.stringify([prompt, store.told.prompts.length]);
  if (!prompt || text === shownPrompt) return;
  shownPrompt = text;
  const path = pathTo(store.told, prompt);
  const trunk = path.map((i) => store.told.nodes[i]).filter((node) => node.prompts > 1)
    .reduce((sum, node) => sum + node.tokens, 0);
  box.replaceChildren(
    el("h3", {}, el("code", { text: prompt.name })),
    // Only of a server that keeps previews (--cache-previews).
    ...(prompt.preview ? [el("blockquote", { class: "preview", text: prompt.preview })] : []),
    el("dl", { class: "figures-list" },
      figure("Tokens", formatCount(prompt.tokens)),
      figure("Shared with others", `${formatCount(trunk)} (${formatShare(trunk, prompt.tokens)})`),
      figure("Size", `${formatBytes(prompt.bytes)}, ${formatBytes(prompt.bytes_shared)} shared`),
      // Only of models with recurrent layers.
      ...(prompt.states ? [figure("Recurrent states", `${formatCount(prompt.states)}, ${formatBytes(prompt.bytes_states)}`)] : []),
      figure("Last use", formatAgo(prompt.last_use_ms, serverNow())),
      figure("Stored", formatAgo(prompt.created_ms, serverNow()))),
    el("p", { text: whyNotAll(store.told, prompt) }),
    ...earlierTurns(store.told, prompt, path),
    actionsFor(prompt));
}
