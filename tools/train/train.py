#!/usr/bin/env python3
"""Trains a 10M-parameter byte-level GPT for short stories, as a .tinygpt file.

    train.py train  --data DIR --out MODEL.tinygpt --minutes 14     # one CUDA GPU, bf16
    train.py sample --model MODEL.tinygpt --prompt "Once upon a time" [--temp 0.8]
    train.py reference --model MODEL.tinygpt --out REF.json         # CPU, float32

DIR holds children.train.txt.gz, children.valid.txt.gz, stories_small.txt.gz (documents separated by a
line `<|endoftext|>`) and chat.jsonl.gz ({"source", "messages": [{"role", "content"}]} a line).
Needs PyTorch 2.x and NumPy. The learning rate follows the clock: `--minutes` is the time spent in
training steps; compilation, the last evaluation and the export come on top (half a minute to one).
`--init MODEL` starts from weights already trained; `--stop 0.7` ends a run early on its schedule.
Every byte is a token; byte 0 ends a document. Architecture: 12 layers, 8 heads, d 256, MLP 1024,
context 1024, learned positions, pre-LN, exact erf GELU, biases everywhere, tied head.
"""
import argparse, gzip, json, math, random, re, struct, time
from pathlib import Path

import numpy as np
import torch
import torch._inductor.config
import torch.nn.functional as F
from torch import nn

L, H, C, M, T, V, EOS = 12, 8, 256, 1024, 1024, 256, 0
LN2 = math.log(2)
# Share of the windows taken from each source: at first, and two choices for the time the learning rate
# falls (--late 1 or 2); last, the share of windows that begin where a document or a paragraph begins,
# so that short prompts at position 0 work.
MIX = {"children": (.76, .66, .80, .4), "tales": (.09, .15, .08, .5), "picture": (.04, .08, .02, .6), "chat": (.11, .11, .10, .6)}


# ---------------------------------------------------------------- model
class GPT(nn.Module):
    """Weights of all layers are stacked, [L, out, in]: Muon then updates each kind as one batch."""

    def __init__(self):
        super().__init__()
        def w(*shape, std=.02): return nn.Parameter(torch.randn(*shape) * std)
        def const(*shape, v=0.): return nn.Parameter(torch.full(shape, v))
        self.tok, self.pos = w(V, C), w(T, C, std=.01)
        self.lnf_w, self.lnf_b = const(C, v=1.), const(C)
        self.ln1_w, self.ln1_b, self.ln2_w, self.ln2_b = const(L, C, v=1.), const(L, C), const(L, C, v=1.), const(L, C)
        self.qkv_w, self.qkv_b = w(L, 3 * C, C), const(L, 3 * C)
        self.o_w, self.o_b = w(L, C, C, std=.02 / math.sqrt(2 * L)), const(L, C)
        self.in_w, self.in_b = w(L, M, C), const(L, M)
        self.out_w, self.out_b = w(L, C, M, std=.02 / math.sqrt(2 * L)), const(L, C)

    def forward(self, ids, targets=None):
        B, S = ids.shape
        # The one-hot product is the same look-up; its gradient needs no contended atomic additions.
        x = F.linear(F.one_hot(ids, V).to(self.tok.dtype), self.tok.t()) if self.training else F.embedding(ids, self.tok)
        x = x + self.pos[:S]
        per_layer = zip(*(p.unbind(0) for p in (
            self.ln1_w, self.ln1_b, self.qkv_w, self.qkv_b, self.o_w, self.o_b,
            self.ln2_w, self.ln2_b, self.in_w, self.in_b, self.out_w, self.out_b)))
        for l1w, l1b, qkvw, qkvb, ow, ob, l2w, l2b, iw, ib, fw, fb in per_layer:
            q, k, v = F.linear(F.layer_norm(x, (C,), l1w, l1b, 1e-5), qkvw, qkvb).view(B, S, 3, H, C // H).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + F.linear(a.transpose(1, 2).reshape(B, S, C), ow, ob)
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (C,), l2w, l2b, 1e-5), iw, ib)), fw, fb)
        logits = F.linear(F.layer_norm(x, (C,), self.lnf_w, self.lnf_b, 1e-5), self.tok)
        return logits if targets is None else F.cross_entropy(logits.float().view(-1, V), targets.reshape(-1))


# ---------------------------------------------------------------- .tinygpt
def entries(m):
    """(name, tensor in PyTorch shape, is a linear weight) in manifest order; the tensors are views."""
    yield from (("token_embedding.weight", m.tok, False), ("position_embedding.weight", m.pos, False),
                ("ln_final.weight", m.lnf_w, False), ("ln_final.bias", m.lnf_b, False))
    for i in range(L):
        b = f"blocks.{i}."
        yield from ((b + "ln1.weight", m.ln1_w[i], False), (b + "ln1.bias", m.ln1_b[i], False))
        for j, n in enumerate("qkv"):
            yield b + f"attn.{n}_proj.weight", m.qkv_w[i, j * C:(j + 1) * C], True
            yield b + f"attn.{n}_proj.bias", m.qkv_b[i, j * C:(j + 1) * C], False
        for n, w, c in (("attn.o_proj", m.o_w, m.o_b), ("ln2", m.ln2_w, m.ln2_b), ("mlp.fc_in", m.in_w, m.in_b), ("mlp.fc_out", m.out_w, m.out_b)):
            yield b + n + ".weight", w[i], n != "ln2"
            yield b + n + ".bias", c[i], False


@torch.no_grad()
def save(m, path, step, info):
    """fp16 inference layout: one buffer, linear weights transposed to [in, out], shapes stay [out, in]."""
    manifest, blobs, off = [], [], 0
    for name, t, linear in entries(m):
        a = (t.t() if linear else t).float().cpu().contiguous().numpy().astype("<f2")
        assert np.isfinite(a).all(), name
        manifest.append({"name": name, "shape": list(t.shape), "floatOffset": off})
        blobs.append(a.tobytes()); off += a.size
    header = {"config": {"layers": L, "dModel": C, "ctx": T, "heads": H, "dMlp": M, "vocabSize": V,
                         "batchSize": info.get("batch", 0), "backend": "pytorch"},
              "manifest": manifest, "weightDtype": "fp16", "includesOptimizerState": False,
              "stateByteLength": 2 * off, "eosByte": EOS, **info}
    h = json.dumps(header, separators=(",", ":")).encode()
    Path(path).write_bytes(struct.pack("<4sII", b"TGPT", 2, len(h)) + h + struct.pack("<i", step) + b"".join(blobs))


@torch.no_grad()
def load(path):
    raw = Path(path).read_bytes()
    magic, version, n = struct.unpack_from("<4sII", raw)
    assert magic == b"TGPT" and version == 2
    head, base, m = json.loads(raw[12:12 + n]), 16 + n, GPT()
    where = {e["name"]: e for e in head["manifest"]}
    for name, t, linear in entries(m):
        a = torch.from_numpy(np.frombuffer(raw, "<f2", t.numel(), base + 2 * where[name]["floatOffset"]).astype(np.float32))
        t.copy_(a.view(t.shape[1], t.shape[0]).t() if linear else a.view(t.shape))
    return m.eval(), head


@torch.no_grad()
def generate(m, ids, n, temp=0., top_k=0, seed=0, stop=True):
    """Plain re-computation of the last T tokens for each new one; returns ids and the least top-2 margin."""
    ids, g, margin = list(ids), torch.Generator().manual_seed(seed), float("inf")
    for _ in range(n):
        z = m(torch.tensor([ids[-T:]], device=m.tok.device))[0, -1].float().cpu()
        if temp == 0:
            top = z.topk(2); margin = min(margin, float(top.values[0] - top.values[1])); nxt = int(top.indices[0])
        else:
            if top_k: z[z < z.topk(top_k).values[-1]] = -float("inf")
            nxt = int(torch.multinomial((z / temp).softmax(0), 1, generator=g))
        if stop and nxt == EOS: break
        ids.append(nxt)
    return ids, margin


# ---------------------------------------------------------------- data
def chat_text(messages):
    return "".join(f"User: {x['content'].strip()}\n" if x["role"] == "user" else
                   f"Assistant: {x['content'].strip()}\n\n" for x in messages)


def documents(folder):
    """-> {source: ([training documents], [held-out documents])}, documents as bytes."""
    def texts(name):
        docs = re.split(r"\s*<\|endoftext\|>\s*", gzip.open(Path(folder) / name, "rt", encoding="utf-8").read())
        return [d.strip() for d in docs if d.strip()]
    small = texts("stories_small.txt.gz")
    picture, tales = small[:686], small[686:]           # 686 picture books, then fables and fairy tales
    chat, rng = [], random.Random(1)
    for line in gzip.open(Path(folder) / "chat.jsonl.gz", "rt", encoding="utf-8"):
        d = json.loads(line)
        if d["source"] == "fairytaleqa" and rng.random() > .25: continue    # ten questions share one passage
        times = 4 if d["source"].startswith(("personality", "chatterbot", "self-instruct")) else 1
        chat.append((chat_text(d["messages"]), times))
    out = {"children": (texts("children.train.txt.gz"), texts("children.valid.txt.gz"))}
    for name, docs in (("tales", tales), ("picture", picture)):
        out[name] = ([d for i, d in enumerate(docs) if i % 25 != 7], [d for i, d in enumerate(docs) if i % 25 == 7])
    held = {i for i in range(len(chat)) if chat[i][1] == 1 and i % 50 == 7}
    out["chat"] = ([c for i, (c, n) in enumerate(chat) if i not in held for _ in range(n)], [chat[i][0] for i in sorted(held)])
    return {k: tuple([d.encode().replace(b"\0", b"") for d in part] for part in v) for k, v in out.items()}


class Source:
    """All training documents of one source in GPU memory, and the places where a window may begin."""

    def __init__(self, name, docs, device):
        random.Random(2).shuffle(docs)
        buf, starts, pos = [], [], 0
        for d in docs:
            begins = [0]
            if name != "chat":                           # any paragraph of a book; the first two of a short story
                begins += [x.end() for x in re.finditer(rb"\n\n+(?=[A-Z\"'])", d)][: None if name == "children" else 2]
            starts += [pos + b for b in begins]
            buf.append(d + bytes([EOS])); pos += len(d) + 1
        self.bytes = torch.from_numpy(np.frombuffer(b"".join(buf) + b"\0" * 2, dtype=np.uint8).copy()).to(device)
        s = torch.tensor(starts); self.starts = s[s < pos - T - 1].to(device)
        self.n, self.share = pos, MIX[name][3]

    def windows(self, n):
        rnd = torch.randint(self.n - T - 1, (n,), device=self.bytes.device)
        beg = self.starts[torch.randint(len(self.starts), (n,), device=self.bytes.device)]
        at = torch.where(torch.rand(n, device=self.bytes.device) < self.share, beg, rnd)
        return self.bytes[at[:, None] + torch.arange(T + 1, device=self.bytes.device)].long()


def batch(sources, weights, n):
    counts = torch.bincount(torch.multinomial(torch.tensor(weights), n, replacement=True), minlength=len(weights)).tolist()
    x = torch.cat([s.windows(k) for s, k in zip(sources, counts) if k])
    return x[:, :-1], x[:, 1:]


@torch.no_grad()
def evaluate(net, docs, device, B, most):
    """Bits per byte over consecutive windows of the joined held-out documents."""
    b = np.frombuffer(b"\0".join(docs) + b"\0", dtype=np.uint8)
    n = (len(b) - 1) // T
    pick = np.linspace(0, n - 1, -(-min(n, most) // B) * B).astype(int)     # whole batches: nothing recompiles
    x = torch.from_numpy(np.stack([b[i * T:i * T + T + 1] for i in pick])).long().to(device)
    return sum(net(c[:, :-1], c[:, 1:]).item() for c in x.split(B)) / (len(x) // B) / LN2


# ---------------------------------------------------------------- optimiser
class Muon:
    """Momentum, then the nearest orthogonal matrix (Newton-Schulz, bf16), per [out, in] matrix of a stack."""

    def __init__(self, params, wd): self.p, self.wd, self.m = params, wd, [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self, lr, mom=.95):
        for p, m in zip(self.p, self.m):
            m.lerp_(p.grad, 1 - mom)
            x = p.grad.lerp(m, mom).bfloat16()           # Nesterov
            if p.shape[1] == 3 * C: x = x.reshape(-1, C, C)     # q, k and v are three matrices
            shape = x.shape
            if shape[1] > shape[2]: x = x.mT
            x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
            for _ in range(5):
                a = x @ x.mT
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
            if shape[1] > shape[2]: x = x.mT
            p.mul_(1 - lr * self.wd).add_(x.reshape(p.shape).to(p.dtype), alpha=-lr * max(1, shape[1] / shape[2]) ** .5)


def train(a):
    torch.manual_seed(a.seed); torch.set_float32_matmul_precision("high")
    dev, B, t_start = "cuda", a.batch, time.time()
    docs = documents(a.data)
    names = list(MIX)
    sources = [Source(n, docs[n][0], dev) for n in names]
    print("bytes", {n: s.n for n, s in zip(names, sources)}, f"{time.time() - t_start:.0f} s", flush=True)
    m = (load(a.init)[0] if a.init else GPT()).to(dev).train()
    # PyTorch 2.11's fused "mix order" reductions gave wrong gradients for the stacked layer-norm weights.
    torch._inductor.config.triton.mix_order_reduction = False
    fast = torch.compile(m)
    def net(x, y):
        with torch.autocast("cuda", torch.bfloat16): return fast(x, y)
    big = [m.qkv_w, m.o_w, m.in_w, m.out_w]
    rest = [p for p in m.parameters() if all(p is not b for b in big)]
    muon = Muon(big, a.wd)
    adam = torch.optim.AdamW(rest, lr=a.adam_lr, betas=(.9, .98), weight_decay=0., fused=True)
    def held_out(most): return {n: round(evaluate(net, docs[n][1], dev, B, most), 4) for n in names}
    net(*batch(sources, [MIX[n][0] for n in names], B)).backward(); held_out(B)     # compile
    print(f"compiled, {time.time() - t_start:.0f} s; {sum(p.numel() for p in m.parameters())} parameters", flush=True)
    t0, step, frac, acc, history, next_eval = time.time(), 0, 0., torch.zeros((), device=dev), [], .1
    while frac < a.stop:
        down = min(1., (1 - frac) / a.decay)             # warm-up, constant, then linear to zero
        lr = min(1., (step + 1) / 200) * down
        loss = net(*batch(sources, [MIX[n][a.late if down < 1 else 0] for n in names], B))
        m.zero_grad(set_to_none=True); loss.backward()
        for g in adam.param_groups: g["lr"] = a.adam_lr * lr
        adam.step(); muon.step(a.muon_lr * lr)
        acc += loss.detach(); step += 1
        if step % 20 == 0:
            torch.cuda.synchronize(); frac = (time.time() - t0) / (60 * a.minutes)
        if step % 200 == 0 or frac >= a.stop:
            n = step % 200 or 200
            history.append(round(acc.item() / n / LN2, 4)); acc.zero_()
            print(f"step {step} {100 * frac:.1f} % lr {lr:.3f} train {history[-1]:.4f} bpb, {step * B * T / (time.time() - t0) / 1e6:.2f} M tokens/s", flush=True)
        if frac >= next_eval and frac < a.stop:
            next_eval += .1; v = held_out(256)
            print("   held out", v, flush=True); save(m, a.out, step, {"batch": B})
    minutes, v = round((time.time() - t0) / 60, 2), held_out(4096)
    info = {"batch": B, "tokens": step * B * T, "minutes": minutes, "trainBpb": history[-1], "validBpb": v,
            "finalLoss": round(v["children"] * LN2, 5), "lossHistory": [round(h * LN2, 4) for h in history[::max(1, len(history) // 60)]],
            "setup": {k: getattr(a, k) for k in ("muon_lr", "adam_lr", "wd", "decay", "stop", "late", "seed")} | {"mix": MIX}}
    save(m, a.out, step, info)
    m = load(a.out)[0].to(dev)                           # the rounded weights, from the file
    with torch.autocast("cuda", torch.bfloat16): fp16 = evaluate(lambda x, y: m(x, y), docs["children"][1], dev, 64, 1024)
    print(json.dumps(info | {"children, from the file": round(fp16, 4)}), f"{time.time() - t_start:.0f} s in all", flush=True)
    for i, p in enumerate(("Once upon a time", "One day, a little girl", "User: Hello!\nAssistant:")[:a.samples]):
        print("-----", bytes(generate(m, p.encode(), 400, .8, 40, i)[0]).decode("utf-8", "replace"), flush=True)


def reference(a):
    """What a runtime must reproduce: float32 on the CPU from the fp16-rounded weights."""
    torch.set_grad_enabled(False); torch.manual_seed(0)
    m, prompt = load(a.model)[0], list(a.prompt.encode())
    logits = m(torch.tensor([prompt]))[0, -1]
    ids, margin = generate(m, prompt, 200, stop=False)
    Path(a.out).write_text(json.dumps({
        "model": Path(a.model).name, "prompt": a.prompt, "ids": prompt,
        "greedyIds": ids[len(prompt):], "greedyText": bytes(ids[len(prompt):]).decode("utf-8", "replace"),
        "greedyLeastMargin": margin, "lastLogits": [float(z) for z in logits]}, indent=None) + "\n")
    print(len(prompt), "bytes; least top-2 margin", margin, bytes(ids))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    s = p.add_subparsers(required=True)
    t = s.add_parser("train"); t.set_defaults(run=train)
    for name in ("data", "out", "init"): t.add_argument("--" + name, required=name != "init")
    for name, default in (("minutes", 9.), ("muon_lr", .02), ("adam_lr", .006), ("wd", .05), ("decay", .6), ("stop", 1.)):
        t.add_argument("--" + name, type=float, default=default)
    for name, default in (("batch", 128), ("seed", 1), ("late", 2), ("samples", 3)): t.add_argument("--" + name, type=int, default=default)
    t = s.add_parser("sample"); t.set_defaults(run=lambda a: print(bytes(generate(
        load(a.model)[0], a.prompt.encode(), a.n, a.temp, a.top_k, a.seed)[0]).decode("utf-8", "replace")))
    t.add_argument("--model", required=True); t.add_argument("--prompt", default="Once upon a time")
    for name, typ, default in (("temp", float, .8), ("top_k", int, 40), ("seed", int, 0), ("n", int, 500)):
        t.add_argument("--" + name, type=typ, default=default)
    t = s.add_parser("reference"); t.set_defaults(run=reference)
    for name in ("model", "out"): t.add_argument("--" + name, required=True)
    t.add_argument("--prompt", default="Once upon a time there was a little girl who lived with her grandmother in a small house near the forest.")
    a = p.parse_args(); a.run(a)


if __name__ == "__main__":
    main()
