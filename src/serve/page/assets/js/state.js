// What the server has told so far, and who wants to hear of it.

const state = {
  model: { id: "", context_tokens: 0, block_tokens: 64 },
  meters: null,
  today: null,
  rates: null,
  lanes: new Map(),
  requests: new Map(),
  series: null,
  clockSkewMs: 0, // the server's clock is ahead by
};

const serverNow = () => Date.now() + state.clockSkewMs;

const listeners = new Map(); // part -> functions

// `work` is called in the next frame after one of the parts has changed.
function whenChanged(parts, work) {
  const later = onNextFrame(work);
  for (const part of parts) {
    if (!listeners.has(part)) listeners.set(part, []);
    listeners.get(part).push(later);
  }
}

function changed(part) {
  for (const work of listeners.get(part) || []) work();
}

function takeSnapshot(told) {
  state.model = told.model;
  state.lanes.clear();
  state.requests.clear();
  takeChange(told);
  for (const part of ["model", "lanes", "requests"]) changed(part);
}

function takeChange(told) {
  state.clockSkewMs = told.now_ms - Date.now();
  for (const part of ["meters", "today", "rates", "series"]) {
    if (!(part in told)) continue;
    state[part] = told[part];
    changed(part);
  }
  for (const id of told.lanes_gone || []) state.lanes.delete(id);
  for (const lane of told.lanes || []) state.lanes.set(lane.id, lane);
  if (told.lanes || told.lanes_gone) changed("lanes");
  for (const request of told.requests || []) state.requests.set(request.number, request);
  if (told.requests) {
    forgetOldRequests();
    changed("requests");
  }
}

function forgetOldRequests() {
  const numbers = [...state.requests.keys()].sort((a, b) => a - b);
  for (const number of numbers.slice(0, Math.max(0, numbers.length - 100))) {
    state.requests.delete(number);
  }
}

function showStatus(kind, text) {
  const node = byId("status");
  setAttribute(node, "data-state", kind);
  setText(node, text);
}

// Follows /hearth/v1/events for as long as the page lives. A server that is
// away is tried again, from half a second up to five.
async function followEvents() {
  let wait = 500;
  for (;;) {
    try {
      const answer = await request("/hearth/v1/events");
      byId("key-form").hidden = true;
      for await (const { event, data } of eventsOf(answer)) {
        const told = JSON.parse(data);
        if (event === "snapshot") takeSnapshot(told);
        else if (event === "change") takeChange(told);
        else continue;
        showStatus("live", "live");
        wait = 500;
      }
      showStatus("lost", "server is gone; trying again");
    } catch (error) {
      if (error.status === 401) {
        await askForKey();
        continue;
      }
      showStatus("lost", "no server; trying again");
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, 5000);
  }
}

function askForKey() {
  const form = byId("key-form");
  const had = savedKey();
  form.hidden = false;
  showStatus("lost", "a key is needed");
  setText(byId("key-fault"), had ? "The server does not know this key." : "");
  byId("key").focus();
  return new Promise((resolve) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      saveKey(byId("key").value.trim());
      byId("key").value = "";
      resolve();
    }, { once: true });
  });
}
