"""What the definitions of small models are written with: sizes, arithmetic in
double precision, and random weights."""

import math

import numpy as np

VOCAB, WIDTH, HEADS = 64, 32, 4


def rms(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def silu(x):
    return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rotate(x, inv_freq, pairs="halves", first=0):
    """x: [tokens, heads, head_dim]; the numbers from `first` on turn."""
    n = len(inv_freq)
    angle = np.arange(len(x))[:, None] * inv_freq
    cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
    out = x.copy()
    if pairs == "halves":
        ia, ib = first + np.arange(n), first + n + np.arange(n)
    else:
        ia, ib = first + 2 * np.arange(n), first + 2 * np.arange(n) + 1
    a, b = x[..., ia], x[..., ib]
    out[..., ia] = a * cos - b * sin
    out[..., ib] = b * cos + a * sin
    return out


def frequencies(base, dim):
    return base ** -(np.arange(0, dim, 2) / dim)


def attend(q, k, v, scale, window=0):
    """q: [tokens, heads, d]; k, v: [tokens, KV heads, d]."""
    n, heads, _ = q.shape
    group = heads // k.shape[1]
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    hidden = (distance < 0) | ((distance >= window) if window else False)
    out = np.zeros((n, heads, v.shape[2]))
    for h in range(heads):
        score = np.where(hidden, -np.inf, q[:, h] @ k[:, h // group].T * scale)
        out[:, h] = softmax(score) @ v[:, h // group]
    return out


def best(scores, k):
    """The k largest of each row, of equal ones the first."""
    return np.argsort(-scores, axis=-1, kind="stable")[:, :k]


def mixture(x, chosen, weights, expert):
    out = np.zeros_like(x)
    for t in range(len(x)):
        for e, weight in zip(chosen[t], weights[t]):
            out[t] += weight * expert(int(e), x[t])
    return out


def head(c, w, x):
    return rms(x, w["model.norm.weight"], c["rms_norm_eps"]) @ w["lm_head.weight"].T


def swiglu(x, gate, up, down):
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


class Maker:
    def __init__(self, rng):
        self.rng, self.w = rng, {}

    def matrix(self, name, *shape, spread=1.5):
        values = self.rng.standard_normal(shape) * spread / math.sqrt(shape[-1])
        self.w[name] = values.astype(np.float32)

    def vector(self, name, n, center=1.0, spread=0.2):
        self.w[name] = (center + spread * self.rng.standard_normal(n)).astype(np.float32)
