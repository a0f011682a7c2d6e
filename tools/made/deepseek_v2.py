"""DeepSeek V2 and Mistral 4, in the form that makes every head's keys."""

import math

import numpy as np

from made.parts import (
    HEADS, VOCAB, WIDTH, attend, best, frequencies, head, mixture, rms, rotate, softmax,
    swiglu)
from made.rotary import rotary


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
