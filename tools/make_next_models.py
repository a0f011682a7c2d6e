"""More small random models, as make_family_models.py makes them: families of
2026 for which no reference of another implementation is at hand. Logits are
computed here, in double precision, with numpy, from the definitions.

    python3 tools/make_next_models.py tests/data/models/made [NAME ...]
"""

import os
import sys

import numpy as np

from made.deepseek_v2 import deepseek_v2, deepseek_v2_weights
from made.files import TOKENS, write_model, write_safetensors
from made.gemma4 import gemma4, gemma4_weights
from made.lfm2_moe import lfm2_moe, lfm2_moe_weights
from made.minimax_m2 import minimax_m2, minimax_m2_weights
from made.nemotron_h import nemotron_h, nemotron_h_weights
from made.parts import HEADS, Maker, VOCAB, WIDTH

# Of models with recurrent states, which tests cut into steps.
TOKENS_OF = {"nemotron_h": 160}


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
        path, ids = write_model(root, name, c, maker.w, forward, rng, TOKENS_OF.get(name, TOKENS))
        if name in TOKENS_OF:
            states = {}
            forward(c, {k: v.astype(np.float64) for k, v in maker.w.items()}, ids, states)
            write_safetensors(os.path.join(path, "states.safetensors"), states)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
