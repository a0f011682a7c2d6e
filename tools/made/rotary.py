"""Rotary frequencies of a config.json."""

import math

import numpy as np


def rotary(c, head_dim, n_tokens):
    """inv_freq and the factor of cos and sin."""
    settings = c.get("rope_scaling") or {}
    dim = int(head_dim * c.get("partial_rotary_factor", 1))
    base = c.get("rope_theta", 10000.0)
    i = np.arange(0, dim, 2) / dim
    plain = base ** -i
    kind = settings.get("rope_type", "default")
    if kind == "yarn":
        factor, original = settings["factor"], settings["original_max_position_embeddings"]

        def index(turns):
            return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

        low = max(math.floor(index(settings.get("beta_fast", 32))), 0)
        high = min(math.ceil(index(settings.get("beta_slow", 1))), dim - 1)
        ramp = np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0, 1)
        return plain / factor * ramp + plain * (1 - ramp), 0.1 * math.log(factor) + 1
    if kind == "longrope":
        original = c["original_max_position_embeddings"]
        stretch = c["max_position_embeddings"] / original
        # The context that hearth is opened with decides, not the prompt.
        factors = settings["long_factor" if stretch > 1 else "short_factor"]
        return plain / np.array(factors), math.sqrt(1 + math.log(stretch) / math.log(original))
    return plain, 1.0
