// What is in use of what there may be, what was spared, and how it feels.

const meters = [
  {
    title: "Memory",
    value: () => formatBytes(state.meters.memory_held),
    note: () => (state.meters.memory_budget ? `of ${formatBytes(state.meters.memory_budget)}` : "no budget") +
      (state.meters.memory_mapped ? `, ${formatBytes(state.meters.memory_mapped)} mapped` : ""),
    bar: () => [state.meters.memory_held, state.meters.memory_budget],
  },
  {
    title: "Disk",
    value: () => (state.meters.has_store ? formatBytes(state.meters.disk_used) : "none"),
    note: () => {
      if (!state.meters.has_store) return "nothing outlives the server";
      const queue = state.meters.save_queue;
      const of = state.meters.disk_budget ? `of ${formatBytes(state.meters.disk_budget)}` : "no budget";
      return queue ? `${of}, ${formatBytes(queue)} to write` : of;
    },
    bar: () => [state.meters.disk_used, state.meters.disk_budget],
  },
  {
    title: "Reused today",
    value: () => formatShare(state.today.reused_tokens, state.today.prompt_tokens),
    note: () => `${formatCount(state.today.reused_tokens)} of ${formatCount(state.today.prompt_tokens)} tokens`,
    bar: () => [state.today.reused_tokens, state.today.prompt_tokens],
  },
  {
    title: "Spared today",
    value: () => formatSeconds(state.today.seconds_spared),
    note: () => `of prefill, in ${plural(state.today.requests, "request")}`,
  },
  {
    title: "First token",
    value: () => formatMs(newest(state.series.ttft_ms)),
    note: () => "longest wait, ten minutes",
    line: () => state.series.ttft_ms,
  },
  {
    title: "Longest gap",
    value: () => formatMs(newest(state.series.gap_ms)),
    note: () => "between two tokens of an answer",
    line: () => state.series.gap_ms,
  },
  {
    title: "Reading",
    value: () => `${formatRate(state.rates.prefill)}/s`,
    note: () => `prompt tokens; ${formatCount(state.rates.waiting)} waiting, ${formatCount(state.rates.running)} running`,
  },
  {
    title: "Answering",
    value: () => `${formatRate(newest(state.series.tokens.slice(0, -1)) / (state.series.step_ms / 1000))}/s`,
    note: () => "tokens of all answers",
    line: () => state.series.tokens,
  },
];

function newest(values) {
  for (let i = values.length - 1; i >= 0; --i) if (values[i] !== null) return values[i];
  return null;
}

const chartWidth = 120;
const chartHeight = 28;

// A stem for each step in which something happened.
function stemsPath(values) {
  const top = Math.max(1, ...values.filter((v) => v !== null));
  return values.map((value, i) => {
    if (!value) return "";
    const x = ((i + 0.5) * chartWidth) / values.length;
    return `M${x.toFixed(1)} ${chartHeight}V${(chartHeight - Math.max(1.5, (chartHeight * value) / top)).toFixed(1)}`;
  }).join("");
}

function makeMeter(meter) {
  const card = el("div", { class: "meter" },
    el("p", { class: "meter-title", text: meter.title }),
    el("p", { class: "meter-value" }),
    el("p", { class: "meter-note quiet" }));
  if (meter.bar) card.append(el("div", { class: "bar", "aria-hidden": "true" }, el("div", {})));
  if (meter.line) {
    // The figure above says it in words.
    card.append(svg("svg", {
      class: "chart", viewBox: `0 0 ${chartWidth} ${chartHeight}`,
      preserveAspectRatio: "none", "aria-hidden": "true",
    }, svg("path", {})));
  }
  return card;
}

function updateMeter(card, meter) {
  setText(card.children[1], meter.value());
  setText(card.children[2], meter.note());
  if (meter.bar) {
    const [part, all] = meter.bar();
    const share = all > 0 ? Math.min(1, part / all) : 0;
    card.children[3].firstChild.style.width = `${(100 * share).toFixed(1)}%`;
    card.children[3].classList.toggle("full", meter.title !== "Reused today" && share > 0.92);
  }
  if (meter.line) setAttribute(card.querySelector("path"), "d", stemsPath(meter.line()));
}

function showMeters() {
  if (!state.meters || !state.today || !state.rates || !state.series) return;
  reconcile(byId("meter-cards"), meters, (meter) => meter.title, makeMeter, updateMeter);
}
