#!/usr/bin/env python3
"""Write the smallest well-formed models as fuzz seeds.

  tools/make_model_seeds.py          # into fuzz/corpus/{adapter,gguf,heads,safetensors,tinygpt}

Standard library only; the bytes are the same on every run.
"""
import json
import struct
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "fuzz" / "corpus"
L, C, H, KV, M, V, T = 1, 4, 2, 1, 4, 4, 2  # layers, width, heads, KV heads, MLP, vocabulary, context


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def gguf(arch, entries, tensors, version=3):
    """entries: (key, type, bytes); tensors: (name, shape outermost first)."""
    head = struct.pack("<4sIQQ", b"GGUF", version, len(tensors), len(entries))
    for key, kind, value in entries:
        head += text(key) + struct.pack("<I", kind) + value
    data = b""
    for name, shape in tensors:
        n = 1
        for d in shape:
            n *= d
        head += text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", d) for d in reversed(shape)) + struct.pack("<IQ", 0, len(data))
        data += struct.pack("<%df" % n, *([0.5] * n))
        data += b"\0" * (-len(data) % 32)
    return head + b"\0" * (-len(head) % 32) + data


def gguf_model(arch, biases, own_head, extra=(), more=()):
    u32 = lambda k, v: (arch + "." + k, 4, struct.pack("<I", v))
    entries = [("general.architecture", 8, text(arch)), u32("block_count", L), u32("context_length", T),
               u32("embedding_length", C), u32("feed_forward_length", M), u32("attention.head_count", H),
               u32("attention.head_count_kv", KV),
               ("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 2) + text("a") + text("b")),
               ("tokenizer.ggml.scores", 9, struct.pack("<IQ2f", 6, 2, 0, -1)),
               ("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 1)), *extra]
    kv = KV * C // H
    tensors = [("token_embd.weight", (V, C)), ("output_norm.weight", (C,)), *more]
    for name, out, inp in (("attn_q", C, C), ("attn_k", kv, C), ("attn_v", kv, C), ("attn_output", C, C),
                           ("ffn_gate", M, C), ("ffn_up", M, C), ("ffn_down", C, M)):
        tensors.append((f"blk.0.{name}.weight", (out, inp)))
        if biases and name in ("attn_q", "attn_k", "attn_v"):
            tensors.append((f"blk.0.{name}.bias", (out,)))
    tensors += [("blk.0.attn_norm.weight", (C,)), ("blk.0.ffn_norm.weight", (C,))]
    if own_head:
        tensors.append(("output.weight", (V, C)))
    return gguf(arch, entries, tensors)


def gguf_mtp():
    """Two layers of gated attention, of which the last is a block for multi-token prediction."""
    u32 = lambda k, v: ("qwen35." + k, 4, struct.pack("<I", v))
    entries = [("general.architecture", 8, text("qwen35")), u32("block_count", 2), u32("context_length", T),
               u32("embedding_length", C), u32("feed_forward_length", M), u32("attention.head_count", H),
               u32("attention.head_count_kv", KV), u32("full_attention_interval", 1), u32("nextn_predict_layers", 1)]
    kv, d = KV * C // H, C // H
    tensors = [("token_embd.weight", (V, C)), ("output_norm.weight", (C,))]
    for layer in range(2):
        tensors += [(f"blk.{layer}.{name}.weight", shape) for name, shape in (
            ("attn_norm", (C,)), ("post_attention_norm", (C,)), ("attn_q_norm", (d,)), ("attn_k_norm", (d,)),
            ("attn_q", (2 * C, C)), ("attn_k", (kv, C)), ("attn_v", (kv, C)), ("attn_output", (C, C)),
            ("ffn_gate", (M, C)), ("ffn_up", (M, C)), ("ffn_down", (C, M)))]
    tensors += [(f"blk.1.nextn.{name}.weight", shape) for name, shape in (
        ("eh_proj", (C, 2 * C)), ("enorm", (C,)), ("hnorm", (C,)), ("shared_head_norm", (C,)))]
    return gguf("qwen35", entries, tensors)


def tinygpt(form):
    kv = KV * C // H
    shapes = {"token_embedding.weight": (V, C), "position_embedding.weight": (T, C), "ln_final.weight": (C,),
              "ln_final.bias": (C,)}
    for n in ("ln1", "ln2"):
        shapes |= {f"blocks.0.{n}.weight": (C,), f"blocks.0.{n}.bias": (C,)}
    for n, out, inp in (("attn.q_proj", C, C), ("attn.k_proj", kv, C), ("attn.v_proj", kv, C), ("attn.o_proj", C, C),
                        ("mlp.fc_in", M, C), ("mlp.fc_out", C, M)):
        shapes |= {f"blocks.0.{n}.weight": (out, inp), f"blocks.0.{n}.bias": (out,)}
    manifest, offset, blocks = [], 0, 0
    for name, shape in shapes.items():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        manifest.append({"name": name, "shape": shape, "floatOffset": offset})
        offset += n
        blocks += (n + 63) // 64
    head = {"config": {"layers": L, "dModel": C, "heads": H, "nKvHeads": KV, "dMlp": M, "ctx": T, "vocabSize": V},
            "manifest": manifest, "weightDtype": form.split("-")[0]}
    if form == "fp32-training":
        body = b"\0" * (12 * offset)
    else:
        head["includesOptimizerState"] = False
        body = b"\0" * (offset * (4 if form == "fp32" else 2))
    if form == "int4":
        head |= {"int4BlockSize": 64, "int4ScalesBytes": 2 * blocks, "int4PackedBytes": 32 * blocks}
        body = b"\0" * (34 * blocks)
    h = json.dumps(head, separators=(",", ":")).encode()
    return struct.pack("<4sII", b"TGPT", 2, len(h)) + h + struct.pack("<i", 0) + body


def heads(kind, n_heads, hidden):
    """For the shape that fuzz/heads_fuzz.cc names: 2 layers, width 3, 1 head, vocabulary 4, context 16."""
    d, vocab = 3, 4
    if kind == "medusa":
        entries = [e for k in range(n_heads) for e in (
            (f"heads.{k}.res.weight", (d, d)), (f"heads.{k}.res.bias", (d,)), (f"heads.{k}.out.weight", (vocab, d)))]
    else:
        entries = [("fc1.weight", (hidden, 2 * d)), ("fc2.weight", (d, hidden)), ("norm.weight", (d,)),
                   ("norm.bias", (d,)), ("out.weight", (vocab, d))]
    head = {"kind": kind, "numHeads": n_heads, "hiddenDim": hidden, "dModel": d, "vocabSize": vocab, "baseLayers": 2,
            "baseDModel": d, "baseHeads": 1, "baseCtx": 16, "entries": [{"name": n, "shape": s} for n, s in entries]}
    body = b"".join(struct.pack("<f", 0.5) * (s[0] * (s[1] if len(s) > 1 else 1)) for _, s in entries)
    h = json.dumps(head, separators=(",", ":")).encode()
    return struct.pack("<4sII", b"TGMH", 1, len(h)) + h + body


def adapter_pairs(names):
    """Of rank 2, for the shape that fuzz/adapter_fuzz.cc names: width 4, MLP width 6, vocabulary 3."""
    for name, n_out, n_in in names:
        yield name, (2, n_in), (n_out, 2)


def gguf_adapter():
    entries = [("general.type", 8, text("adapter")), ("general.architecture", 8, text("llama")),
               ("adapter.type", 8, text("lora")), ("adapter.lora.alpha", 6, struct.pack("<f", 4))]
    tensors = []
    for name, down, up in adapter_pairs((("blk.0.attn_q", 4, 4), ("blk.0.attn_output", 4, 4), ("blk.0.ffn_up", 6, 4),
                                         ("blk.0.ffn_down", 4, 6), ("output", 3, 4))):
        tensors += [(name + ".weight.lora_a", down), (name + ".weight.lora_b", up)]
    return gguf("llama", entries, tensors)


def peft_adapter():
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "use_rslora": True, "rank_pattern": {"v_proj": 2},
              "alpha_pattern": {"mlp.gate_up_proj": 8.5}}
    head, at = {}, 0
    for name, down, up in adapter_pairs((("self_attn.q_proj", 4, 4), ("self_attn.v_proj", 4, 4),
                                         ("mlp.gate_proj", 6, 4), ("mlp.down_proj", 4, 6))):
        for end, shape in (("A", down), ("B", up)):
            n = 4 * shape[0] * shape[1]
            head[f"base_model.model.model.layers.0.{name}.lora_{end}.weight"] = {
                "dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
            at += n
    h = json.dumps(head, separators=(",", ":")).encode()
    return json.dumps(config).encode() + b"\0" + struct.pack("<Q", len(h)) + h + struct.pack("<f", 0.5) * (at // 4)


def main():
    seeds = {"gguf/tiny-llama.gguf": gguf_model("llama", False, True),
             "gguf/tiny-qwen2.gguf": gguf_model("qwen2", True, False),
             "gguf/tiny-llama-rope.gguf": gguf_model(
                 "llama", False, False,
                 [("llama.rope.scaling.type", 8, text("linear")),
                  ("llama.rope.scaling.factor", 6, struct.pack("<f", 2))], [("rope_freqs.weight", (1,))])}
    seeds["gguf/tiny-qwen35-mtp.gguf"] = gguf_mtp()
    for form in ("fp32-training", "fp32", "fp16", "int4"):
        seeds[f"tinygpt/{form}.tinygpt"] = tinygpt(form)
    seeds["heads/medusa.heads"] = heads("medusa", 2, 3)
    seeds["heads/eagle.heads"] = heads("eagle", 1, 5)
    seeds["adapter/lora.gguf"] = gguf_adapter()
    seeds["adapter/lora.peft"] = peft_adapter()
    for name, data in seeds.items():
        path = CORPUS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main()
