"""More small random models, as make_family_models.py makes them: families of
2026 for which no reference of another implementation is at hand. Logits are
computed here, in double precision, with numpy, from the definitions.

    python3 tools/make_next_models.py tests/data/models/made [NAME ...]
"""

import json
import math
import os
import sys

import numpy as np

from make_family_models import gelu_tanh, rms, rotary, silu, write_safetensors

VOCAB, WIDTH, HEADS, TOKENS, GREEDY = 64, 32, 4, 40, 8
# Of models with recurrent states, which tests cut into steps.
TOKENS_OF = {"nemotron_h": 160}


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


# --- Gemma 4 with experts, whose values are its keys -------------------------
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


def head(c, w, x):
    return rms(x, w["model.norm.weight"], c["rms_norm_eps"]) @ w["lm_head.weight"].T


def swiglu(x, gate, up, down):
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


# --- MiniMax M2 --------------------------------------------------------------
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


# --- DeepSeek V2 and Mistral 4, in the form that makes every head's keys ------
def latent_rope(c):
    """Frequencies, the factor of scores, and what queries grow by."""
    rope = c.get("rope_parameters")
    if rope is None:
        return frequencies(c["rope_theta"], c["qk_rope_head_dim"]), 1.0, lambda position: 1.0
    settings = {"rope_theta": rope["rope_theta"], "rope_scaling": rope}
    inv_freq, _ = rotary(settings, c["qk_rope_head_dim"], 0)
    factor = 0.1 * rope["mscale_all_dim"] * math.log(rope["factor"]) + 1
    original = rope["original_max_position_embeddings"]
    return inv_freq, factor ** 2, lambda position: 1 + rope["llama_4_scaling_beta"] * np.log1p(position // original)


def deepseek_v2(c, w, ids):
    eps, n = c["rms_norm_eps"], len(ids)
    norm = lambda x, name: rms(x, w[name], eps)
    nope, rope, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    rank = c["kv_lora_rank"]
    inv_freq, factor, growth = latent_rope(c)
    x = w["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        h = norm(x, p + "input_layernorm.weight")
        if c["q_lora_rank"]:
            q = norm(h @ w[p + "self_attn.q_a_proj.weight"].T, p + "self_attn.q_a_layernorm.weight")
            q = q @ w[p + "self_attn.q_b_proj.weight"].T
        else:
            q = h @ w[p + "self_attn.q_proj.weight"].T
        q = q.reshape(n, HEADS, nope + rope)
        down = h @ w[p + "self_attn.kv_a_proj_with_mqa.weight"].T
        kept = norm(down[:, :rank], p + "self_attn.kv_a_layernorm.weight")
        both = (kept @ w[p + "self_attn.kv_b_proj.weight"].T).reshape(n, HEADS, nope + value)
        turned = rotate(down[:, None, rank:], inv_freq, "neighbours")
        q = rotate(q, inv_freq, "neighbours", nope) * growth(np.arange(n))[:, None, None] \
            if c["q_lora_rank"] else rotate(q, inv_freq, "neighbours", nope)
        k = np.concatenate([both[..., :nope], np.repeat(turned, HEADS, 1)], -1)
        out = attend(q, k, both[..., nope:], factor * (nope + rope) ** -0.5)
        x = x + out.reshape(n, -1) @ w[p + "self_attn.o_proj.weight"].T
        h = norm(x, p + "post_attention_layernorm.weight")
        m = p + "mlp."
        part = lambda name: [w[m + name + f"{s}_proj.weight"] for s in ("gate", "up", "down")]
        if i < c["first_k_dense_replace"]:
            x = x + swiglu(h, *part(""))
            continue
        scores = softmax(h @ w[m + "gate.weight"].T)
        groups = scores.reshape(n, c["n_group"], -1)
        allowed = np.zeros(groups.shape[:2], bool)
        np.put_along_axis(allowed, best(groups.max(-1), c["topk_group"]), True, -1)
        masked = np.where(allowed[..., None], groups, 0).reshape(n, -1)
        chosen = best(masked, c["num_experts_per_tok"])
        weights = np.take_along_axis(scores, chosen, -1)
        if c["norm_topk_prob"]:
            weights = weights / weights.sum(-1, keepdims=True)

        def expert(e, row):
            if m + "experts.gate_up_proj" not in w:
                return swiglu(row, *part(f"experts.{e}."))
            gate, up = np.split(w[m + "experts.gate_up_proj"][e], 2)
            return swiglu(row, gate, up, w[m + "experts.down_proj"][e])

        x = x + mixture(h, chosen, weights * c["routed_scaling_factor"], expert) + swiglu(h, *part("shared_experts."))
    return head(c, w, x)


def deepseek_v2_weights(c, m):
    nope, rope, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    rank = c["kv_lora_rank"]
    m.matrix("model.embed_tokens.weight", VOCAB, WIDTH, spread=3)
    m.matrix("lm_head.weight", VOCAB, WIDTH, spread=3)
    m.vector("model.norm.weight", WIDTH)

    def network(name, width):
        m.matrix(name + "gate_proj.weight", width, WIDTH)
        m.matrix(name + "up_proj.weight", width, WIDTH)
        m.matrix(name + "down_proj.weight", WIDTH, width)

    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            m.vector(p + name + ".weight", WIDTH)
        if c["q_lora_rank"]:
            m.matrix(p + "self_attn.q_a_proj.weight", c["q_lora_rank"], WIDTH)
            m.vector(p + "self_attn.q_a_layernorm.weight", c["q_lora_rank"])
            m.matrix(p + "self_attn.q_b_proj.weight", HEADS * (nope + rope), c["q_lora_rank"])
        else:
            m.matrix(p + "self_attn.q_proj.weight", HEADS * (nope + rope), WIDTH)
        m.matrix(p + "self_attn.kv_a_proj_with_mqa.weight", rank + rope, WIDTH)
        m.vector(p + "self_attn.kv_a_layernorm.weight", rank)
        m.matrix(p + "self_attn.kv_b_proj.weight", HEADS * (nope + value), rank)
        m.matrix(p + "self_attn.o_proj.weight", WIDTH, HEADS * value)
        if i < c["first_k_dense_replace"]:
            network(p + "mlp.", c["intermediate_size"])
            continue
        m.matrix(p + "mlp.gate.weight", c["n_routed_experts"], WIDTH)
        if c["model_type"] == "mistral4":
            size = c["moe_intermediate_size"]
            m.matrix(p + "mlp.experts.gate_up_proj", c["n_routed_experts"], 2 * size, WIDTH)
            m.matrix(p + "mlp.experts.down_proj", c["n_routed_experts"], WIDTH, size)
        else:
            for e in range(c["n_routed_experts"]):
                network(p + f"mlp.experts.{e}.", c["moe_intermediate_size"])
        network(p + "mlp.shared_experts.", c["n_shared_experts"] * c["moe_intermediate_size"])


# --- Nemotron-H --------------------------------------------------------------
# transformers' own scan raises time steps to time_step_min, which is meant for
# the start of training and which the authors' kernels do not know; so its
# logits differ from its own run token by token. Here nothing is raised. (With
# it, this function and transformers agree within 1.2e-5.)
def mamba2(c, w, p, h, states):
    n = len(h)
    heads, d, groups, size = c["mamba_num_heads"], c["mamba_head_dim"], c["n_groups"], c["ssm_state_size"]
    width = heads * d
    gate, channels, steps = np.split(h @ w[p + "in_proj.weight"].T, [width, 2 * width + 2 * groups * size], -1)
    padded = np.concatenate([np.zeros((3, channels.shape[1])), channels])
    taps = w[p + "conv1d.weight"][:, 0]
    mixed = silu(sum(padded[k:k + n] * taps[:, k] for k in range(4)) + w[p + "conv1d.bias"])
    x, write, read = np.split(mixed, [width, width + groups * size], -1)
    x = x.reshape(n, heads, d)
    write, read = (np.repeat(a.reshape(n, groups, size), heads // groups, 1) for a in (write, read))
    steps = np.log1p(np.exp(steps + w[p + "dt_bias"]))
    state, out = np.zeros((heads, d, size)), np.zeros((n, heads, d))
    for t in range(n):
        decay = np.exp(-np.exp(w[p + "A_log"]) * steps[t])
        state = state * decay[:, None, None] + (steps[t, :, None] * x[t])[..., None] * write[t][:, None, :]
        out[t] = (state * read[t][:, None, :]).sum(-1) + w[p + "D"][:, None] * x[t]
    states["recurrent_states.0"] = state[None]
    states["conv_states.0"] = padded[-4:].T[None]
    y = (out.reshape(n, width) * silu(gate)).reshape(n, groups, -1)
    y = rms(y, 1.0, c["layer_norm_epsilon"]).reshape(n, width) * w[p + "norm.weight"]
    return y @ w[p + "out_proj.weight"].T


def relu2(x):
    return np.maximum(x, 0) ** 2


def nemotron_h(c, w, ids, states=None):
    n, d, kv = len(ids), c["head_dim"], c["num_key_value_heads"]
    eps = c["layer_norm_epsilon"]
    x = w["backbone.embeddings.weight"][ids]
    for i, kind in enumerate(c["layers_block_type"]):
        p = f"backbone.layers.{i}.mixer."
        h = rms(x, w[f"backbone.layers.{i}.norm.weight"], eps)
        if kind == "linear_attention":
            kept = {}
            x = x + mamba2(c, w, p, h, kept)
            if states is not None:
                states.update({f"layer{i}.{k}": v.astype(np.float32) for k, v in kept.items()})
        elif kind == "full_attention":
            q, k, v = ((h @ w[p + f"{s}_proj.weight"].T).reshape(n, -1, d) for s in "qkv")
            x = x + attend(q, k, v, d ** -0.5).reshape(n, -1) @ w[p + "o_proj.weight"].T
        elif kind == "mlp":
            x = x + relu2(h @ w[p + "up_proj.weight"].T) @ w[p + "down_proj.weight"].T
        else:
            scores = sigmoid(h @ w[p + "gate.weight"].T)
            chosen = best(scores + w[p + "gate.e_score_correction_bias"], c["num_experts_per_tok"])
            weights = np.take_along_axis(scores, chosen, -1)
            weights = weights / weights.sum(-1, keepdims=True) * c["routed_scaling_factor"]
            network = lambda name, row: relu2(row @ w[p + name + "up_proj.weight"].T) @ w[p + name + "down_proj.weight"].T
            x = x + mixture(h, chosen, weights, lambda e, row: network(f"experts.{e}.", row)) \
                + network("shared_experts.", h)
    return rms(x, w["backbone.norm_f.weight"], eps) @ w["lm_head.weight"].T


def nemotron_h_weights(c, m):
    heads, d, kv = c["mamba_num_heads"], c["head_dim"], c["num_key_value_heads"]
    width, groups = heads * c["mamba_head_dim"], c["n_groups"] * c["ssm_state_size"]
    m.matrix("backbone.embeddings.weight", VOCAB, WIDTH, spread=3)
    m.matrix("lm_head.weight", VOCAB, WIDTH, spread=3)
    m.vector("backbone.norm_f.weight", WIDTH)

    def network(name, size):
        m.matrix(name + "up_proj.weight", size, WIDTH)
        m.matrix(name + "down_proj.weight", WIDTH, size)

    for i, kind in enumerate(c["layers_block_type"]):
        p = f"backbone.layers.{i}.mixer."
        m.vector(f"backbone.layers.{i}.norm.weight", WIDTH)
        if kind == "linear_attention":
            m.matrix(p + "in_proj.weight", 2 * width + 2 * groups + heads, WIDTH)
            m.matrix(p + "conv1d.weight", width + 2 * groups, 1, 4)
            m.vector(p + "conv1d.bias", width + 2 * groups, 0.0)
            # Decays as trained ones': from a few tokens to hundreds.
            m.vector(p + "A_log", heads, 0.5, 0.8)
            m.vector(p + "dt_bias", heads, -3.5, 1.0)
            m.vector(p + "D", heads)
            m.vector(p + "norm.weight", width)
            m.matrix(p + "out_proj.weight", WIDTH, width)
        elif kind == "full_attention":
            for s, n in (("q", HEADS), ("k", kv), ("v", kv)):
                m.matrix(p + f"{s}_proj.weight", n * d, WIDTH)
            m.matrix(p + "o_proj.weight", WIDTH, HEADS * d)
        elif kind == "mlp":
            network(p, c["intermediate_size"])
        else:
            m.matrix(p + "gate.weight", c["n_routed_experts"], WIDTH)
            m.vector(p + "gate.e_score_correction_bias", c["n_routed_experts"], 0.0)
            for e in range(c["n_routed_experts"]):
                network(p + f"experts.{e}.", c["moe_intermediate_size"])
            network(p + "shared_experts.", c["moe_shared_expert_intermediate_size"])


# --- LFM2 with experts -------------------------------------------------------
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


class Maker:
    def __init__(self, rng):
        self.rng, self.w = rng, {}

    def matrix(self, name, *shape, spread=1.5):
        values = self.rng.standard_normal(shape) * spread / math.sqrt(shape[-1])
        self.w[name] = values.astype(np.float32)

    def vector(self, name, n, center=1.0, spread=0.2):
        self.w[name] = (center + spread * self.rng.standard_normal(n)).astype(np.float32)


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


def configuration(model_class, family, layers, **more):
    c = {"architectures": [model_class], "model_type": family, "hidden_size": WIDTH,
         "num_hidden_layers": layers, "num_attention_heads": HEADS, "vocab_size": VOCAB,
         "max_position_embeddings": 128, "rms_norm_eps": 1e-6}
    c.update(more)
    return c


MODELS = {
    "gemma4_moe": (gemma4, gemma4_weights, configuration(
        "Gemma4ForCausalLM", "gemma4_text", 3, intermediate_size=24, num_key_value_heads=2, head_dim=16,
        global_head_dim=32, num_global_key_value_heads=1, attention_k_eq_v=True, num_kv_shared_layers=0,
        layer_types=["sliding_attention", "full_attention", "full_attention"], sliding_window=7,
        hidden_activation="gelu_pytorch_tanh", hidden_size_per_layer_input=0, final_logit_softcapping=30.0,
        enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=16,
        tie_word_embeddings=True,
        rope_parameters={"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                                            "rope_theta": 1e6},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})),
    "minimax_m2": (minimax_m2, minimax_m2_weights, configuration(
        "MiniMaxM2ForCausalLM", "minimax_m2", 2, intermediate_size=16, num_key_value_heads=2, head_dim=16,
        rotary_dim=8, rope_theta=1e4, num_local_experts=6, num_experts_per_tok=2, use_qk_norm=True,
        scoring_func="sigmoid", use_routing_bias=True, tie_word_embeddings=False)),
    "deepseek_v2": (deepseek_v2, deepseek_v2_weights, configuration(
        "DeepseekV2ForCausalLM", "deepseek_v2", 2, intermediate_size=24, num_key_value_heads=HEADS,
        q_lora_rank=None, kv_lora_rank=16, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10,
        rope_theta=1e4, first_k_dense_replace=1, n_routed_experts=8, n_shared_experts=2,
        num_experts_per_tok=2, moe_intermediate_size=8, n_group=4, topk_group=2, norm_topk_prob=False,
        topk_method="group_limited_greedy", routed_scaling_factor=1.5, tie_word_embeddings=False)),
    "nemotron_h": (nemotron_h, nemotron_h_weights, configuration(
        "NemotronHForCausalLM", "nemotron_h", 5, intermediate_size=24, num_key_value_heads=2, head_dim=8,
        layers_block_type=["linear_attention", "moe", "linear_attention", "full_attention", "mlp"],
        mlp_hidden_act="relu2", layer_norm_epsilon=1e-5, mamba_num_heads=4, mamba_head_dim=8, n_groups=2,
        ssm_state_size=8, conv_kernel=4, use_conv_bias=True, n_routed_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=12, n_shared_experts=1, moe_shared_expert_intermediate_size=16, n_group=1,
        topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5, max_position_embeddings=512,
        tie_word_embeddings=False)),
    "lfm2_moe": (lfm2_moe, lfm2_moe_weights, configuration(
        "Lfm2MoeForCausalLM", "lfm2_moe", 3, intermediate_size=24, num_key_value_heads=2, norm_eps=1e-5,
        layer_types=["conv", "full_attention", "conv"], conv_L_cache=3, conv_bias=False, rope_theta=1e6,
        num_dense_layers=1, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, norm_topk_prob=True,
        use_expert_bias=True, routed_scaling_factor=1.0, tie_word_embeddings=True)),
    "mistral4": (deepseek_v2, deepseek_v2_weights, configuration(
        "Mistral4ForCausalLM", "mistral4", 2, intermediate_size=24, num_key_value_heads=HEADS,
        q_lora_rank=20, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=10,
        first_k_dense_replace=0, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2,
        moe_intermediate_size=8, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.0,
        rope_interleave=True, tie_word_embeddings=False,
        rope_parameters={"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "beta_fast": 2.0, "beta_slow": 0.5,
                         "original_max_position_embeddings": 16, "mscale": 1.0, "mscale_all_dim": 1.0,
                         "llama_4_scaling_beta": 0.1, "partial_rotary_factor": 0.5})),
}


def main(root, names):
    for seed, (name, (forward, make_weights, c)) in enumerate(MODELS.items()):
        if names and name not in names:
            continue
        rng = np.random.default_rng(seed + 100)
        maker = Maker(rng)
        make_weights(c, maker)
        w = {k: v.astype(np.float64) for k, v in maker.w.items()}
        tokens = TOKENS_OF.get(name, TOKENS)
        ids = rng.integers(0, VOCAB, tokens).tolist()
        logits = forward(c, w, ids)
        all_ids = list(ids)
        for _ in range(GREEDY):
            all_ids.append(int(forward(c, w, all_ids)[-1].argmax()))
        path = os.path.join(root, name)
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "config.json"), "w") as f:
            json.dump(c, f, indent=1)
            f.write("\n")
        write_safetensors(os.path.join(path, "model.safetensors"), maker.w)
        write_safetensors(os.path.join(path, "reference.safetensors"), {
            "input_ids": np.array(ids, np.int32),
            "logits": logits.astype(np.float32),
            "greedy": np.array(all_ids[tokens:], np.int32),
            "last_logits": forward(c, w, all_ids)[-1].astype(np.float32)})
        if name in TOKENS_OF:
            states = {}
            forward(c, w, ids, states)
            write_safetensors(os.path.join(path, "states.safetensors"), states)
        print(f"{name}: logits deviate by {logits.std():.2f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
