"""LFM2 with experts."""

import numpy as np

from made.parts import (
    HEADS, VOCAB, WIDTH, attend, best, frequencies, mixture, rms, rotate, sigmoid, swiglu)


def lfm2_moe(c, w, ids, states=None):
    n, d, kv, eps = len(ids), WIDTH // HEADS, c["num_key_value_heads"], c["norm_eps"]
    norm = lambda x, name: rms(x, w[name], eps)
    inv_freq = frequencies(c["rope_theta"], d)
    x = w["model.embed_tokens.weight"][ids]
    for i, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{i}."
        h = norm(x, p + "operator_norm.weight")
        if kind == "conv":
            b, gate, value = np.split(h @ w[p + "conv.in_proj.weight"].T, 3, -1)
            taps = w[p + "conv.conv.weight"][:, 0]
            padded = np.concatenate([np.zeros((2, WIDTH)), b * value])
            mixed = sum(padded[k:k + n] * taps[:, k] for k in range(3))
            x = x + (gate * mixed) @ w[p + "conv.out_proj.weight"].T
        else:
            q, k, v = ((h @ w[p + f"self_attn.{s}_proj.weight"].T).reshape(n, -1, d) for s in "qkv")
            q = rotate(norm(q, p + "self_attn.q_layernorm.weight"), inv_freq)
            k = rotate(norm(k, p + "self_attn.k_layernorm.weight"), inv_freq)
            x = x + attend(q, k, v, d ** -0.5).reshape(n, -1) @ w[p + "self_attn.out_proj.weight"].T
        h = norm(x, p + "ffn_norm.weight")
        m = p + "feed_forward."
        network = lambda name, row: swiglu(row, *(w[m + name + f"w{s}.weight"] for s in "132"))
        if i < c["num_dense_layers"]:
            x = x + network("", h)
            continue
        scores = sigmoid(h @ w[m + "gate.weight"].T)
        chosen = best(scores + w[m + "expert_bias"], c["num_experts_per_tok"])
        weights = np.take_along_axis(scores, chosen, -1)
        weights = weights / weights.sum(-1, keepdims=True)
        x = x + mixture(h, chosen, weights, lambda e, row: network(f"experts.{e}.", row))
    return norm(x, "model.embedding_norm.weight") @ w["model.embed_tokens.weight"].T


def lfm2_moe_weights(c, m):
    d, kv = WIDTH // HEADS, c["num_key_value_heads"]
    m.matrix("model.embed_tokens.weight", VOCAB, WIDTH, spread=3)
    m.vector("model.embedding_norm.weight", WIDTH)

    def network(name, width):
        for s, shape in (("1", (width, WIDTH)), ("3", (width, WIDTH)), ("2", (WIDTH, width))):
            m.matrix(name + f"w{s}.weight", *shape)

    for i, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{i}."
        m.vector(p + "operator_norm.weight", WIDTH)
        m.vector(p + "ffn_norm.weight", WIDTH)
        if kind == "conv":
            m.matrix(p + "conv.in_proj.weight", 3 * WIDTH, WIDTH)
            m.matrix(p + "conv.conv.weight", WIDTH, 1, 3)
            m.matrix(p + "conv.out_proj.weight", WIDTH, WIDTH)
        else:
            for s, heads in (("q", HEADS), ("k", kv), ("v", kv)):
                m.matrix(p + f"self_attn.{s}_proj.weight", heads * d, WIDTH)
            m.matrix(p + "self_attn.out_proj.weight", WIDTH, WIDTH)
            m.vector(p + "self_attn.q_layernorm.weight", d)
            m.vector(p + "self_attn.k_layernorm.weight", d)
        if i < c["num_dense_layers"]:
            network(p + "feed_forward.", c["intermediate_size"])
            continue
        m.matrix(p + "feed_forward.gate.weight", c["num_experts"], WIDTH)
        m.vector(p + "feed_forward.expert_bias", c["num_experts"], 0.0)
        for e in range(c["num_experts"]):
            network(p + f"feed_forward.experts.{e}.", c["moe_intermediate_size"])
