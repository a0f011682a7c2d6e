// The last hundred requests with their figures, and why each was not reused
// whole.

function tokensPerSecond(request) {
  const s = request.decode_ms / 1000;
  return s > 0 && request.completion_tokens > 1 ? formatRate((request.completion_tokens - 1) / s) : "–";
}

function missText(request) {
  if (request.fault) return request.fault;
  if (request.miss) return request.miss;
  if (request.status === 0 || !request.prompt_tokens) return "";
  return request.reused_tokens > 0 ? "" : "nothing stored began like it";
}

const requestColumns = [
  { text: (r) => formatTime(r.started_ms) },
  { text: (r) => r.client, below: (r) => r.path },
  { text: (r) => (r.status === 0 ? "runs" : String(r.status)), number: true },
  { text: (r) => (r.prompt_tokens ? formatCount(r.prompt_tokens) : "–"), number: true },
  {
    text: (r) => formatCount(r.reused_tokens), number: true,
    below: (r) => (r.reused_tokens ? `${formatShare(r.reused_tokens, r.prompt_tokens)}, ${r.tier}` : ""),
  },
  { text: (r) => (r.completion_tokens ? formatCount(r.completion_tokens) : "–"), number: true },
  {
    text: (r) => (r.ttft_ms ? formatMs(r.ttft_ms) : "–"), number: true,
    below: (r) => (r.queue_ms >= 1 ? `${formatMs(r.queue_ms)} in line` : ""),
  },
  { text: tokensPerSecond, number: true },
  { text: missText, wide: true },
];

function makeRequest() {
  return el("tr", {}, ...requestColumns.map((column) => {
    const cell = el("td", { class: column.number ? "n" : column.wide ? "wide" : null }, el("span"));
    if (column.below) cell.append(el("span", { class: "below quiet" }));
    return cell;
  }));
}

function updateRequest(row, request) {
  requestColumns.forEach((column, i) => {
    const cell = row.children[i];
    setText(cell.firstChild, column.text(request));
    if (column.below) setText(cell.lastChild, column.below(request));
  });
  setAttribute(row, "title", `request ${request.id}`);
  row.classList.toggle("failed", request.status >= 400);
}

function showRequests() {
  const all = [...state.requests.values()].sort((a, b) => b.number - a.number);
  reconcile(byId("request-rows"), all, (request) => request.number, makeRequest, updateRequest);
  byId("request-table").hidden = all.length === 0;
  setText(byId("requests-count"), all.length === 0 ? "none yet" : plural(all.length, "request"));
}

function setUpRequests() {
  whenChanged(["requests"], showRequests);
}
