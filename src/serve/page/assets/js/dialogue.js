// A conversation as a tree of messages: an edit or a retry is another child of
// the same parent, so that both ways stay and stand side by side.

let nextMessage = 1;

const dialogue = { root: null, leaf: null, abort: null };

function newMessage(parent, role, fields = {}) {
  const message = {
    id: nextMessage++, role, parent, children: [], content: "", reasoning: "", calls: [],
    state: "done", figures: null, fault: "", callId: null, ...fields,
  };
  parent?.children.push(message);
  return message;
}

function startDialogue() {
  dialogue.abort?.abort();
  dialogue.root = newMessage(null, "root");
  dialogue.leaf = dialogue.root;
}

// From the first message to this one.
function pathOf(message) {
  const path = [];
  for (let at = message; at && at.role !== "root"; at = at.parent) path.unshift(at);
  return path;
}

// The newest message below.
function lastBelow(message) {
  let at = message;
  while (at.children.length > 0) at = at.children[at.children.length - 1];
  return at;
}

// A message in OpenAI's chat form.
function wireMessage(message) {
  const wire = { role: message.role, content: message.content };
  if (message.reasoning) wire.reasoning_content = message.reasoning;
  if (message.calls.length > 0) {
    wire.tool_calls = message.calls.map((call) => ({
      id: call.id, type: "function", function: { name: call.name, arguments: call.arguments },
    }));
  }
  if (message.role === "tool") wire.tool_call_id = message.callId;
  return wire;
}

// What would be asked with `last` as the newest message.
function requestFor(last, settings) {
  const messages = pathOf(last).map(wireMessage);
  if (settings.system) messages.unshift({ role: "system", content: settings.system });
  const body = { model: state.model.id, messages };
  if (settings.tools) body.tools = settings.tools;
  return body;
}

// The calls of the message that nobody has answered on the way to `leaf`.
function openCalls(leaf) {
  const path = pathOf(leaf);
  const at = path.findLastIndex((message) => message.role === "assistant");
  if (at < 0) return [];
  const answered = new Set(path.slice(at + 1).map((message) => message.callId));
  return path[at].calls.filter((call) => !answered.has(call.id));
}

function takeDelta(answer, delta) {
  answer.content += delta.content || "";
  answer.reasoning += delta.reasoning_content || "";
  for (const piece of delta.tool_calls || []) {
    answer.calls[piece.index] ??= { id: "", name: "", arguments: "" };
    const call = answer.calls[piece.index];
    if (piece.id) call.id = piece.id;
    if (piece.function?.name) call.name = piece.function.name;
    call.arguments += piece.function?.arguments || "";
  }
}

function takeChunk(answer, chunk) {
  if (chunk.error) throw new Error(chunk.error.message || "the server gave up");
  const choice = chunk.choices?.[0];
  if (choice) {
    takeDelta(answer, choice.delta || {});
    if (choice.finish_reason) answer.finish = choice.finish_reason;
  }
  if (chunk.prompt_progress) answer.progress = chunk.prompt_progress;
  if (chunk.usage) {
    answer.figures = {
      prompt: chunk.usage.prompt_tokens,
      reused: chunk.usage.prompt_tokens_details?.cached_tokens || 0,
      answer: chunk.usage.completion_tokens,
      ...chunk.hearth,
    };
  }
}

// Streams the answer to `last` into a new message; `onChange` after each piece.
async function ask(last, settings, onChange) {
  const answer = newMessage(last, "assistant", { state: "streaming" });
  dialogue.leaf = answer;
  dialogue.abort = new AbortController();
  const { signal } = dialogue.abort;
  onChange();
  const body = { ...requestFor(last, settings), stream: true, stream_options: { include_usage: true }, return_progress: true };
  if (settings.temperature !== null) body.temperature = settings.temperature;
  if (settings.maxTokens !== null) body.max_tokens = settings.maxTokens;
  try {
    const reply = await request("/v1/chat/completions", { method: "POST", body: JSON.stringify(body), signal });
    for await (const { data } of eventsOf(reply)) {
      if (data === "[DONE]") break;
      takeChunk(answer, JSON.parse(data));
      onChange();
    }
    answer.state = "done";
  } catch (error) {
    answer.state = signal.aborted ? "stopped" : "failed";
    answer.fault = signal.aborted ? "" : error.message;
  }
  answer.calls = answer.calls.filter(Boolean);
  if (dialogue.abort?.signal === signal) dialogue.abort = null;
  onChange();
  return answer;
}
