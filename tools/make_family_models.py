"""Small random models of families for which no reference of another
implementation is at hand, with logits computed here: in double precision, with
numpy, written from the papers' and configurations' definitions and not from
hearth's code.

    python3 tools/make_family_models.py tests/data/models/made
"""

import math
import sys

import numpy as np

from made.files import write_model
from made.parts import HEADS, VOCAB, WIDTH, gelu_tanh, rms, silu
from made.rotary import rotary

KV_HEADS, MLP, LAYERS = 2, 48, 4


def rotate(x, inv_freq, factor):
    """x: [tokens, heads, head_dim]."""
    half = len(inv_freq)
    angle = np.arange(len(x))[:, None] * inv_freq
    cos, sin = (f(angle)[:, None, :] * factor for f in (np.cos, np.sin))
    out = x.copy()
    a, b = x[..., :half], x[..., half:2 * half]
    out[..., :half] = a * cos - b * sin
    out[..., half:2 * half] = b * cos + a * sin
    return out


def forward(c, w, ids):
    family = c["model_type"]
    gemma, olmo = family == "gemma2", family == "olmo2"
    head_dim = c.get("head_dim", WIDTH // HEADS)
    eps = c["rms_norm_eps"]
    norm = lambda x, name: rms(x, w[name] + (1 if gemma else 0), eps)
    act = gelu_tanh if gemma else silu
    scale = head_dim ** -0.5
    if gemma:
        scale = c["query_pre_attn_scalar"] ** -0.5
    scale = c.get("attention_multiplier", scale)
    residual = c.get("residual_multiplier", 1.0)
    n = len(ids)
    inv_freq, factor = rotary(c, head_dim, n)
    x = w["model.embed_tokens.weight"][ids] * c.get("embedding_multiplier", 1.0)
    if gemma:
        x = x * math.sqrt(WIDTH)
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        h = x if olmo else norm(x, p + "input_layernorm.weight")
        sizes = [HEADS * head_dim, KV_HEADS * head_dim, KV_HEADS * head_dim]
        if family == "phi3":
            q, k, v = np.split(h @ w[p + "self_attn.qkv_proj.weight"].T, np.cumsum(sizes)[:2], axis=-1)
        else:
            q, k, v = (h @ w[p + f"self_attn.{s}_proj.weight"].T for s in "qkv")
        if olmo:
            q = norm(q, p + "self_attn.q_norm.weight")
            k = norm(k, p + "self_attn.k_norm.weight")
        q = rotate(q.reshape(n, HEADS, head_dim), inv_freq, factor)
        k = rotate(k.reshape(n, KV_HEADS, head_dim), inv_freq, factor)
        v = v.reshape(n, KV_HEADS, head_dim)
        window = 0
        if gemma and i % 2 == 0:
            window = c["sliding_window"]
        out = np.zeros((n, HEADS, head_dim))
        for head in range(HEADS):
            kv = head // (HEADS // KV_HEADS)
            score = q[:, head] @ k[:, kv].T * scale
            if gemma:
                cap = c["attn_logit_softcapping"]
                score = np.tanh(score / cap) * cap
            hidden = (distance < 0) | ((distance >= window) if window else False)
            score = np.where(hidden, -np.inf, score)
            weight = np.exp(score - score.max(-1, keepdims=True))
            out[:, head] = weight / weight.sum(-1, keepdims=True) @ v[:, kv]
        h = out.reshape(n, -1) @ w[p + "self_attn.o_proj.weight"].T
        if gemma or olmo:
            h = norm(h, p + "post_attention_layernorm.weight")
        x = x + h * residual
        h = x
        if gemma:
            h = norm(x, p + "pre_feedforward_layernorm.weight")
        elif not olmo:
            h = norm(x, p + "post_attention_layernorm.weight")
        if family == "phi3":
            gate, up = np.split(h @ w[p + "mlp.gate_up_proj.weight"].T, 2, axis=-1)
        else:
            gate, up = (h @ w[p + f"mlp.{s}_proj.weight"].T for s in ("gate", "up"))
        h = (act(gate) * up) @ w[p + "mlp.down_proj.weight"].T
        if gemma or olmo:
            h = norm(h, p + "post_feedforward_layernorm.weight")
        x = x + h * residual
    head = w["model.embed_tokens.weight"] if c["tie_word_embeddings"] else w["lm_head.weight"]
    logits = norm(x, "model.norm.weight") @ head.T / c.get("logits_scaling", 1.0)
    if gemma:
        cap = c["final_logit_softcapping"]
        logits = np.tanh(logits / cap) * cap
    return logits


def make_weights(c, rng):
    head_dim = c.get("head_dim", WIDTH // HEADS)
    q, kv = HEADS * head_dim, KV_HEADS * head_dim
    family = c["model_type"]
    w = {}

    def matrix(name, n_out, n_in, spread=1.5):
        w[name + ".weight"] = (rng.standard_normal((n_out, n_in)) * spread / math.sqrt(n_in)).astype(np.float32)

    def norm(name, n=WIDTH):
        center = 0.0 if family == "gemma2" else 1.0
        w[name + ".weight"] = (center + 0.2 * rng.standard_normal(n)).astype(np.float32)

    matrix("model.embed_tokens", VOCAB, WIDTH, 3.0)
    norm("model.norm")
    if not c["tie_word_embeddings"]:
        matrix("lm_head", VOCAB, WIDTH, 3.0)
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        if family != "olmo2":
            norm(p + "input_layernorm")
        norm(p + "post_attention_layernorm")
        if family == "gemma2":
            norm(p + "pre_feedforward_layernorm")
        if family in ("gemma2", "olmo2"):
            norm(p + "post_feedforward_layernorm")
        if family == "olmo2":
            norm(p + "self_attn.q_norm", q)
            norm(p + "self_attn.k_norm", kv)
        if family == "phi3":
            matrix(p + "self_attn.qkv_proj", q + 2 * kv, WIDTH)
            matrix(p + "mlp.gate_up_proj", 2 * MLP, WIDTH)
        else:
            for s, rows in (("q", q), ("k", kv), ("v", kv)):
                matrix(p + f"self_attn.{s}_proj", rows, WIDTH)
            matrix(p + "mlp.gate_proj", MLP, WIDTH)
            matrix(p + "mlp.up_proj", MLP, WIDTH)
        matrix(p + "self_attn.o_proj", WIDTH, q)
        matrix(p + "mlp.down_proj", WIDTH, MLP)
    return w


def configuration(model_class, family, **more):
    c = {"architectures": [model_class], "model_type": family, "hidden_size": WIDTH,
         "intermediate_size": MLP, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
         "num_key_value_heads": KV_HEADS, "vocab_size": VOCAB, "max_position_embeddings": 128,
         "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False}
    c.update(more)
    return c


MODELS = {
    "gemma2": configuration(
        "Gemma2ForCausalLM", "gemma2", head_dim=12, hidden_activation="gelu_pytorch_tanh",
        query_pre_attn_scalar=20, sliding_window=7, attn_logit_softcapping=4.0,
        final_logit_softcapping=6.0, tie_word_embeddings=True),
    "olmo2": configuration("Olmo2ForCausalLM", "olmo2", attention_bias=False),
    "granite": configuration(
        "GraniteForCausalLM", "granite", embedding_multiplier=3.0, attention_multiplier=0.2,
        residual_multiplier=0.4, logits_scaling=2.5, tie_word_embeddings=True),
    "llama_yarn": configuration(
        "LlamaForCausalLM", "llama",
        rope_scaling={"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16,
                      "beta_fast": 2.0, "beta_slow": 0.5}),
    "phi3_longrope": configuration(
        "Phi3ForCausalLM", "phi3", head_dim=8, partial_rotary_factor=0.75, original_max_position_embeddings=32,
        rope_scaling={"rope_type": "longrope", "short_factor": [1.0, 1.1, 1.3],
                      "long_factor": [1.2, 2.0, 5.0]}),
}


def main(root):
    for seed, (name, c) in enumerate(MODELS.items()):
        rng = np.random.default_rng(seed + 1)
        write_model(root, name, c, make_weights(c, rng), forward, rng)


if __name__ == "__main__":
    main(sys.argv[1])
