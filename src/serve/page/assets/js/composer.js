// Writing: a message, an edit of one, a tool's result; and the settings.

const editing = { message: null, text: "", note: "", timer: 0 };

function settingsNow() {
  const number = (id) => (byId(id).value === "" ? null : Number(byId(id).value));
  let tools = null;
  let fault = "";
  const text = byId("chat-tools").value.trim();
  if (text) {
    try {
      tools = JSON.parse(text);
      if (!Array.isArray(tools)) fault = "The tools are a JSON array.";
    } catch (error) {
      fault = `The tools are no JSON: ${error.message}`;
    }
  }
  setText(byId("chat-tools-fault"), fault);
  return {
    system: byId("chat-system").value.trim(), temperature: number("chat-temperature"),
    maxTokens: number("chat-max"), tools, fault,
  };
}

function run(last) {
  const settings = settingsNow();
  if (settings.fault) {
    document.querySelector(".settings").open = true;
    byId("chat-tools").focus();
    return;
  }
  const drawn = onNextFrame(showAnswer);
  ask(last, settings, drawn).then(showChat);
}

function send(text) {
  const calls = openCalls(dialogue.leaf);
  const last = calls.length > 0
    ? newMessage(dialogue.leaf, "tool", { content: text, callId: calls[0].id })
    : newMessage(dialogue.leaf, "user", { content: text });
  dialogue.leaf = last;
  // Every call is answered before the model goes on.
  if (openCalls(last).length > 0) showChat();
  else run(last);
}

function retry(answer) {
  run(answer.parent);
}

function goOnAt(message) {
  dialogue.leaf = lastBelow(message);
  showChat();
  byId("chat-text").focus();
}

function startEdit(message) {
  Object.assign(editing, { message, text: message.content, note: "" });
  showChat();
  requestAnimationFrame(() => focusEditor(message.content.length));
  askWhatEditKeeps();
}

function focusEditor(at) {
  const box = byId("edit-text");
  box?.focus();
  box?.setSelectionRange(at, at);
}

function endEdit() {
  editing.message = null;
  showChat();
}

function editForm(message) {
  const box = el("textarea", { id: "edit-text", rows: "3", "aria-label": "The edited message",
    oninput: (event) => {
      editing.text = event.target.value;
      askWhatEditKeeps();
    } });
  box.value = editing.text;
  return el("form", { class: "edit", onsubmit: (event) => {
    event.preventDefault();
    const text = editing.text.trim();
    if (!text) return;
    editing.message = null;
    run(newMessage(message.parent, "user", { content: text }));
  } },
  box,
  el("p", { class: "quiet note", id: "edit-note", role: "status", text: editing.note }),
  el("div", { class: "row" },
    el("button", { type: "button", text: "Cancel", onclick: endEdit }),
    el("button", { type: "submit", class: "main", text: "Send as another way" })));
}

// Asks the server, a moment after the last key, how much of the edited
// conversation is in its cache.
function askWhatEditKeeps() {
  clearTimeout(editing.timer);
  editing.timer = setTimeout(async () => {
    const { message, text } = editing;
    if (!message) return;
    const body = requestFor(message.parent, settingsNow());
    body.messages.push({ role: "user", content: text });
    try {
      const why = await postJson("/hearth/v1/why", body);
      editing.note = `This keeps ${formatCount(why.tokens_kept)} of ${plural(why.tokens, "token")} ` +
        `(${formatShare(why.tokens_kept, why.tokens)}) in the cache` + (why.miss_reason ? `: ${why.miss_reason}` : ".");
    } catch (error) {
      editing.note = `How much it keeps is not known: ${error.message}`;
    }
    const note = byId("edit-note");
    if (note) setText(note, editing.note);
  }, 300);
}

function showComposer() {
  const calls = openCalls(dialogue.leaf);
  const busy = isBusy();
  byId("chat-send").hidden = busy;
  byId("chat-stop").hidden = !busy;
  byId("chat-new").disabled = busy;
  const label = calls.length > 0 ? `The result of ${calls[0].name}` : "Your message";
  setText(byId("chat-text-label"), label);
  byId("chat-text").placeholder = calls.length > 0 ? `${label}, as its tool would give it` : "Say something";
  setText(byId("chat-note"), calls.length > 0 ? `The model waits for ${label.toLowerCase()}.` : "");
}

function setUpChat() {
  startDialogue();
  byId("chat-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId("chat-text").value.trim();
    if (!text || isBusy()) return;
    byId("chat-text").value = "";
    send(text);
  });
  byId("chat-text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("chat-form").requestSubmit();
  });
  byId("chat-stop").addEventListener("click", () => dialogue.abort?.abort());
  byId("chat-new").addEventListener("click", () => {
    startDialogue();
    editing.message = null;
    showChat();
    byId("chat-text").focus();
  });
  byId("chat-tools").addEventListener("change", settingsNow);
  showChat();
}
