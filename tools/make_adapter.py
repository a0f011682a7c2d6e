#!/usr/bin/env python3
"""Write a LoRA adapter of random numbers for stories260K.gguf.

  tools/make_adapter.py OUT.gguf [SEED]

Of every linear layer, of rank 3 and alpha 6, as F16, in the form that llama.cpp
reads. Standard library only; the bytes are the same on every run.
tests/data/models/lora has one and what llama.cpp computed with it
(docs/decisions/0160-adapters-beside-the-weights.md).
"""
import random
import struct
import sys

D, KV, M, LAYERS, RANK, ALPHA = 64, 32, 172, 5, 3, 6.0


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def main():
    out, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = random.Random(seed)
    entries = [("general.type", 8, text("adapter")), ("general.architecture", 8, text("llama")),
               ("adapter.type", 8, text("lora")), ("adapter.lora.alpha", 6, struct.pack("<f", ALPHA))]
    shapes = {"attn_q": (D, D), "attn_k": (KV, D), "attn_v": (KV, D), "attn_output": (D, D),
              "ffn_gate": (M, D), "ffn_up": (M, D), "ffn_down": (D, M)}
    tensors = []
    for layer in range(LAYERS):
        for name, (n_out, n_in) in shapes.items():
            tensors.append((f"blk.{layer}.{name}.weight.lora_a", (RANK, n_in), 1 / n_in ** 0.5))
            tensors.append((f"blk.{layer}.{name}.weight.lora_b", (n_out, RANK), 0.03))
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries))
    for key, kind, value in entries:
        head += text(key) + struct.pack("<I", kind) + value
    data = b""
    for name, (rows, columns), deviation in tensors:
        head += text(name) + struct.pack("<IQQIQ", 2, columns, rows, 1, len(data))
        data += b"".join(struct.pack("<e", rng.gauss(0, deviation)) for _ in range(rows * columns))
        data += b"\0" * (-len(data) % 32)
    with open(out, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32) + data)


main()
