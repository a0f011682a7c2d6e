// Talking to the server that sent this page, and to nobody else.

const keyName = "hearth-key";

// Kept for the tab: sessionStorage is neither shared with other tabs nor kept.
const savedKey = () => sessionStorage.getItem(keyName) || "";
const saveKey = (key) => sessionStorage.setItem(keyName, key);

class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (savedKey()) headers.Authorization = `Bearer ${savedKey()}`;
  if (options.body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { ...options, headers, cache: "no-store" });
  if (answer.ok) return answer;
  let message = `${answer.status} ${answer.statusText}`;
  try {
    const body = await answer.json();
    message = body.error?.message || body.error || message;
  } catch {
    // No JSON: the status says it.
  }
  throw new ServerError(answer.status, message);
}

const getJson = async (path) => (await request(path)).json();

const postJson = async (path, value, signal) =>
  (await request(path, { method: "POST", body: JSON.stringify(value), signal })).json();

// The server-sent events of an answer's body, as {event, data}. (EventSource
// sends no key and cannot post.)
async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    let end;
    while ((end = text.search(/\r?\n\r?\n/)) >= 0) {
      const block = text.slice(0, end);
      text = text.slice(end).replace(/^\r?\n\r?\n/, "");
      const event = parseEvent(block);
      if (event.data !== "") yield event;
    }
  }
}

function parseEvent(block) {
  const event = { event: "message", data: "" };
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) event.event = line.slice(6).trim();
    if (line.startsWith("data:")) {
      event.data += (event.data ? "\n" : "") + line.slice(5).replace(/^ /, "");
    }
  }
  return event;
}
