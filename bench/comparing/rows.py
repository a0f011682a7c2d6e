"""What is compared: one Job is one process of each side, and its Rows are the
figures read from it. Targets are ratios, hearth to the better peer build."""

from dataclasses import dataclass, field


@dataclass
class Row:
    id: str
    title: str
    question: str        # which plot
    unit: str
    hearth: callable     # JSON of hearth's process -> value
    peer: callable       # JSON of the peer's process -> value
    target: float | None = None
    higher: bool = True  # better
    kv: str = "fp16"     # of hearth's processes the one with this KV format


@dataclass
class Job:
    id: str
    model: str
    kvs: tuple = ("fp16",)    # hearth's, a process each
    peer_kv: str = "f16"
    kind: str = "speed"       # "start"; "server", "serve": against its server
    prefill: int = 0
    decode: int = 0
    depth: int = 0
    more: int = 0             # a further prompt at the depth
    long: bool = False        # minutes, not seconds
    small: bool = False       # a quarter of the depths
    rows: list = field(default_factory=list)


def median(x):
    return x["median"]


def names(model):
    shape, kind = model.split("-")[0], model.split("-", 1)[1]
    shapes = {"q05b": "0.5B", "q15b": "1.5B", "l32": "Llama 1B"}
    return shapes.get(shape, shape), kind.removeprefix("1b-").upper()


SHORT = {  # model: target of prefill
    "q05b-q8_0": 1.5, "q15b-q8_0": 1.5, "q15b-q4_k_m": 1.4,
    "l32-1b-q4_k_m": 1.4, "q05b-q4_0": 1.1, "q15b-q4_0": 1.1,
    "l32-1b-q4_0": 1.1, "l32-1b-q8_0": 1.5, "q05b-bf16": 1.1,
    "q15b-bf16": 1.1, "q05b-q4_k_m": None,
}


def short_jobs():
    for model, target in SHORT.items():
        shape, kind = names(model)
        yield Job(f"short/{model}", model, prefill=512, decode=64, rows=[
            Row(f"prefill-512/{model}", f"prefill 512, {shape} {kind}",
                "prefill", "tokens/s",
                lambda h: median(h["prefill_tokens_per_s"]),
                lambda p: p["pp_tps"], target),
            Row(f"decode/{model}", f"decode, {shape} {kind}", "decode",
                "tokens/s", lambda h: median(h["decode_tokens_per_s"]),
                lambda p: p["tg_tps"], 1.0),
            Row(f"load/{model}", f"model load, {shape} {kind}", "load", "ms",
                lambda h: h["load_ms"], lambda p: 1e3 * p["load_s"], 0.2,
                higher=False)])
        yield Job(f"prefill-2048/{model}", model, prefill=2048, rows=[
            Row(f"prefill-2048/{model}", f"prefill 2048, {shape} {kind}",
                "prefill", "tokens/s",
                lambda h: median(h["prefill_tokens_per_s"]),
                lambda p: p["pp_tps"], target)])


def depth_rows(model, depth, kv, peer_kv, targets, more):
    shape, kind = names(model)
    what = f"{shape} {kind}, {kv} KV against {peer_kv}"
    tag = f"{model}/{kv}-{peer_kv}"
    yield Row(f"decode-{depth}/{tag}", f"decode at {depth}, {what}", "depth",
              "tokens/s", lambda h: median(h["decode_tokens_per_s"]),
              lambda p: p["tg_tps"], targets.get("decode"), kv=kv)
    yield Row(f"cold-{depth}/{tag}", f"prefill of {depth}, {what}", "cold", "s",
              lambda h: h["depth_prefill_ms"] / 1e3,
              lambda p: p["depth_prefill_s"],
              1 / targets["cold"] if "cold" in targets else None,
              higher=False, kv=kv)
    yield Row(f"rss-{depth}/{tag}", f"peak memory at {depth}, {what}", "memory",
              "MB", lambda h: h["peak_rss_bytes"] / 1e6,
              lambda p: p["peak_rss_mb"] * 1.048576, targets.get("memory"),
              higher=False, kv=kv)
    if more:
        yield Row(f"more-{depth}/{tag}",
                  f"prefill of {more} more at {depth}, {what}", "cold",
                  "tokens/s", lambda h: median(h["prefill_tokens_per_s"]),
                  lambda p: p["pd_tps"], targets.get("more"), kv=kv)


def depth_job(model, depth, peer_kv, targets, more=0):
    """targets: {hearth's KV format: {figure: ratio}}"""
    job = Job(f"depth-{depth}/{model}/{peer_kv}", model, tuple(targets), peer_kv,
              depth=depth, decode=32 if depth <= 4096 else 16, more=more,
              long=depth > 4096 or peer_kv != "f16")
    for kv, wanted in targets.items():
        job.rows += depth_rows(model, depth, kv, peer_kv, wanted, more)
    return job


def start_job(model, n, kind="start"):
    shape, number = names(model)
    tag = f"{n}/{model}" + ("/server" if kind == "server" else "")
    what = f"{n} tokens, {shape} {number}" + (
        ", against its server" if kind == "server" else "")
    return Job(f"start-{tag}", model, kind=kind, depth=n, long=n > 4096, rows=[
        Row(f"hot-{tag}", f"hot start, {what}", "ttft", "ms",
            lambda h: h["hot"], lambda p: p["hot"], 1 / 20, higher=False),
        Row(f"cold-start-{tag}", f"cold start, {what}", "ttft", "ms",
            lambda h: h["cold"], lambda p: p["cold"], higher=False)])


def serve_job(model, small):
    """The servers under the same load (section by section: comparing/serving.py)."""
    shape, number = names(model)
    d = 4 if small else 1
    tag = f"{model}/quarter" if small else model

    def row(name, key, title, unit, target=None, higher=False):
        return Row(f"serve-{name}/{tag}", f"{title}, {shape} {number}", "serve",
                   unit, lambda h: h[key], lambda p: p[key], target, higher)

    return Job(f"serve/{tag}", model, kind="serve", long=not small, small=small, rows=[
        *(row(f"decode-{n}", f"decode_{n}",
              f"{n} answers together at {512 // d}", "tokens/s",
              {1: 1.1, 2: 1.3, 4: 1.5, 8: 1.5}[n], higher=True)
          for n in (1, 2, 4, 8)),
        row("cold", "cold_ms", f"first token, {2048 // d} cold", "ms"),
        row("turn", "turn_ttft_ms",
            f"first token, 64 behind {16000 // d}, while {8192 // d} are read",
            "ms", 0.1),
        row("gap", "gap_ms", "longest silence of an answer then", "ms"),
        row("health", "health_ms", "/health then, 99th percentile", "ms"),
        row("again", "again_ms", f"first token, 16 behind {16000 // d}", "ms"),
        row("twice", "computed_twice",
            f"tokens computed twice, 8 conversations of {8000 // d} in turn",
            "tokens"),
        row("ready", "ready_ms", "start to ready", "ms"),
        row("restart", "restart_ms",
            f"restart to first token, 16 behind {16000 // d}", "ms")])


def all_jobs():
    jobs = list(short_jobs())
    q8 = "q05b-q8_0"
    jobs += [
        depth_job(q8, 4096, "f16", {"fp16": {"decode": 1.7},
                                    "int8": {"decode": 1.8}}),
        depth_job(q8, 4096, "q8_0", {"int8": {"cold": 4}}),
        depth_job(q8, 16384, "f16",
                  {"fp16": {"decode": 4, "memory": 0.8, "more": 3},
                   "int8": {"decode": 4.5}}, more=512),
        depth_job("q05b-q4_0", 16384, "f16",
                  {"fp16": {"cold": 2, "memory": 0.8}}),
        start_job("q05b-q4_0", 512),
        start_job("q05b-q4_0", 4096),
        start_job("q05b-q4_0", 4096, "server"),
        serve_job(q8, small=False),
        serve_job(q8, small=True),
    ]
    return jobs
