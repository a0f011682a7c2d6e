"""Nemotron-H.

transformers' own scan raises time steps to time_step_min, which is meant for
the start of training and which the authors' kernels do not know; so its logits
differ from its own run token by token. Here nothing is raised. (With it, this
module and transformers agree within 1.2e-5.)
"""

import numpy as np

from made.parts import HEADS, VOCAB, WIDTH, attend, best, mixture, rms, sigmoid, silu


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
