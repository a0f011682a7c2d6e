#!/usr/bin/env python3
"""Trains a small rotary byte model that looks facts up, for tests of long KV caches.

    recall.py --out DIR --minutes 6        # one CUDA GPU; DIR becomes a Hugging Face llama directory

A text is filler (lower-case words) with facts like `kq=407;` in it and, later, questions `?kq=` that the
model answers with `407;`. Facts may lie anywhere before the question, up to the whole context.
Needs PyTorch 2.x, safetensors. Every byte is a token (tokenizer.json: byte-level BPE without merges).
"""
import argparse, json, math, random, time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

L, H, KV, D, C, M, V, T = 4, 4, 2, 32, 128, 256, 256, 512
BASE, EPS = 10000.0, 1e-5


class Recall(nn.Module):
    def __init__(self):
        super().__init__()
        def w(*shape, std=.03): return nn.Parameter(torch.randn(*shape) * std)
        self.tok, self.norm = w(V, C, std=.05), nn.Parameter(torch.ones(C))
        self.layers = nn.ModuleList()
        for _ in range(L):
            layer = nn.Module()
            layer.n1, layer.n2 = nn.Parameter(torch.ones(C)), nn.Parameter(torch.ones(C))
            layer.q, layer.k, layer.v, layer.o = w(H * D, C), w(KV * D, C), w(KV * D, C), w(C, H * D, std=.03 / math.sqrt(2 * L))
            layer.gate, layer.up, layer.down = w(M, C), w(M, C), w(C, M, std=.03 / math.sqrt(2 * L))
            self.layers.append(layer)
        inv = BASE ** (-torch.arange(0, D, 2).float() / D)
        angle = torch.outer(torch.arange(T).float(), inv)
        self.register_buffer("cos", torch.cat([angle.cos()] * 2, -1)); self.register_buffer("sin", torch.cat([angle.sin()] * 2, -1))

    def rope(self, x):
        s = x.shape[-2]
        half = torch.cat([-x[..., D // 2:], x[..., :D // 2]], -1)
        return x * self.cos[:s] + half * self.sin[:s]

    def forward(self, ids):
        B, S = ids.shape
        rms = lambda x, w: F.rms_norm(x, (C,), w, EPS)
        x = self.tok[ids]
        for l in self.layers:
            h = rms(x, l.n1)
            q = self.rope(F.linear(h, l.q).view(B, S, H, D).transpose(1, 2))
            k = self.rope(F.linear(h, l.k).view(B, S, KV, D).transpose(1, 2)).repeat_interleave(H // KV, 1)
            v = F.linear(h, l.v).view(B, S, KV, D).transpose(1, 2).repeat_interleave(H // KV, 1)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, S, H * D)
            x = x + F.linear(a, l.o)
            h = rms(x, l.n2)
            x = x + F.linear(F.silu(F.linear(h, l.gate)) * F.linear(h, l.up), l.down)
        return F.linear(rms(x, self.norm), self.tok)


WORDS = [bytes(random.Random(i).choices(range(97, 123), k=random.Random(i + 5000).randint(2, 7))) for i in range(400)]


def example(rng, length):
    """Bytes of one text and where its answers lie."""
    names = rng.sample([bytes([a, b]) for a in range(97, 123) for b in range(97, 123)], 12)
    facts = {}
    out, answers = bytearray(), []
    while len(out) < length:
        r = rng.random()
        if r < .10 and len(facts) < len(names):
            name = names[len(facts)]
            facts[name] = b"%03d" % rng.randrange(1000)
            out += b"\n" + name + b"=" + facts[name] + b";\n"
        elif r < .25 and facts:
            name = rng.choice(list(facts))
            out += b"\n?" + name + b"="
            answers += range(len(out), len(out) + 4)
            out += facts[name] + b";\n"
        else:
            for _ in range(rng.randint(1, 6)): out += rng.choice(WORDS) + b" "
    return out[:length], [a for a in answers if a < length]


def batches(size, seed):
    rng = random.Random(seed)
    while True:
        ids, weight = np.zeros((size, T), np.int64), np.full((size, T), .02, np.float32)
        for i in range(size):
            text, answers = example(rng, T)
            ids[i] = np.frombuffer(bytes(text), np.uint8)
            weight[i, answers] = 1.
        yield torch.from_numpy(ids), torch.from_numpy(weight)


def export(model, out):
    from safetensors.numpy import save_file
    out.mkdir(parents=True, exist_ok=True)
    t = lambda p: p.detach().float().cpu().numpy().astype(np.float16)
    tensors = {"model.embed_tokens.weight": t(model.tok), "model.norm.weight": t(model.norm)}
    for i, l in enumerate(model.layers):
        p = f"model.layers.{i}."
        for n, w in (("input_layernorm", l.n1), ("post_attention_layernorm", l.n2), ("self_attn.q_proj", l.q), ("self_attn.k_proj", l.k),
                     ("self_attn.v_proj", l.v), ("self_attn.o_proj", l.o), ("mlp.gate_proj", l.gate), ("mlp.up_proj", l.up), ("mlp.down_proj", l.down)):
            tensors[p + n + ".weight"] = t(w)
    save_file(tensors, str(out / "model.safetensors"), metadata={"format": "pt"})
    config = dict(architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=V, hidden_size=C, intermediate_size=M, num_hidden_layers=L,
                  num_attention_heads=H, num_key_value_heads=KV, head_dim=D, max_position_embeddings=T, rms_norm_eps=EPS, rope_theta=BASE,
                  hidden_act="silu", tie_word_embeddings=True, torch_dtype="float16")
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    # GPT-2's alphabet: printable bytes stand for themselves, the rest for characters from 256 on.
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    chars, extra = {}, 256
    for b in range(256):
        if b in keep: chars[b] = chr(b)
        else: chars[b] = chr(extra); extra += 1
    tokenizer = dict(version="1.0", truncation=None, padding=None, added_tokens=[], normalizer=None,
                     pre_tokenizer=dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=False), post_processor=None,
                     decoder=dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=False),
                     model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None,
                                fuse_unk=False, byte_fallback=False, vocab={chars[b]: b for b in range(256)}, merges=[]))
    (out / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False) + "\n")


def main():
    a = argparse.ArgumentParser(); a.add_argument("--out", required=True); a.add_argument("--minutes", type=float, default=6.)
    a.add_argument("--batch", type=int, default=128); a.add_argument("--workers", type=int, default=12); a = a.parse_args()
    torch.manual_seed(1); torch.set_float32_matmul_precision("high")
    import torch.multiprocessing as mp
    queue = mp.Queue(64)
    def work(seed):
        torch.set_num_threads(1)
        for b in batches(a.batch, seed): queue.put(b)
    mp.set_start_method("fork", force=True)
    workers = [mp.Process(target=work, args=(100 + i,), daemon=True) for i in range(a.workers)]
    for w in workers: w.start()
    model = Recall().cuda()
    decay = [p for p in model.parameters() if p.dim() > 1]; plain = [p for p in model.parameters() if p.dim() <= 1]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": .05}, {"params": plain, "weight_decay": 0.}], lr=3e-3, betas=(.9, .98))
    start, step = time.time(), 0
    while (spent := (time.time() - start) / 60 / a.minutes) < 1:
        for g in opt.param_groups: g["lr"] = 2.5e-3 * min(1, step / 200) * (1 - spent) ** .7
        ids, weight = queue.get(); ids, weight = ids.cuda(), weight.cuda()
        with torch.autocast("cuda", torch.bfloat16): logits = model(ids)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, V).float(), ids[:, 1:].reshape(-1), reduction="none").view(ids.shape[0], -1)
        w = weight[:, 1:]; total = (loss * w).sum() / w.sum()
        opt.zero_grad(); total.backward(); nn.utils.clip_grad_norm_(model.parameters(), 1.); opt.step()
        if step % 250 == 0:
            hit = (logits[:, :-1].argmax(-1) == ids[:, 1:])[w > .5].float().mean().item()
            print(f"step {step} {time.time() - start:.0f}s answers {((loss * (w > .5)).sum() / (w > .5).sum()).item():.4f} right {hit:.4f}", flush=True)
        step += 1
    for w in workers: w.terminate()
    export(model, Path(a.out))
    print("written", a.out)


if __name__ == "__main__": main()
