"""The files of a small model: weights, configuration and reference."""

import json
import os
import struct

import numpy as np

from made.parts import VOCAB

TOKENS, GREEDY = 40, 8


def write_safetensors(path, tensors):
    header, data = {}, b""
    kinds = {"float32": "F32", "int32": "I32"}
    for name, array in tensors.items():
        array = np.ascontiguousarray(array)
        raw = array.tobytes()
        header[name] = {"dtype": kinds[str(array.dtype)], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def write_model(root, name, c, weights, forward, rng, tokens=TOKENS):
    """The folder root/name, with the logits of random ids and what follows them.
    The path and the ids."""
    w = {k: v.astype(np.float64) for k, v in weights.items()}
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
    write_safetensors(os.path.join(path, "model.safetensors"), weights)
    write_safetensors(os.path.join(path, "reference.safetensors"), {
        "input_ids": np.array(ids, np.int32),
        "logits": logits.astype(np.float32),
        "greedy": np.array(all_ids[tokens:], np.int32),
        "last_logits": forward(c, w, all_ids)[-1].astype(np.float32)})
    print(f"{name}: logits deviate by {logits.std():.2f}")
    return path, ids
