"""Tables and plots of what was measured."""

import os
import re
import statistics

from . import plot


def better_build(row):
    """The peer build with the better median of its good runs."""
    builds = {name: statistics.median(values)
              for name, values in row["peer"].items() if values}
    if not builds:
        return None
    pick = max if row["higher"] else min
    return pick(builds, key=builds.get)


def summarise(row):
    """Adds the better build and the ratios, pair by pair."""
    build = better_build(row)
    row["better_build"] = build
    if build is None or not row["hearth"]:
        return row
    # Counts may be 0 on either side.
    ratios = [h / p if p else float(h > 0)
              for h, p in zip(row["hearth"], row["peer"][build])]
    row["ratio"] = {"median": statistics.median(ratios), "low": min(ratios),
                    "high": max(ratios), "pairs": len(ratios)}
    if row["target"]:
        ratio = row["ratio"]["median"]
        row["met"] = (ratio >= row["target"] if row["higher"]
                      else ratio <= row["target"])
    return row


def number(v):
    return f"{v:.0f}" if v >= 100 else f"{v:.1f}" if v >= 10 else f"{v:.2f}"


def table(rows):
    out = ["| work | hearth | peer (build) | ratio (low - high, pairs) | target | "
           "others' CPU |", "|---|---:|---:|---:|---:|---:|"]
    for row in rows:
        if "ratio" not in row:
            continue
        ratio, build = row["ratio"], row["better_build"]
        peer = statistics.median(row["peer"][build])
        hearth = statistics.median(row["hearth"])
        target = ""
        if row["target"]:
            sign = ">=" if row["higher"] else "<="
            target = f"{sign} {number(row['target'])}" + (
                "" if row["met"] else ", **missed**")
        out.append(
            f"| {row['title']} | {number(hearth)} {row['unit']} | "
            f"{number(peer)} ({build}) | {number(ratio['median'])} "
            f"({number(ratio['low'])} - {number(ratio['high'])}, "
            f"{ratio['pairs']}) | {target} | "
            f"{100 * statistics.median(row['others']):.0f} % |")
    return "\n".join(out) + "\n"


def pair(row):
    return {"hearth": statistics.median(row["hearth"]),
            "peer": statistics.median(row["peer"][row["better_build"]])}


def write_plots(rows, folder):
    """One SVG a question; returns the paths."""
    os.makedirs(folder, exist_ok=True)
    done = [row for row in rows if "ratio" in row]
    plots = {}
    for question, title in (("prefill", "Prefill: higher is better"),
                            ("decode", "Decode, empty cache: higher is better"),
                            ("memory", "Peak resident memory: lower is better"),
                            ("cold", "Long prompts"),
                            ("load", "Model load: lower is better")):
        chosen = [r for r in done if r["question"] == question]
        if chosen:
            plots[question] = plot.bars(
                title, [(r["title"], r["unit"], pair(r)) for r in chosen])
    over_depth(done, plots)
    over_length(done, plots)
    paths = []
    for name, svg in plots.items():
        paths.append(os.path.join(folder, name + ".svg"))
        with open(paths[-1], "w") as f:
            f.write(svg)
    return paths


def over_depth(rows, plots):
    """Decode of one model over the depth, 16-bit KV on both sides."""
    series = {"hearth": [], "peer": []}
    for row in rows:
        at = re.fullmatch(r"decode-(\d+)/q05b-q8_0/fp16-f16", row["id"])
        depth = 0 if row["id"] == "decode/q05b-q8_0" else at and int(at[1])
        if depth is not None:
            for name, value in pair(row).items():
                series[name].append((depth, value))
    if series["hearth"]:
        plots["decode-over-depth"] = plot.lines(
            "Decode over depth, 0.5B Q8_0, 16-bit KV", "tokens in the cache",
            "tokens/s", series)


def over_length(rows, plots):
    series = {}
    for row in rows:
        at = re.fullmatch(r"(hot|cold-start)-(\d+)/[^/]+", row["id"])
        if at is None:
            continue
        for name, value in pair(row).items():
            key = name if at[1] == "hot" else name + " cold"
            series.setdefault(key, []).append((int(at[2]), value))
    if series:
        plots["first-token"] = plot.lines(
            "New process to first token, 0.5B Q4_0, hot and cold",
            "prompt, tokens", "ms", series)
