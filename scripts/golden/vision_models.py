"""The vision transformers of the golden files: our description, timm's or transformers' class, and the renaming.

Each function gives (description, a function that makes the module and names its argument, renaming, more metadata).
Where the peer adds a position to the class token or a register too, each of the two gets half of our token: their sum
is exact, and so is the gradient. timm's fused attention is off, see attention_timm.
"""

import torch
from timm.layers import AttentionPoolLatent, LayerNorm
from timm.models.vision_transformer import ParallelScalingBlock, VisionTransformer
from transformers import ViTConfig, ViTForImageClassification

import schema
from attention_timm import KINDS, NO_BIAS, joined

WIDTH, HEADS = 32, 4
NONE = dict(kind="none")


def _vit(qk=NONE, *, bias="all", norm_bias=True, eps=1e-6, mlp_width=64, pool="token", pool_norm="before", pool_qk=False, **rest):
    norm = schema.norm("layernorm", eps, "weight_then_cast", bias=norm_bias)
    pooling = dict(kind=pool, norm=pool_norm, qk_norm=pool_qk)
    return schema.vit(
        width=WIDTH, heads=HEADS, norm=norm, mlp=dict(kind="gelu", width=mlp_width, bias=True),
        attention=schema.attention(qk, bias=bias, causal=False), pool=pooling, **rest,
    )  # fmt: skip


def _qk(bias=True):
    return schema.qk_norm("layernorm", "head", "shared", 1e-6, "weight_then_cast", bias=bias)


def _timm(model, positions, **options):
    """`positions`: whether timm has one for each token before the patches too."""

    def make():
        module = VisionTransformer(
            img_size=model["image"], patch_size=model["patch"], in_chans=model["channels"],
            num_classes=model["classes"], embed_dim=WIDTH, depth=model["layers"], num_heads=HEADS,
            mlp_ratio=model["mlp"]["width"] / WIDTH, class_token=model["class_token"],
            reg_tokens=model["registers"], no_embed_class=not positions, **options,
        )  # fmt: skip
        if model["pool"]["qk_norm"]:
            module.attn_pool = AttentionPoolLatent(
                WIDTH, num_heads=HEADS, mlp_ratio=model["mlp"]["width"] / WIDTH, qk_norm=True, norm_layer=LayerNorm
            )
        return module, "x"

    def rename(ours):
        share = 0.5 if positions else 1.0
        prefix = [share * ours[name].reshape(1, -1, WIDTH) for name in ("class_token", "registers") if name in ours]
        names = ("cls_token",) * model["class_token"] + ("reg_token",) * (model["registers"] > 0)
        theirs = dict(zip(names, prefix))
        theirs["pos_embed"] = torch.cat((prefix if positions else []) + [ours["position.weight"][None]], 1)
        shape = (WIDTH, model["channels"], model["patch"], model["patch"])
        theirs |= {"patch_embed.proj.weight": ours["patch.weight"].reshape(shape)}
        theirs |= {"patch_embed.proj.bias": ours["patch.bias"]}
        block = _parallel_block if model["block"] == "parallel" else _sequential_block
        for i in range(model["layers"]):
            inside = _inside(ours, f"blocks.{i}.")
            theirs |= {f"blocks.{i}.{name}": value for name, value in block(inside).items()}
        norm = "norm" if model["pool"]["norm"] == "before" else "fc_norm"
        theirs |= _renamed(ours, {"norm": norm, "head": "head"})
        theirs |= {f"attn_pool.{name}": value for name, value in _pool(_inside(ours, "pool.")).items()}
        return theirs

    return make, rename


def _inside(parameters, prefix):
    return {name.removeprefix(prefix): value for name, value in parameters.items() if name.startswith(prefix)}


def _renamed(ours, names):
    """Weights and biases, where there are any."""
    pairs = ((f"{mine}.{kind}", f"{other}.{kind}") for mine, other in names.items() for kind in KINDS)
    return {other: ours[mine] for mine, other in pairs if mine in ours}


def _sequential_block(ours):
    names = {"attention_norm": "norm1", "mlp_norm": "norm2", "mlp.up": "mlp.fc1", "mlp.down": "mlp.fc2"}
    names |= {"attention.out": "attn.proj", "attention.q_norm": "attn.q_norm", "attention.k_norm": "attn.k_norm"}
    theirs = _renamed(ours, names)
    theirs |= {f"attn.qkv.{kind}": joined(ours, kind, "attention.") for kind in KINDS}
    scales = {"attention_scale": "ls1.gamma", "mlp_scale": "ls2.gamma"}
    return theirs | {other: ours[mine] for mine, other in scales.items() if mine in ours}


def _parallel_block(ours):
    """One matrix for the MLP's way up and, below it, for q, k and v; the MLP's part alone has a bias, kept apart."""
    names = {"attention_norm": "in_norm", "attention.q_norm": "q_norm", "attention.k_norm": "k_norm"}
    theirs = _renamed(ours, names | {"attention.out": "attn_out_proj", "mlp.down": "mlp_out_proj"})
    theirs["in_proj.weight"] = torch.cat([ours["mlp.up.weight"], joined(ours, "weight", "attention.")])
    return theirs | {"mlp_bias": ours["mlp.up.bias"], "ls.gamma": ours["attention_scale"]}


def _pool(ours):
    if not ours:
        return {}
    same = ("q", "q_norm", "k_norm", "norm")
    theirs = _renamed(ours, {name: name for name in same} | {"out": "proj", "mlp.up": "mlp.fc1", "mlp.down": "mlp.fc2"})
    theirs |= {f"kv.{kind}": torch.cat([ours[f"k.{kind}"], ours[f"v.{kind}"]]) for kind in KINDS}
    return theirs | {"latent": ours["probe"].reshape(1, 1, WIDTH)}


def timm_plain():
    model = _vit(image=8, layers=3)
    return model, *_timm(model, positions=True), dict(preset="none")


def timm_qk():
    model = _vit(
        _qk(), channels=1, registers=2, layer_scale=1.0, pool="mean", pool_norm="after", mlp_width=128
    )
    note = "timm takes the mean of the patches alone, and its final norm (fc_norm) of that mean"
    made = _timm(model, positions=True, qk_norm=True, init_values=0.1, global_pool="avg")
    return model, *made, dict(preset="timm", note=note)


def timm_map():
    model = _vit(_qk(), class_token=False, pool="attention")
    note = "timm's VisionTransformer gives its attention pooling no norms of q and k, whatever qk_norm is"
    made = _timm(model, positions=False, qk_norm=True, global_pool="map")
    return model, *made, dict(preset="timm", note=note)


def timm_map_qk():
    model = _vit(_qk(), image=8, registers=1, layer_scale=1.0, pool="attention", pool_qk=True)
    note = "the pooling made apart, by timm's AttentionPoolLatent with qk_norm on; it sees the patches alone"
    made = _timm(model, positions=False, qk_norm=True, init_values=0.1, global_pool="map")
    return model, *made, dict(preset="timm", note=note)


def vit_22b():
    model = _vit(
        _qk(bias=False), bias="out", norm_bias=False, mlp_width=96, block="parallel", layer_scale=1.0, registers=1
    )
    note = "timm's norms have biases by default; here norm_layer is LayerNorm with bias=False, as the paper has it"
    made = _timm(
        model, positions=True, qk_norm=True, qkv_bias=False, init_values=0.1, block_fn=ParallelScalingBlock,
        norm_layer=NO_BIAS,
    )  # fmt: skip
    return model, *made, dict(preset="vit22b", note=note)


def hf():
    model = _vit(eps=1e-12)
    config = ViTConfig(
        image_size=model["image"], patch_size=model["patch"], num_channels=model["channels"], hidden_size=WIDTH,
        num_hidden_layers=model["layers"], num_attention_heads=HEADS, intermediate_size=model["mlp"]["width"],
        num_labels=model["classes"], layer_norm_eps=1e-12,
    )  # fmt: skip

    def make():
        config._attn_implementation = "eager"
        return ViTForImageClassification(config), "pixel_values"

    return model, make, _hf_names(model), dict(preset="none")


def _hf_names(model):
    block = {"attention_norm": "layernorm_before", "mlp_norm": "layernorm_after"}
    block |= {"mlp.up": "mlp.fc1", "mlp.down": "mlp.fc2"}
    block |= {f"attention.{part}": f"attention.{part[0]}_proj" for part in ("q", "k", "v", "out")}

    def rename(ours):
        half = 0.5 * ours["class_token"].reshape(1, 1, WIDTH)
        shape = (WIDTH, model["channels"], model["patch"], model["patch"])
        theirs = {
            "embeddings.cls_token": half,
            "embeddings.position_embeddings": torch.cat([half, ours["position.weight"][None]], 1),
            "embeddings.patch_embeddings.projection.weight": ours["patch.weight"].reshape(shape),
            "embeddings.patch_embeddings.projection.bias": ours["patch.bias"],
            **_renamed(ours, {"norm": "layernorm"}),
        }
        for i in range(model["layers"]):
            inside = _renamed(_inside(ours, f"blocks.{i}."), block)
            theirs |= {f"layers.{i}.{name}": value for name, value in inside.items()}
        return {f"vit.{name}": value for name, value in theirs.items()} | _renamed(ours, {"head": "classifier"})

    return rename


FAMILIES = {
    "timm_plain": timm_plain, "timm_qk": timm_qk, "timm_map": timm_map, "timm_map_qk": timm_map_qk, "22b": vit_22b,
    "hf": hf,
}  # fmt: skip
