"""MiniMax M2."""

import numpy as np

from made.parts import (
    HEADS, VOCAB, WIDTH, attend, best, frequencies, head, mixture, rms, rotate, sigmoid,
    swiglu)


def minimax_m2(c, w, ids):
    eps, n, d, kv = c["rms_norm_eps"], len(ids), c["head_dim"], c["num_key_value_heads"]
    norm = lambda x, name: rms(x, w[name], eps)
    x = w["model.embed_tokens.weight"][ids]
    inv_freq = frequencies(c["rope_theta"], c["rotary_dim"])
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        h = norm(x, p + "input_layernorm.weight")
        q, k, v = (h @ w[p + f"self_attn.{s}_proj.weight"].T for s in "qkv")
        q = norm(q, p + "self_attn.q_norm.weight").reshape(n, HEADS, d)
        k = norm(k, p + "self_attn.k_norm.weight").reshape(n, kv, d)
        out = attend(rotate(q, inv_freq), rotate(k, inv_freq), v.reshape(n, kv, d), d ** -0.5)
        x = x + out.reshape(n, -1) @ w[p + "self_attn.o_proj.weight"].T
        h = norm(x, p + "post_attention_layernorm.weight")
        m = p + "block_sparse_moe."
        scores = sigmoid(h @ w[m + "gate.weight"].T)
        chosen = best(scores + w[m + "e_score_correction_bias"], c["num_experts_per_tok"])
        weights = np.take_along_axis(scores, chosen, -1)
        weights = weights / weights.sum(-1, keepdims=True)
        x = x + mixture(h, chosen, weights, lambda e, row: swiglu(
            row, *(w[m + f"experts.{e}.w{s}.weight"] for s in "132")))
    return head(c, w, x)


def minimax_m2_weights(c, m):
    d, kv = c["head_dim"], c["num_key_value_heads"]
    m.matrix("model.embed_tokens.weight", VOCAB, WIDTH, spread=3)
    m.matrix("lm_head.weight", VOCAB, WIDTH, spread=3)
    m.vector("model.norm.weight", WIDTH)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            m.vector(p + name + ".weight", WIDTH)
        for s, heads in (("q", HEADS), ("k", kv), ("v", kv)):
            m.matrix(p + f"self_attn.{s}_proj.weight", heads * d, WIDTH)
        m.matrix(p + "self_attn.o_proj.weight", WIDTH, HEADS * d)
        m.vector(p + "self_attn.q_norm.weight", HEADS * d)
        m.vector(p + "self_attn.k_norm.weight", kv * d)
        moe = p + "block_sparse_moe."
        m.matrix(moe + "gate.weight", c["num_local_experts"], WIDTH)
        m.vector(moe + "e_score_correction_bias", c["num_local_experts"], 1.0, 0.3)
        for e in range(c["num_local_experts"]):
            m.matrix(moe + f"experts.{e}.w1.weight", c["intermediate_size"], WIDTH)
            m.matrix(moe + f"experts.{e}.w3.weight", c["intermediate_size"], WIDTH)
            m.matrix(moe + f"experts.{e}.w2.weight", WIDTH, c["intermediate_size"])
