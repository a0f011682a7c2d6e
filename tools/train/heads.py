#!/usr/bin/env python3
"""Trains draft heads (docs/formats/heads.md) for a model of train.py; the model itself stays as it is.

    heads.py --model MODEL.tinygpt --data DIR --kind eagle|medusa --out FILE.heads --minutes 3   # one CUDA GPU

DIR as for train.py. EAGLE: unrolled over what it guesses, with the true tokens as input and the model's own
next distribution as target. Medusa: head k learns the token k + 2 places on.
"""
import argparse, json, struct, time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import train as base

C, V, HIDDEN, UNROLL, HEADS = base.C, base.V, 512, 5, 4


def hidden_states(m, ids):
    """[B, S, C] after the final norm: what the logits are computed from."""
    B, S = ids.shape
    x = F.embedding(ids, m.tok) + m.pos[:S]
    for i in range(base.L):
        h = F.layer_norm(x, (C,), m.ln1_w[i], m.ln1_b[i], 1e-5)
        q, k, v = F.linear(h, m.qkv_w[i], m.qkv_b[i]).view(B, S, 3, base.H, C // base.H).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, S, C)
        x = x + F.linear(a, m.o_w[i], m.o_b[i])
        h = F.layer_norm(x, (C,), m.ln2_w[i], m.ln2_b[i], 1e-5)
        x = x + F.linear(F.gelu(F.linear(h, m.in_w[i], m.in_b[i])), m.out_w[i], m.out_b[i])
    return F.layer_norm(x, (C,), m.lnf_w, m.lnf_b, 1e-5)


class Eagle(nn.Module):
    def __init__(self, tok):
        super().__init__()
        self.fc1, self.fc2 = nn.Parameter(torch.randn(HIDDEN, 2 * C) * .03), nn.Parameter(torch.randn(C, HIDDEN) * .01)
        self.norm_w, self.norm_b, self.out = nn.Parameter(torch.ones(C)), nn.Parameter(torch.zeros(C)), nn.Parameter(tok.clone())

    def step(self, h, e):
        inner = F.silu(F.linear(F.silu(F.linear(torch.cat([h, e], -1), self.fc1)), self.fc2))
        return F.layer_norm(inner + h, (C,), self.norm_w, self.norm_b, 1e-5)

    def loss(self, m, ids, h):
        # h[t] and token t + 1 stand for h[t + 1], whose logits are of token t + 2.
        n, total, rates = ids.shape[1] - 1 - UNROLL, 0., []
        state = h[:, :n]
        for k in range(1, UNROLL + 1):
            state = self.step(state, m.tok[ids[:, k:k + n]])
            logits, truth = F.linear(state, self.out).float(), h[:, k:k + n]
            target = F.linear(truth, m.tok).float()
            total = total + F.kl_div(logits.log_softmax(-1), target.log_softmax(-1), log_target=True, reduction="none").sum(-1).mean() * .8 ** (k - 1)
            rates.append((logits.argmax(-1) == target.argmax(-1)).float().mean().item())
        return total, rates

    def entries(self): return [("fc1.weight", self.fc1), ("fc2.weight", self.fc2), ("norm.weight", self.norm_w), ("norm.bias", self.norm_b), ("out.weight", self.out)]


class Medusa(nn.Module):
    def __init__(self, tok):
        super().__init__()
        self.res, self.bias = nn.Parameter(torch.randn(HEADS, C, C) * .01), nn.Parameter(torch.zeros(HEADS, C))
        self.out = nn.Parameter(tok[None].repeat(HEADS, 1, 1))

    def loss(self, m, ids, h):
        total, rates = 0., []
        for k in range(HEADS):
            n = ids.shape[1] - 2 - k
            x = h[:, :n]
            logits = F.linear(F.silu(F.linear(x, self.res[k], self.bias[k])) + x, self.out[k]).float()
            target = F.linear(h[:, k + 1:k + 1 + n], m.tok).float()
            total = total + F.kl_div(logits.log_softmax(-1), target.log_softmax(-1), log_target=True, reduction="none").sum(-1).mean() * .8 ** k
            rates.append((logits.argmax(-1) == target.argmax(-1)).float().mean().item())
        return total, rates

    def entries(self):
        for k in range(HEADS): yield from ((f"heads.{k}.res.weight", self.res[k]), (f"heads.{k}.res.bias", self.bias[k]), (f"heads.{k}.out.weight", self.out[k]))


def main():
    a = argparse.ArgumentParser()
    for n in ("model", "data", "kind", "out"): a.add_argument("--" + n, required=True)
    a.add_argument("--minutes", type=float, default=3.); a.add_argument("--batch", type=int, default=24); a = a.parse_args()
    torch.manual_seed(1); torch.set_float32_matmul_precision("high"); device = "cuda"
    m, _ = base.load(a.model); m = m.to(device).requires_grad_(False)
    sources = [base.Source(n, train, device) for n, (train, _) in base.documents(a.data).items()]
    weights = [base.MIX[s_name][1] for s_name in base.documents(a.data)]
    net = (Eagle if a.kind == "eagle" else Medusa)(m.tok).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, betas=(.9, .98), weight_decay=.01)
    start, step, last = time.time(), 0, 0.
    while (spent := (time.time() - start) / 60 / a.minutes) < 1:
        for g in opt.param_groups: g["lr"] = 2e-3 * min(1, step / 100) * (1 - spent)
        ids, _ = base.batch(sources, weights, a.batch)
        with torch.autocast(device, torch.bfloat16):
            with torch.no_grad(): h = hidden_states(m, ids)
            loss, rates = net.loss(m, ids, h)
        opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(net.parameters(), 1.); opt.step()
        if step % 200 == 0: print(f"step {step} {time.time() - start:.0f}s loss {loss.item():.4f} same first choice " + " ".join(f"{r:.3f}" for r in rates), flush=True)
        step, last = step + 1, loss.item()
    entries = [(n, t.detach().float().cpu().contiguous().numpy()) for n, t in net.entries()]
    header = json.dumps(dict(kind=a.kind, numHeads=HEADS if a.kind == "medusa" else 1, hiddenDim=HIDDEN, dModel=C, vocabSize=V, baseLayers=base.L,
                             baseDModel=C, baseHeads=base.H, baseCtx=base.T, savedAt=0, finalLoss=last,
                             entries=[dict(name=n, shape=list(t.shape)) for n, t in entries]), separators=(",", ":")).encode()
    Path(a.out).write_bytes(struct.pack("<4sII", b"TGMH", 1, len(header)) + header + b"".join(t.astype("<f4").tobytes() for _, t in entries))
    print("written", a.out, Path(a.out).stat().st_size)


if __name__ == "__main__": main()
