#!/usr/bin/env python3
"""Trains hearth's built-in model: a small llama that calls tools, reads, copies and tells short stories.

    agent_train.py tokenizer --data DIR --out tokenizer.json
    agent_train.py train --data DIR --tokenizer tokenizer.json --out MODEL.gguf --minutes 18      # one CUDA GPU, bf16
    agent_train.py reference --model MODEL.gguf --ids IDS.json --out REF.json                      # CPU, float32

DIR holds children.train.txt.gz, children.valid.txt.gz, stories_small.txt.gz (documents separated by a line
`<|endoftext|>`), chat.jsonl.gz ({"source", "messages"} a line) and, if wanted, agent_prompts.json and
agent_schemas.json (agent_sources.py). The dialogues are made as the training goes, by --workers processes (agent_data.py). Needs PyTorch
2.5 or later, NumPy and, for the first two commands, Hugging Face's tokenizers. The learning rate follows the
clock: --minutes is the time spent in training steps. The model so far is written every --save_every of it; --eval_every 0
measures nothing on the way. `--init MODEL.gguf` starts from weights already trained. --batch divides 32.

Documents are packed into rows of 8,192 tokens; attention stays inside a document. What the assistant writes, and
prose, counts fully in the loss; what users, tools and system prompts say counts a tenth.
"""
import argparse, json, math, multiprocessing, os, random, shutil, struct, tempfile, time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

L, H, KV, D, C, M, V, T = 10, 8, 2, 64, 512, 1408, 8192, 8192
BASE, EPS = 50000.0, 1e-5
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<tools>", "</tools>", "<think>", "</think>"]
END, START, STOP = 0, 1, 2
PROSE_SHARE, QUIET = .17, .1


# ---------------------------------------------------------------- the model
SHAPES = {"q": (H * D, C), "k": (KV * D, C), "v": (KV * D, C), "o": (C, H * D), "gate": (M, C), "up": (M, C), "down": (C, M)}


def new_weights():
    """Weights of all layers are stacked, [L, out, in]: Muon then updates each kind as one batch."""
    w = {n: torch.randn(L, *s) * (.5 / math.sqrt(s[1]) if n in ("q", "k", "v", "gate", "up") else .02 / math.sqrt(2 * L)) for n, s in SHAPES.items()}
    w |= {"tok": torch.randn(V, C) * .02, "n1": torch.ones(L, C), "n2": torch.ones(L, C), "norm": torch.ones(C)}
    return w


def rms(x, w):
    f = x.float()
    return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + EPS) * w).to(x.dtype)


def rope(x, cos, sin):
    """Pairs (2i, 2i + 1) turn together: the layout of llama in GGUF files. x: [B, S, heads, D]."""
    a, b = x.float().unflatten(-1, (D // 2, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x.dtype)


def angles(n, device="cpu"):
    a = torch.outer(torch.arange(n, device=device).float(), BASE ** (-torch.arange(0, D, 2, device=device).float() / D))
    return a.cos()[None, :, None], a.sin()[None, :, None]


def plain_attention(q, k, v, docs):
    """[B, heads, S, D]; docs [B, S]: a token sees earlier tokens of its own document."""
    k, v = k.repeat_interleave(H // KV, 1), v.repeat_interleave(H // KV, 1)
    S = q.shape[2]
    seen = torch.ones(S, S, dtype=torch.bool, device=q.device).tril()[None] & (docs[:, :, None] == docs[:, None, :])
    s = (q @ k.transpose(-1, -2)).float() / math.sqrt(D)
    return s.masked_fill(~seen[:, None], -float("inf")).softmax(-1).to(q.dtype) @ v


def flex(q, k, v, mask):
    from torch.nn.attention.flex_attention import flex_attention
    return flex_attention(q, k, v, block_mask=mask, enable_gqa=True)


def block(attend, x, n1, q, k, v, o, n2, gate, up, down, cos, sin, mask):
    B, S, _ = x.shape
    lin = lambda x, w: F.linear(x, w.to(x.dtype))
    h = rms(x, n1)
    qs = rope(lin(h, q).view(B, S, H, D), cos, sin).transpose(1, 2)
    ks = rope(lin(h, k).view(B, S, KV, D), cos, sin).transpose(1, 2)
    a = attend(qs, ks, lin(h, v).view(B, S, KV, D).transpose(1, 2), mask)
    x = x + lin(a.transpose(1, 2).reshape(B, S, H * D), o)
    h = rms(x, n2)
    return x + lin(F.silu(lin(h, gate)) * lin(h, up), down)


def train_block(*a): return block(flex, *a)
def plain_block(*a): return block(plain_attention, *a)


def body(w, ids, mask, one_block, dtype):
    x = F.embedding(ids, w["tok"]).to(dtype)
    cos, sin = angles(ids.shape[1], ids.device)
    for n1, q, k, v, o, n2, g, u, d in zip(*(w[n].unbind(0) for n in ("n1", "q", "k", "v", "o", "n2", "gate", "up", "down"))):
        x = one_block(x, n1, q, k, v, o, n2, g, u, d, cos, sin, mask)
    return x


def losses(x, norm, tok, targets):
    z = F.linear(rms(x, norm), tok.to(x.dtype)).float()
    return F.cross_entropy(z.view(-1, V), targets.view(-1), reduction="none").view(targets.shape)


def hits(x, norm, tok, targets):
    z = F.linear(rms(x, norm), tok.to(x.dtype))
    return z.argmax(-1) == targets, F.cross_entropy(z.float().view(-1, V), targets.view(-1), reduction="none").view(targets.shape)


# ---------------------------------------------------------------- GGUF
def q8_0(t):
    """Blocks of 32: a binary16 scale, then 32 signed bytes; rounding as ggml has it."""
    x = t.detach().float().cpu().numpy().reshape(-1, 32)
    d = np.abs(x).max(1, keepdims=True) / 127
    with np.errstate(divide="ignore", invalid="ignore"): q = np.where(d > 0, x / d, 0)
    q = np.sign(q) * np.floor(np.abs(q) + .5)
    out = np.empty((len(x), 34), np.uint8)
    out[:, :2] = d.astype("<f2").view(np.uint8); out[:, 2:] = q.astype(np.int8).view(np.uint8)
    return out.tobytes()


def unq8_0(raw, shape):
    a = np.frombuffer(raw, np.uint8).reshape(-1, 34)
    return torch.from_numpy((a[:, :2].copy().view("<f2").astype(np.float32) * a[:, 2:].copy().view(np.int8)).reshape(shape))


NAMES = {"n1": "attn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "n2": "ffn_norm", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
U32, F32_, BOOL, STR, ARR, I32 = 4, 6, 7, 8, 9, 5


def save_gguf(w, tokenizer, path, info):
    tok = json.loads(Path(tokenizer).read_text())
    vocab = sorted(tok["model"]["vocab"], key=tok["model"]["vocab"].get)
    vocab = vocab + [f"<|unused_{i}|>" for i in range(V - len(vocab))]
    merges = [m if isinstance(m, str) else " ".join(m) for m in tok["model"]["merges"]]
    kinds = [(3 if t.startswith("<|") else 4) if t in SPECIAL else 5 if t.startswith("<|unused_") else 1 for t in vocab]
    s = lambda x: struct.pack("<Q", len(x.encode())) + x.encode()
    kv = [("general.architecture", STR, "llama"), ("general.name", STR, "hearth-agent-32m"), ("general.license", STR, "mit"), ("general.file_type", U32, 7),
          ("general.quantization_version", U32, 2), ("general.description", STR, json.dumps(info)), ("llama.context_length", U32, T), ("llama.embedding_length", U32, C), ("llama.block_count", U32, L),
          ("llama.feed_forward_length", U32, M), ("llama.attention.head_count", U32, H), ("llama.attention.head_count_kv", U32, KV),
          ("llama.attention.layer_norm_rms_epsilon", F32_, EPS), ("llama.rope.dimension_count", U32, D), ("llama.rope.freq_base", F32_, BASE),
          ("llama.vocab_size", U32, V), ("tokenizer.ggml.model", STR, "gpt2"), ("tokenizer.ggml.pre", STR, "smollm"), ("tokenizer.ggml.tokens", (STR,), vocab),
          ("tokenizer.ggml.token_type", (I32,), kinds), ("tokenizer.ggml.merges", (STR,), merges), ("tokenizer.ggml.bos_token_id", U32, END), ("tokenizer.ggml.eos_token_id", U32, STOP),
          ("tokenizer.ggml.padding_token_id", U32, END), ("tokenizer.ggml.eot_token_id", U32, STOP), ("tokenizer.ggml.add_bos_token", BOOL, False), ("tokenizer.chat_template", STR, (Path(__file__).parent / "chat_template.jinja").read_text())]
    fmt = {U32: "<I", F32_: "<f", BOOL: "<?", I32: "<i"}
    def value(t, v):
        if isinstance(t, tuple): return struct.pack("<IIQ", ARR, t[0], len(v)) + b"".join(s(x) if t[0] == STR else struct.pack(fmt[t[0]], x) for x in v)
        return struct.pack("<I", t) + (s(v) if t == STR else struct.pack(fmt[t], v))
    tensors = [("token_embd.weight", w["tok"], 8), ("output_norm.weight", w["norm"], 0)]
    for i in range(L): tensors += [(f"blk.{i}.{NAMES[n]}.weight", w[n][i], 0 if n in ("n1", "n2") else 8) for n in NAMES]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(kv)) + b"".join(s(k) + value(t, v) for k, t, v in kv)
    data, at = [], 0
    for name, t, kind in tensors:
        assert torch.isfinite(t).all(), name
        raw = q8_0(t) if kind == 8 else t.detach().float().cpu().numpy().astype("<f4").tobytes()
        head += s(name) + struct.pack("<I", t.dim()) + b"".join(struct.pack("<Q", n) for n in reversed(t.shape)) + struct.pack("<IQ", kind, at)
        data.append(raw + bytes(-len(raw) % 32)); at += len(data[-1])
    Path(path).write_bytes(head + bytes(-len(head) % 32) + b"".join(data))


def load_gguf(path):
    """-> weights in float32 (Q8_0 spread out), the keys."""
    raw, at = Path(path).read_bytes(), 8
    def u(f):
        nonlocal at
        v = struct.unpack_from("<" + f, raw, at)[0]; at += struct.calcsize("<" + f); return v
    def string():
        nonlocal at
        n = u("Q"); at += n; return raw[at - n:at].decode()
    def value(t):
        if t == STR: return string()
        if t == ARR: e, n = u("I"), u("Q"); return [value(e) for _ in range(n)]
        return u({U32: "I", F32_: "f", BOOL: "?", I32: "i"}[t])
    n_tensors, n_keys = u("Q"), u("Q")
    keys = {}
    for _ in range(n_keys): k = string(); keys[k] = value(u("I"))
    infos = []
    for _ in range(n_tensors): name = string(); dims = [u("Q") for _ in range(u("I"))]; infos.append((name, dims[::-1], u("I"), u("Q")))
    base, got = at + -at % 32, {}
    for name, shape, kind, off in infos:
        n = math.prod(shape)
        got[name] = unq8_0(raw[base + off:base + off + n // 32 * 34], shape) if kind == 8 else torch.from_numpy(np.frombuffer(raw, "<f4", n, base + off).copy().reshape(shape))
    w = {n: torch.stack([got[f"blk.{i}.{g}.weight"] for i in range(L)]) for n, g in NAMES.items()}
    return w | {"tok": got["token_embd.weight"], "norm": got["output_norm.weight"]}, keys


# ---------------------------------------------------------------- data
def make_tokenizer(a):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from agent_data import Dialogues, Texts, sources, render
    texts = Texts(a.data)
    d = Dialogues(texts, 0, False, **sources(a.data))
    r = random.Random(0)
    def corpus():
        for x in r.sample(texts.books, len(texts.books)): yield x[:60000]
        yield from texts.stories
        for _ in range(20000): x = d.one(); yield render(x["messages"], x["tools"])
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=V, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False, max_token_length=16))
    t.save(str(a.out)); print("tokenizer", t.get_vocab_size())


class Rows:
    """Documents packed into rows: token ids, what a token counts in the loss (0 none, 1 little, 2 fully), document numbers."""

    def __init__(self, tokenizer, texts, dialogues, seed, part=(0, 1)):
        self.tok, self.d, self.r, self.waiting = tokenizer, dialogues, random.Random(seed), None
        self.assistant = tokenizer.encode("assistant\n").ids
        self.texts = [(b, True) for b in texts.books[part[0]::part[1]]], [(b, False) for b in texts.stories[part[0]::part[1]]]
        self.encoded = {}

    def text(self):
        """A book's or a story's ids, encoded once, and where a paragraph begins about every 3,000 characters."""
        kind = self.r.random() < .25
        i = self.r.randrange(len(self.texts[kind]))
        if (kind, i) not in self.encoded:
            ids, starts, t, at = [], [], self.texts[kind][i][0], 0
            while at < len(t):
                to = t.find("\n\n", at + 3000) + 2
                if to == 1: to = len(t)
                starts.append(len(ids)); ids += self.tok.encode(t[at:to]).ids; at = to
            self.encoded[kind, i] = np.array(ids + [END], np.uint16), starts
        return self.encoded[kind, i], kind

    def next_prose(self, n):
        out = []
        while len(out) < n:
            (ids, starts), story = self.text()
            at = 0 if story else self.r.choice(starts)
            out += ids[at:at + n - len(out)].tolist()
        return out

    def weigh(self, ids):
        w, a, i, n = [1] * len(ids), self.assistant, 0, len(ids)
        while i < n:
            if ids[i] == START and ids[i + 1:i + 1 + len(a)] == a:
                i += 1 + len(a)
                while i < n:
                    w[i] = 2
                    if ids[i] == STOP: break
                    i += 1
            i += 1
        return w

    def row(self, dialogues_only=False):
        ids, w, docs, n = [], [], [], 0
        def add(i, ww):
            nonlocal n
            ids.extend(i); w.extend([0] + ww[1:]); docs.extend([n] * len(i)); n = n + 1
        if not dialogues_only and self.r.random() < PROSE_SHARE / 2: p = self.next_prose(T); add(p, [2] * len(p))
        while len(ids) < T:
            room = T - len(ids)
            if not dialogues_only and (room < 120 or self.r.random() < .02): p = self.next_prose(min(room, 1200)); add(p, [2] * len(p)); continue
            i, self.waiting = self.waiting or self.encode(), None
            if len(i) > T: continue
            if len(i) <= room: add(i, self.weigh(i)); continue
            self.waiting = i                            # for the next row; prose fills this one
            p = [END] * room if dialogues_only else self.next_prose(room)
            add(p, [0 if dialogues_only else 2] * room)
        return np.array(ids, np.uint16), np.array(w, np.uint8), np.array(docs, np.int16)

    def encode(self):
        from agent_data import render
        x = self.d.one()
        return self.tok.encode(render(x["messages"], x["tools"])).ids


def worker(data, tokenizer, seed, part, folder):
    """Files of 32 rows, [3, 32, T] of 16 bits, in a folder of memory; at most 150 wait there."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"; os.nice(5)
    from tokenizers import Tokenizer
    from agent_data import Dialogues, sources
    rows, n = Rows(Tokenizer.from_file(tokenizer), TEXTS, Dialogues(TEXTS, seed, False, **sources(data)), seed, part), 0
    while True:
        chunk = np.stack([np.stack([x.astype(np.int16) for x in rows.row()]) for _ in range(32)], 1)
        name = f"{folder}/{n:06d}-{part[0]}"; n += 1
        np.save(name + ".tmp.npy", chunk); os.replace(name + ".tmp.npy", name + ".npy")
        while len(os.listdir(folder)) > 150: time.sleep(.05)


def held_out_rows(data, tokenizer, n):
    """{kind: rows} of dialogues with held-out tools and values, and of held-out texts."""
    from tokenizers import Tokenizer
    from agent_data import Dialogues, sources, render
    t, out = Tokenizer.from_file(tokenizer), {}
    for kind in ("call", "files", "needle", "copy", "json_answer", "edit_text", "from_system"):
        rows = Rows(t, TEXTS, Dialogues(TEXTS, 77, True, **sources(data)), 7)
        rows.encode = lambda: t.encode(render(*(lambda x: (x["messages"], x["tools"]))(rows.d.one(kind)))).ids
        out[kind] = [np.stack(x) for x in zip(*(rows.row(True) for _ in range(n)))]
    for kind, docs in TEXTS.valid.items():
        ids = [i for d in docs for i in t.encode(d[:200000]).ids + [END]][:n * T]
        ids = np.array(ids[:len(ids) // T * T], np.uint16).reshape(-1, T)
        if len(ids): out[kind] = [ids, np.full_like(ids, 2, np.uint8), np.zeros_like(ids, np.uint8)]
    return out


# ---------------------------------------------------------------- optimiser
class Muon:
    """Momentum, then the nearest orthogonal matrix (Newton-Schulz, bf16), per [out, in] matrix of a stack."""

    def __init__(self, params, wd): self.p, self.wd, self.m = params, wd, [torch.zeros_like(p) for p in params]

    @torch.no_grad()
    def step(self, lr, mom=.95):
        for p, m in zip(self.p, self.m):
            m.lerp_(p.grad, 1 - mom)
            x = p.grad.lerp(m, mom).bfloat16()           # Nesterov
            tall = x.shape[1] > x.shape[2]
            if tall: x = x.mT
            x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
            for _ in range(5):
                a = x @ x.mT
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
            if tall: x = x.mT
            p.mul_(1 - lr * self.wd).add_(x.to(p.dtype), alpha=-lr * max(1, p.shape[1] / p.shape[2]) ** .5)


def train(a):
    global TEXTS
    from agent_data import Texts
    torch.manual_seed(a.seed); t_start = time.time()
    TEXTS = Texts(a.data)
    folder = tempfile.mkdtemp(dir="/dev/shm")
    workers = [multiprocessing.Process(target=worker, args=(a.data, a.tokenizer, 1000 * a.seed + i + 1, (i, a.workers), folder), daemon=True) for i in range(a.workers)]
    for p in workers: p.start()
    held = held_out_rows(a.data, a.tokenizer, 8) if a.eval_every else {}
    print(f"data {time.time() - t_start:.0f} s", flush=True)
    dev, B = a.device, a.batch
    w = load_gguf(a.init)[0] if a.init else new_weights()
    w = {n: t.to(dev).requires_grad_() for n, t in w.items()}
    print(sum(t.numel() for t in w.values()), "parameters", flush=True)
    plain = dev == "cpu"
    if plain: one_block, loss_of, hits_of, dtype = plain_block, losses, hits, torch.float32
    else:
        from torch._inductor import config as inductor
        from torch.nn.attention.flex_attention import create_block_mask
        # PyTorch 2.11's fused "mix order" reductions gave wrong gradients for stacked norm weights.
        if hasattr(inductor.triton, "mix_order_reduction"): inductor.triton.mix_order_reduction = False
        one_block, loss_of, hits_of, dtype = torch.compile(train_block, dynamic=False), torch.compile(losses, dynamic=False), torch.compile(hits, dynamic=False), torch.bfloat16
        make_mask = torch.compile(create_block_mask, dynamic=False)
    def mask_of(docs):
        if plain: return docs
        def seen(b, h, q, k): return (q >= k) & (docs[b, q] == docs[b, k])
        return make_mask(seen, docs.shape[0], None, T, T, device=dev)
    def to_device(batch):
        ids, weight, docs = (torch.from_numpy(np.ascontiguousarray(x)).to(dev) for x in (batch[0].astype(np.int16), batch[1], batch[2]))
        return ids.long(), weight, docs.int()
    def shifted(ids, weight):
        return torch.cat([ids[:, 1:], ids[:, :1]], 1), torch.cat([weight[:, 1:], torch.zeros_like(weight[:, :1])], 1)
    # All rows made so far stay on the device. A batch is new rows when there are any, else older ones once more.
    pool = torch.zeros(3, a.pool, T, dtype=torch.int16, device=dev)
    have = used = 0
    def next_batch():
        nonlocal have, used
        while used == have:
            ready = sorted(x for x in os.listdir(folder) if not x.endswith(".tmp.npy")) if have + 32 <= a.pool else []
            if ready:
                pool[:, have:have + 32] = torch.from_numpy(np.load(f"{folder}/{ready[0]}")).to(dev)
                os.remove(f"{folder}/{ready[0]}"); have += 32
            elif have >= a.first: break
            else: time.sleep(.2)
        if used < have: at = torch.arange(used, used + B, device=dev); used += B
        else: at = torch.randint(have, (B,), device=dev)
        got = pool[:, at]
        return got[0].long(), got[1].to(torch.uint8), got[2].int()
    @torch.no_grad()
    def evaluate():
        out = {}
        for kind, rows in held.items():
            n = len(rows[0]); fill = [np.concatenate([x] * -(-B // n))[:B] for x in rows]     # whole batches: nothing recompiles
            ids, weight, docs = to_device(fill)
            y, yw = shifted(ids, weight)
            ok, loss = hits_of(body(w, ids, mask_of(docs), one_block, dtype), w["norm"], w["tok"], y)
            ok, loss, ww = ok[:n].cpu().numpy(), loss[:n].float().cpu().numpy(), yw[:n].cpu().numpy() == 2
            turns = right = 0
            if kind not in TEXTS.valid:
                for r in range(n):
                    edge = np.flatnonzero(np.diff(np.concatenate([[0], ww[r].astype(np.int8), [0]])))
                    for s, e in zip(edge[::2], edge[1::2]): turns += 1; right += bool(ok[r, s:e].all())
            out[kind] = [round(float(loss[ww].mean()), 3)] + ([round(right / max(1, turns), 3), turns] if turns else [])
        return out
    def save():
        save_gguf(w, a.tokenizer, a.out + ".part", {"tokens": step * B * T, "different_tokens": used * T, "steps": step, "seed": a.seed})
        os.replace(a.out + ".part", a.out)
    big = [w[n] for n in SHAPES]
    muon, adam = Muon(big, a.wd), torch.optim.AdamW([w[n] for n in ("tok", "n1", "n2", "norm")], lr=a.adam_lr, betas=(.9, .95), weight_decay=0.)
    scale = torch.tensor([0., QUIET, 1.], device=dev)
    t0, step, frac, acc, next_eval, next_save, log = time.time(), 0, 0., torch.zeros((), device=dev), a.eval_every or 2, a.save_every, []
    while frac < 1:
        down = min(1., (1 - frac) / a.decay)             # warm-up, constant, then linear to zero
        lr = min(1., (step + 1) / a.warm) * down
        ids, weight, docs = next_batch()
        y, yw = shifted(ids, weight)
        yw = scale[yw.long()]
        ls = loss_of(body(w, ids, mask_of(docs), one_block, dtype), w["norm"], w["tok"], y)
        loss = (ls * yw).sum() / yw.sum()
        for t in w.values(): t.grad = None
        loss.backward()
        for g in adam.param_groups: g["lr"] = a.adam_lr * lr
        adam.step(); muon.step(a.muon_lr * lr)
        acc += loss.detach(); step += 1
        if step == 3: t0 = time.time() - .5                # compiled: the clock starts
        if step % 10 == 0 or plain:
            if not plain: torch.cuda.synchronize()
            frac = (time.time() - t0) / (60 * a.minutes) if step >= 3 else 0.
        if step % a.log == 0:
            log.append(round(acc.item() / a.log, 4)); acc.zero_()
            print(f"step {step} {100 * frac:.1f} % lr {lr:.3f} loss {log[-1]:.4f}, {(step - 2) * B * T / (time.time() - t0) / 1e6:.3f} M tokens/s, {have} rows, in all {time.time() - t_start:.0f} s", flush=True)
        if frac >= next_eval and frac < 1:
            t1 = time.time(); v = evaluate(); print("   held out", v, flush=True); t0 += time.time() - t1
            next_eval = max(next_eval, frac) + a.eval_every
        if frac >= next_save and frac < 1: save(); next_save = max(next_save, frac) + a.save_every
    minutes, v = round((time.time() - t0) / 60, 2), evaluate()
    info = {"tokens": step * B * T, "different_tokens": used * T, "steps": step, "minutes": minutes, "train_loss": log[-5:], "held_out": v, "seed": a.seed, "muon_lr": a.muon_lr, "adam_lr": a.adam_lr, "decay": a.decay}
    print(json.dumps(info), f"{time.time() - t_start:.0f} s in all", flush=True)
    save()
    if held:                                             # the rounded weights, from the file
        for n, t in load_gguf(a.out)[0].items(): w[n].data.copy_(t)
        print("from the file", evaluate(), flush=True)
    Path(a.out + ".done").write_text("done\n")
    if not plain: print("memory", torch.cuda.max_memory_allocated() >> 20, "MiB", flush=True)
    for p in workers: p.terminate(); p.join()
    shutil.rmtree(folder)


def reference(a):
    """What a runtime must reproduce: float32 on the CPU from the Q8_0 weights."""
    torch.set_grad_enabled(False)
    w, keys = load_gguf(a.model)
    ids, cache, cos, sin = json.loads(Path(a.ids).read_text()), [None] * L, *angles(T)
    def logits(new):
        """Of the last of some new tokens; earlier keys and values are kept."""
        x, at = w["tok"][new][None], 0 if cache[0] is None else cache[0][0].shape[2]
        for i in range(L):
            def attend(q, k, v, _):
                cache[i] = (k, v) if cache[i] is None else tuple(torch.cat(p, 2) for p in zip(cache[i], (k, v)))
                k, v = (t.repeat_interleave(H // KV, 1) for t in cache[i])
                s = q @ k.transpose(-1, -2) / math.sqrt(D)
                seen = torch.arange(k.shape[2])[None] <= at + torch.arange(q.shape[2])[:, None]
                return s.masked_fill(~seen, -float("inf")).softmax(-1) @ v
            n = len(new)
            x = block(attend, x, *(w[m][i] for m in ("n1", "q", "k", "v", "o", "n2", "gate", "up", "down")), cos[:, at:at + n], sin[:, at:at + n], None)
        return F.linear(rms(x[0, -1], w["norm"]), w["tok"])
    z, out, margin = logits(ids), [], float("inf")
    top = z.topk(2)
    while True:
        margin = min(margin, float(top.values[0] - top.values[1])); out.append(int(top.indices[0]))
        if out[-1] == STOP or len(out) == a.n: break
        top = logits(out[-1:]).topk(2)
    Path(a.out).write_text(json.dumps({"model": Path(a.model).name, "ids": ids, "greedyIds": out, "greedyLeastMargin": margin, "lastLogits": [round(float(x), 5) for x in z]}) + "\n")
    print(len(ids), "tokens; least top-2 margin", margin, "".join(keys["tokenizer.ggml.tokens"][i] for i in out))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    s = p.add_subparsers(required=True)
    t = s.add_parser("tokenizer"); t.set_defaults(run=make_tokenizer); t.add_argument("--data", required=True); t.add_argument("--out", required=True)
    t = s.add_parser("train"); t.set_defaults(run=train)
    for name in ("data", "tokenizer", "out", "init"): t.add_argument("--" + name, required=name != "init")
    for name, default in (("minutes", 18.), ("muon_lr", .02), ("adam_lr", .004), ("wd", .05), ("decay", .6), ("eval_every", .1), ("save_every", .2)): t.add_argument("--" + name, type=float, default=default)
    for name, default in (("batch", 16), ("seed", 1), ("workers", 14), ("warm", 100), ("log", 100), ("pool", 300000), ("first", 32)): t.add_argument("--" + name, type=int, default=default)
    t.add_argument("--device", default="cuda")
    t = s.add_parser("reference"); t.set_defaults(run=reference)
    for name in ("model", "ids", "out"): t.add_argument("--" + name, required=True)
    t.add_argument("--n", type=int, default=100)
    a = p.parse_args(); a.run(a)


if __name__ == "__main__":
    main()
