"""The model families of the golden files: our description, the transformers class, and the renaming of parameters.

Each function gives (description, class, configuration, renaming, names of gradients that vanish by an invariance).
"""

import re

import torch
from transformers import (
    Gemma3ForCausalLM, Gemma3TextConfig, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
    Olmo2Config, Olmo2ForCausalLM, Qwen3Config, Qwen3ForCausalLM,
)  # fmt: skip

import schema

NONE = dict(kind="none")
ATTENTION = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "o_proj", "q_norm": "q_norm", "k_norm": "k_norm"}
PRE = {"attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm"}
POST = {"attention_post_norm": "post_attention_layernorm", "mlp_post_norm": "post_feedforward_layernorm"}
SANDWICH = {"attention_norm": "input_layernorm", "mlp_norm": "pre_feedforward_layernorm"} | POST


def _llama_like(norms, tied):
    """Renaming for the families that descend from Llama's module names."""

    def name(ours):
        top = {"embedding.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight"}
        top["output.weight"] = "lm_head.weight"
        if ours in top:
            return top[ours]
        layer, part, rest = re.fullmatch(r"blocks\.(\d+)\.(\w+)\.(.+)", ours).groups()
        if part == "attention":
            module, _, kind = rest.rpartition(".")
            return f"model.layers.{layer}.self_attn.{ATTENTION[module]}.{kind}"
        if part == "mlp":
            module, _, kind = rest.rpartition(".")
            return f"model.layers.{layer}.mlp.{module}_proj.{kind}"
        return f"model.layers.{layer}.{norms[part]}.{rest}"

    def rename(parameters):
        assert ("output.weight" in parameters) != tied
        return {name(ours): value for ours, value in parameters.items()}

    return rename


def _config(model, **extra):
    return dict(
        vocab_size=model["vocabulary"], hidden_size=model["width"], intermediate_size=model["mlp"]["width"],
        num_hidden_layers=model["layers"], num_attention_heads=model["heads"], num_key_value_heads=model["kv_heads"],
        head_dim=model["head_width"], max_position_embeddings=model["context"], rms_norm_eps=model["norm"]["eps"],
        tie_word_embeddings=model["output"]["tied"], pad_token_id=None, bos_token_id=None, eos_token_id=None, **extra,
    )  # fmt: skip


def _default_rope(base):
    return dict(rope_type="default", rope_theta=base)


def gpt2():
    model = schema.decoder(
        context=24, layers=2, width=40, heads=4, kv_heads=4, head_width=10,
        norm=schema.norm("layernorm", 1e-5, "weight_then_cast", bias=True),
        mlp=dict(kind="gelu_tanh", width=80, bias=True), position=dict(kind="learned"),
        attention=schema.attention(NONE, bias="all"), output=dict(tied=True, softcap="none"),
    )  # fmt: skip
    config = GPT2Config(
        vocab_size=61, n_positions=24, n_embd=40, n_layer=2, n_head=4, n_inner=80, layer_norm_epsilon=1e-5,
        activation_function="gelu_new", bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    # Without positions in the scores and without a QK-norm, a key bias adds the same to every score of a row.
    zero = [f"blocks.{i}.attention.k.bias" for i in range(2)]
    return model, GPT2LMHeadModel, config, _gpt2_names, zero


def _gpt2_names(parameters):
    names = {"embedding.weight": "wte.weight", "position.weight": "wpe.weight"}
    theirs = {f"transformer.{name}": parameters[ours] for ours, name in names.items()}
    modules = {"attention_norm": "ln_1", "mlp_norm": "ln_2", "attention.out": "attn.c_proj", "mlp.up": "mlp.c_fc",
               "mlp.down": "mlp.c_proj"}  # fmt: skip
    for kind in ("weight", "bias"):
        theirs[f"transformer.ln_f.{kind}"] = parameters[f"norm.{kind}"]
        for i in range(2):
            joined = torch.cat([parameters[f"blocks.{i}.attention.{part}.{kind}"] for part in "qkv"])
            values = {name: parameters[f"blocks.{i}.{ours}.{kind}"] for ours, name in modules.items()}
            for name, value in (values | {"attn.c_attn": joined}).items():
                # T: their Conv1D holds [in, out]
                theirs[f"transformer.h.{i}.{name}.{kind}"] = value.T if value.dim() == 2 else value
    return theirs


def llama3():
    # Rotary wavelengths run from 6.3 to 20,000: with these limits some are kept, some blended, some divided.
    scaling = dict(kind="llama3", factor=8.0, low=1.0, high=4.0, original=64)
    model = schema.decoder(
        layers=2, width=40, heads=4, kv_heads=2, head_width=16,
        norm=schema.norm("rmsnorm", 1e-5, "cast_then_weight"), mlp=dict(kind="swiglu", width=72, bias=False),
        position=schema.rope(16, scaling=scaling), attention=schema.attention(NONE), context=128,
    )  # fmt: skip
    rope = dict(
        rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=64,
    )  # fmt: skip
    config = LlamaConfig(**_config(model, rope_parameters=rope, attention_bias=False, mlp_bias=False))
    return model, LlamaForCausalLM, config, _llama_like(PRE, tied=False), []


def qwen3():
    qk = schema.qk_norm("rmsnorm", "head", "shared", 1e-6, "cast_then_weight")
    model = schema.decoder(
        layers=2, width=40, heads=4, kv_heads=2, head_width=16,
        norm=schema.norm("rmsnorm", 1e-6, "cast_then_weight"), mlp=dict(kind="swiglu", width=72, bias=False),
        position=schema.rope(16, base=1000000.0), attention=schema.attention(qk),
        output=dict(tied=True, softcap="none"),
    )  # fmt: skip
    config = Qwen3Config(**_config(model, rope_parameters=_default_rope(1000000.0), attention_bias=False))
    return model, Qwen3ForCausalLM, config, _llama_like(PRE, tied=True), []


def olmo2():
    qk = schema.qk_norm("rmsnorm", "projection", "projection", 1e-6, "weight_then_cast")
    model = schema.decoder(
        layers=2, width=40, heads=4, kv_heads=2, head_width=16,
        norm=schema.norm("rmsnorm", 1e-6, "weight_then_cast", place="post"),
        mlp=dict(kind="swiglu", width=72, bias=False), position=schema.rope(16, base=500000.0),
        attention=schema.attention(qk),
    )  # fmt: skip
    config = Olmo2Config(**_config(model, rope_parameters=_default_rope(500000.0), attention_bias=False))
    return model, Olmo2ForCausalLM, config, _llama_like(POST, tied=False), []


def gemma3():
    qk = schema.qk_norm("rmsnorm", "head", "shared", 1e-6, "weight_then_cast", zero_centered=True)
    local, everywhere = schema.rope(8), schema.rope(8, base=1000000.0)
    model = schema.decoder(
        layers=7, width=40, heads=4, kv_heads=2, head_width=8,
        norm=schema.norm("rmsnorm", 1e-6, "weight_then_cast", place="sandwich", zero_centered=True),
        mlp=dict(kind="geglu_tanh", width=32, bias=False), position=everywhere,
        attention=schema.attention(qk, scale=dict(kind="constant", value=12**-0.5)),
        embedding=dict(scale=40**0.5), output=dict(tied=True, softcap="none"),
        variants={"local": dict(window=6, position=local), "global": dict(position=everywhere)},
        pattern=["local"] * 5 + ["global"],
    )  # fmt: skip
    rope = dict(sliding_attention=_default_rope(10000.0), full_attention=_default_rope(1000000.0))
    config = Gemma3TextConfig(
        **_config(model, rope_parameters=rope, attention_bias=False),
        sliding_window=6, query_pre_attn_scalar=12, hidden_activation="gelu_pytorch_tanh",
    )  # fmt: skip
    return model, Gemma3ForCausalLM, config, _llama_like(SANDWICH, tied=True), []


FAMILIES = dict(gpt2=gpt2, llama3=llama3, qwen3=qwen3, olmo2=olmo2, gemma3=gemma3)
