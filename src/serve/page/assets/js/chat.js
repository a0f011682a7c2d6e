// The conversation on the screen. Where it forks, the ways stand side by side.

const roleNames = { user: "You", assistant: "Model", tool: "Tool" };

// Fenced code apart, everything else as it came.
function textParts(text) {
  return text.split(/^```[^\n]*\n?/m).map((part, i) => (i % 2 === 1
    ? el("pre", { tabindex: "0" }, el("code", { text: part }))
    : el("p", { class: "said", text: part.trim() }))).filter((node) => node.textContent !== "");
}

function prettyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text; // still growing
  }
}

function callCard(call) {
  return el("div", { class: "call" },
    el("p", {}, "calls ", el("code", { text: call.name })),
    el("pre", { tabindex: "0" }, el("code", { text: prettyJson(call.arguments) })));
}

function figuresLine(message) {
  const f = message.figures;
  if (!f) return "";
  const words = [`${formatCount(f.reused)} of ${plural(f.prompt, "prompt token")} reused`];
  if (f.tier && f.reused > 0) words[0] += ` from ${f.tier}`;
  if (f.ttft_ms) words.push(`first token after ${formatMs(f.ttft_ms)}`);
  if (f.decode_ms > 0 && f.answer > 1) words.push(`${formatRate((f.answer - 1) / (f.decode_ms / 1000))} tokens/s`);
  return words.join(" · ");
}

function progressLine(message) {
  if (message.state !== "streaming" || message.content || message.reasoning) return "";
  const p = message.progress;
  return p ? `reading: ${formatCount(p.processed)} of ${formatCount(p.total)} tokens` : "waiting for the first token";
}

const isBusy = () => dialogue.abort !== null;

function answerParts(message) {
  const parts = [];
  if (message.reasoning) {
    parts.push(el("details", { class: "reasoning", open: message.reasoningOpen,
      ontoggle: (event) => { message.reasoningOpen = event.target.open; } },
    el("summary", { text: message.content || message.state !== "streaming" ? "Reasoning" : "Reasoning …" }),
    el("p", { class: "said", text: message.reasoning.trim() })));
  }
  parts.push(...textParts(message.content), ...message.calls.filter(Boolean).map(callCard));
  const notes = {
    stopped: "Stopped. What was computed is kept.",
    failed: `Failed: ${message.fault}`,
    done: message.finish === "length" ? "Cut: the answer reached its longest length." : "",
    streaming: progressLine(message),
  }[message.state];
  if (notes) parts.push(el("p", { class: message.state === "failed" ? "fault" : "quiet note", text: notes }));
  const line = figuresLine(message);
  if (line) parts.push(el("p", { class: "quiet note", text: line }));
  return parts;
}

function messageCard(message) {
  const onPath = pathOf(dialogue.leaf).includes(message);
  const card = el("article", { class: `message ${message.role}${onPath ? " on-path" : ""}`, "data-message": message.id });
  const tools = el("div", { class: "tools" });
  if (message.role === "user") {
    tools.append(el("button", { type: "button", class: "plain", text: "Edit", disabled: isBusy(), onclick: () => startEdit(message) }));
  }
  if (message.role === "assistant") {
    tools.append(el("button", { type: "button", class: "plain", text: "Retry", disabled: isBusy(), onclick: () => retry(message) }));
  }
  if (!onPath) {
    tools.append(el("button", { type: "button", class: "plain", text: "Go on here", disabled: isBusy(), onclick: () => goOnAt(message) }));
  }
  card.append(el("header", {}, el("h3", { text: roleNames[message.role] }), tools));
  if (editing.message === message) card.append(editForm(message));
  else card.append(...(message.role === "assistant" ? answerParts(message) : textParts(message.content)));
  return card;
}

// The messages below `message`, in a column; several children: a column each.
function columnOf(message) {
  const column = el("div", { class: "column" });
  let at = message;
  while (at.children.length === 1) {
    at = at.children[0];
    column.append(messageCard(at));
  }
  if (at.children.length > 1) {
    const forks = el("div", { class: "forks", role: "group", tabindex: "0", "aria-label": `${at.children.length} ways on from here` });
    for (const child of at.children) {
      const way = el("div", { class: "fork" }, messageCard(child));
      way.append(columnOf(child));
      forks.append(way);
    }
    column.append(forks);
  }
  return column;
}

const showChat = onNextFrame(() => {
  const log = byId("chat-log");
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  const editorHasFocus = document.activeElement?.id === "edit-text";
  if (dialogue.root.children.length === 0) {
    log.replaceChildren(el("p", { class: "quiet", text: "Ask something short first. Then ask again: the line below the answer says how much of the prompt was not computed a second time." }));
  } else if (!editorHasFocus || !isBusy()) {
    const focused = editorHasFocus ? document.activeElement.selectionStart : null;
    log.replaceChildren(columnOf(dialogue.root));
    if (focused !== null) focusEditor(focused);
  }
  if (atEnd) log.scrollTop = log.scrollHeight;
  showComposer();
});

// While an answer streams only its own card is made anew.
function showAnswer() {
  const message = dialogue.leaf;
  const log = byId("chat-log");
  const card = log.querySelector(`[data-message="${message.id}"]`);
  if (!card || message.state !== "streaming") {
    showChat();
    return;
  }
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  card.replaceChildren(card.firstElementChild, ...answerParts(message));
  if (atEnd) log.scrollTop = log.scrollHeight;
}
