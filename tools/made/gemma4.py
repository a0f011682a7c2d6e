"""Gemma 4 with experts, whose values are its keys."""

import math

import numpy as np

from made.parts import (
    HEADS, VOCAB, WIDTH, attend, best, frequencies, gelu_tanh, mixture, rms, rotate,
    softmax)


def gemma4(c, w, ids):
    eps, n = c["rms_norm_eps"], len(ids)
    norm = lambda x, name: rms(x, w[name], eps)
    bare = lambda x: rms(x, 1.0, eps)
    x = w["model.embed_tokens.weight"][ids] * math.sqrt(WIDTH)
    for i, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{i}."
        full = kind == "full_attention"
        d = c["global_head_dim"] if full else c["head_dim"]
        kv_heads = c["num_global_key_value_heads"] if full else c["num_key_value_heads"]
        h = norm(x, p + "input_layernorm.weight")
        q = (h @ w[p + "self_attn.q_proj.weight"].T).reshape(n, HEADS, d)
        k = (h @ w[p + "self_attn.k_proj.weight"].T).reshape(n, kv_heads, d)
        v = k if full else (h @ w[p + "self_attn.v_proj.weight"].T).reshape(n, kv_heads, d)
        q, k = norm(q, p + "self_attn.q_norm.weight"), norm(k, p + "self_attn.k_norm.weight")
        v = bare(v)
        inv_freq = frequencies(1e6 if full else 1e4, d)
        if full:
            inv_freq = np.where(np.arange(d // 2) < d // 8, inv_freq, 0)
        q, k = rotate(q, inv_freq), rotate(k, inv_freq)
        out = attend(q, k, v, 1.0, 0 if full else c["sliding_window"])
        h = out.reshape(n, -1) @ w[p + "self_attn.o_proj.weight"].T
        x = x + norm(h, p + "post_attention_layernorm.weight")

        h = norm(x, p + "pre_feedforward_layernorm.weight")
        gate, up = (h @ w[p + f"mlp.{s}_proj.weight"].T for s in ("gate", "up"))
        dense = (gelu_tanh(gate) * up) @ w[p + "mlp.down_proj.weight"].T
        scores = softmax((bare(x) * w[p + "router.scale"] * WIDTH ** -0.5) @ w[p + "router.proj.weight"].T)
        chosen = best(scores, c["top_k_experts"])
        weights = np.take_along_axis(scores, chosen, -1)
        weights = weights / weights.sum(-1, keepdims=True) * w[p + "router.per_expert_scale"][chosen]

        def expert(e, row):
            gate, up = np.split(w[p + "experts.gate_up_proj"][e] @ row, 2)
            return w[p + "experts.down_proj"][e] @ (gelu_tanh(gate) * up)

        experts = mixture(norm(x, p + "pre_feedforward_layernorm_2.weight"), chosen, weights, expert)
        h = norm(dense, p + "post_feedforward_layernorm_1.weight") + \
            norm(experts, p + "post_feedforward_layernorm_2.weight")
        x = (x + norm(h, p + "post_feedforward_layernorm.weight")) * w[p + "layer_scalar"]
    logits = norm(x, "model.norm.weight") @ w["model.embed_tokens.weight"].T
    cap = c["final_logit_softcapping"]
    return np.tanh(logits / cap) * cap


def gemma4_weights(c, m):
    m.matrix("model.embed_tokens.weight", VOCAB, WIDTH, spread=1.5)
    m.vector("model.norm.weight", WIDTH)
    for i, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{i}."
        full = kind == "full_attention"
        d = c["global_head_dim"] if full else c["head_dim"]
        kv = (c["num_global_key_value_heads"] if full else c["num_key_value_heads"]) * d
        for name in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                     "post_feedforward_layernorm", "post_feedforward_layernorm_1",
                     "pre_feedforward_layernorm_2", "post_feedforward_layernorm_2"):
            m.vector(p + name + ".weight", WIDTH)
        m.matrix(p + "self_attn.q_proj.weight", HEADS * d, WIDTH)
        m.matrix(p + "self_attn.k_proj.weight", kv, WIDTH)
        if not full:
            m.matrix(p + "self_attn.v_proj.weight", kv, WIDTH)
        m.matrix(p + "self_attn.o_proj.weight", WIDTH, HEADS * d)
        # Without a scale of scores, norms near 1 would leave attention one-sided.
        m.vector(p + "self_attn.q_norm.weight", d, 0.5)
        m.vector(p + "self_attn.k_norm.weight", d, 0.5)
        m.matrix(p + "mlp.gate_proj.weight", c["intermediate_size"], WIDTH)
        m.matrix(p + "mlp.up_proj.weight", c["intermediate_size"], WIDTH)
        m.matrix(p + "mlp.down_proj.weight", WIDTH, c["intermediate_size"])
        m.matrix(p + "router.proj.weight", c["num_experts"], WIDTH, spread=12)
        m.vector(p + "router.scale", WIDTH)
        m.vector(p + "router.per_expert_scale", c["num_experts"])
        m.matrix(p + "experts.gate_up_proj", c["num_experts"], 2 * c["moe_intermediate_size"], WIDTH)
        m.matrix(p + "experts.down_proj", c["num_experts"], WIDTH, c["moe_intermediate_size"])
        m.vector(p + "layer_scalar", 1)
