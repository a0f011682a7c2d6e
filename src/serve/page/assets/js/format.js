// Numbers as people read them; units are written as the program writes them.

const counted = new Intl.NumberFormat("en");

const formatCount = (n) => counted.format(Math.round(n));

function formatBytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (n >= 1000 && at + 1 < units.length) {
    n /= 1000;
    ++at;
  }
  return `${at === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}

function formatMs(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : formatSeconds(ms / 1000);
}

function formatSeconds(s) {
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

function formatAgo(unixMs, nowMs) {
  const s = Math.max(0, (nowMs - unixMs) / 1000);
  if (!unixMs) return "never";
  if (s < 5) return "now";
  if (s < 60) return `${Math.round(s)} s ago`;
  if (s < 3600) return `${Math.round(s / 60)} min ago`;
  if (s < 48 * 3600) return `${Math.round(s / 3600)} h ago`;
  return `${Math.round(s / 86400)} days ago`;
}

function formatTime(unixMs) {
  return new Date(unixMs).toLocaleTimeString("en-GB");
}

const formatRate = (n) => (n >= 100 ? formatCount(n) : n.toFixed(1));

function formatShare(part, all) {
  if (!all) return "0 %";
  // Never "100 %" of what is not whole.
  const percent = part >= all ? 100 : Math.min(99, Math.round((100 * part) / all));
  return `${percent} %`;
}

const plural = (n, one, many = `${one}s`) =>
  `${formatCount(n)} ${Math.round(n) === 1 ? one : many}`;
