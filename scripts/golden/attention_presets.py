"""The presets of QK-normalised attention that transformers implements: our description, its class, the renaming."""

import importlib

import torch

import schema
from attention import from_transformers

WIDTH, HEADS, KV_HEADS, HEAD = 32, 4, 2, 16


def _model(qk, *, width=WIDTH, kv_heads=KV_HEADS, norm_kind="rmsnorm", rope=None, **attention):
    return schema.decoder(
        width=width, heads=HEADS, kv_heads=kv_heads, head_width=HEAD,
        norm=schema.norm(norm_kind, qk["eps"], "weight_then_cast" if qk["cast"] == "none" else qk["cast"]),
        mlp=dict(kind="swiglu", width=48, bias=False),
        position=rope or schema.rope(HEAD), attention=schema.attention(qk, **attention),
    )  # fmt: skip


def _classes(module, prefix, config="Config", attention="Attention"):
    models = importlib.import_module(f"transformers.models.{module}.modeling_{module}")
    configs = importlib.import_module(f"transformers.models.{module}.configuration_{module}")
    return (
        getattr(models, prefix + attention),
        getattr(models, prefix + attention.replace("Attention", "RotaryEmbedding")),
        getattr(configs, prefix + config),
    )


def _config(model, rope_key=None, **extra):
    position = model["position"]
    rope = dict(rope_type="default", rope_theta=position["base"])
    if position["width"] != model["head_width"]:
        rope["partial_rotary_factor"] = position["width"] / model["head_width"]
    return dict(
        vocab_size=model["vocabulary"], hidden_size=model["width"], num_attention_heads=model["heads"],
        num_key_value_heads=model["kv_heads"], head_dim=model["head_width"], num_hidden_layers=1,
        rope_parameters={rope_key: rope} if rope_key else rope, max_position_embeddings=model["context"],
        bos_token_id=None, eos_token_id=None, pad_token_id=None, **extra,
    )  # fmt: skip


def usual(parameters, q_norm="q_norm", k_norm="k_norm"):
    names = dict(q="q_proj", k="k_proj", v="v_proj", out="o_proj", q_norm=q_norm, k_norm=k_norm)
    split = {key: key.partition(".") for key in parameters}
    return {f"{names[split[key][0]]}.{split[key][2]}": value for key, value in parameters.items()}


def qwen3():
    model = _model(schema.qk_norm("rmsnorm", "head", "shared", 1e-6, "cast_then_weight"), bias="all")
    attention, rotary, config = _classes("qwen3", "Qwen3")
    made = config(**_config(model, rms_norm_eps=1e-6, attention_bias=True))
    return model, from_transformers(attention, rotary, made, usual), ""


def olmo2():
    model = _model(schema.qk_norm("rmsnorm", "projection", "projection", 1e-6, "weight_then_cast"))
    attention, rotary, config = _classes("olmo2", "Olmo2")
    return model, from_transformers(attention, rotary, config(**_config(model, rms_norm_eps=1e-6)), usual), ""


def gemma3():
    qk = schema.qk_norm("rmsnorm", "head", "shared", 1e-6, "weight_then_cast", zero_centered=True)
    scale = dict(kind="constant", value=24**-0.5)  # their query_pre_attn_scalar, not the head width
    model = _model(qk, scale=scale, rope=schema.rope(HEAD, base=1000000.0))
    attention, rotary, config = _classes("gemma3", "Gemma3", config="TextConfig")
    made = config(
        **_config(model, rope_key="full_attention", rms_norm_eps=1e-6, query_pre_attn_scalar=24),
        layer_types=["full_attention"],
    )

    class Global(rotary):
        def forward(self, x, positions):
            return super().forward(x, positions, "full_attention")

    return model, from_transformers(attention, Global, made, usual), ""


def cohere():
    qk = schema.qk_norm("layernorm", "head", "per_head", 1e-5, "weight_then_cast")
    model = _model(qk, norm_kind="layernorm", bias="all", rope=schema.rope(HEAD, pairing="interleaved"))
    attention, rotary, config = _classes("cohere", "Cohere")
    made = config(**_config(model, layer_norm_eps=1e-5, use_qk_norm=True, attention_bias=True))
    return model, from_transformers(attention, rotary, made, usual), ""


def stablelm2():
    qk = schema.qk_norm("layernorm", "head", "per_head", 1e-5, "weight_then_cast")
    model = _model(qk, width=HEADS * HEAD, norm_kind="layernorm", bias="qkv", rope=schema.rope(HEAD // 4))
    attention, rotary, config = _classes("stablelm", "StableLm")
    made = config(**_config(model, layer_norm_eps=1e-5, use_qkv_bias=True, qk_layernorm=True))

    def rename(parameters):
        heads = {key: value for key, value in parameters.items() if "norm" in key}
        theirs = usual({key: value for key, value in parameters.items() if key not in heads})
        for key, value in heads.items():
            theirs |= {f"{key[0]}_layernorm.norms.{h}.weight": value[h] for h in range(len(value))}
        return theirs

    return model, from_transformers(attention, rotary, made, rename), ""


def chameleon():
    # The eps of its norm is a constant in the class; the weight's product and the bias's sum are rounded apart.
    qk = schema.qk_norm("layernorm", "head", "per_head", 1e-5, "cast_then_weight", bias=True)
    model = _model(qk, width=HEADS * HEAD, bias="all")
    attention, rotary, config = _classes("chameleon", "Chameleon")
    made = config(**_config(model, attention_bias=True))
    return model, from_transformers(attention, rotary, made, usual), ""


def persimmon():
    qk = schema.qk_norm("layernorm", "head", "shared", 1e-5, "weight_then_cast", bias=True)
    model = _model(
        qk, width=HEADS * HEAD, kv_heads=HEADS, norm_kind="layernorm", bias="all", rope=schema.rope(HEAD // 2)
    )
    attention, rotary, config = _classes("persimmon", "Persimmon")
    made = config(**_config(model, layer_norm_eps=1e-5, qk_layernorm=True))

    def rename(parameters):
        theirs = {f"dense.{kind}": parameters[f"out.{kind}"] for kind in ("weight", "bias")}
        for kind in ("weight", "bias"):
            parts = [parameters[f"{part}.{kind}"].unflatten(0, (HEADS, HEAD)) for part in "qkv"]
            theirs[f"query_key_value.{kind}"] = torch.stack(parts, 1).flatten(0, 2)  # q, k, v of head 0, of head 1, ...
            theirs |= {f"{part}_layernorm.{kind}": parameters[f"{part}_norm.{kind}"] for part in "qk"}
        return theirs

    return model, from_transformers(attention, rotary, made, rename), ""


def hunyuan():
    qk = schema.qk_norm("rmsnorm", "head", "shared", 1e-5, "cast_then_weight", rope="after")
    model = _model(qk, bias="all")
    attention, rotary, config = _classes("hunyuan_v1_dense", "HunYuanDenseV1")
    made = config(**_config(model, rms_norm_eps=1e-5, attention_bias=True))
    return (
        model,
        from_transformers(attention, rotary, made, lambda ours: usual(ours, "query_layernorm", "key_layernorm")),
        "",
    )


def minimax_m2():
    qk = schema.qk_norm("rmsnorm", "projection", "projection", 1e-6, "cast_then_weight")
    model = _model(qk, rope=schema.rope(HEAD // 2))
    attention, rotary, config = _classes("minimax_m2", "MiniMaxM2")
    return model, from_transformers(attention, rotary, config(**_config(model, rms_norm_eps=1e-6)), usual), ""


def llama4():
    qk = schema.qk_norm("rmsnorm", "head", "none", 1e-5, "weight_then_cast", rope="after")
    model = _model(qk, bias="all", rope=schema.rope(HEAD, pairing="interleaved"))
    attention, rotary, config = _classes("llama4", "Llama4Text")
    made = config(**_config(model, rms_norm_eps=1e-5, use_qk_norm=True, attention_bias=True), no_rope_layers=[1])
    return model, from_transformers(attention, rotary, made, usual), ""


def nanochat():
    """Its rotary turns the other way: with the halves of each head's rows swapped, ours gives the same scores.
    transformers leaves the factor 1.2 of nanochat's own q and k out; it is put back through the scale."""
    factor = 1.44 * HEAD**-0.5
    qk = schema.qk_norm("rmsnorm", "head", "none", 1e-6, "weight_then_cast", rope="after")
    model = _model(qk, scale=dict(kind="constant", value=factor))
    attention, rotary, config = _classes("nanochat", "NanoChat")

    class Scaled(attention):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.scaling = factor

    def rename(parameters):
        turned = ("q.weight", "k.weight")
        swapped = {key: parameters[key].unflatten(0, (-1, 2, HEAD // 2)).flip(1).flatten(0, 2) for key in turned}
        return usual(parameters | swapped)

    made = config(**_config(model, rms_norm_eps=1e-6))
    note = "halves of each head's rows of q.weight and k.weight swapped against transformers; scale 1.44/sqrt(D)"
    return model, from_transformers(Scaled, rotary, made, rename), note


PRESETS = dict(
    qwen3=qwen3, olmo2=olmo2, gemma3=gemma3, cohere=cohere, stablelm2=stablelm2, chameleon=chameleon,
    persimmon=persimmon, hunyuan=hunyuan, minimax_m2=minimax_m2, llama4=llama4, nanochat=nanochat,
)  # fmt: skip
