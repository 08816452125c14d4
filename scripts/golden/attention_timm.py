"""The presets of QK-normalised attention that timm implements, without a mask: its classes, and ours by renaming."""

import math
from functools import partial

import torch
from timm.layers import Attention, LayerNorm, set_fused_attn
from timm.models.swin_transformer_v2 import WindowAttention
from timm.models.vision_transformer import ParallelScalingBlock

import schema
from attention import LENGTH, call

WIDTH, HEADS = 32, 4
HEAD = WIDTH // HEADS
WINDOW = (3, 4)  # of Swin: one window is the whole sequence
NO_BIAS = partial(LayerNorm, bias=False)

set_fused_attn(False)  # their explicit path: it shows every step to the witness of the float64 run


def _model(qk, *, bias, **attention):
    return schema.decoder(
        width=WIDTH, heads=HEADS, kv_heads=HEADS, head_width=HEAD,
        norm=schema.norm("layernorm", 1e-6, "weight_then_cast", bias=True), mlp=dict(kind="gelu", width=64, bias=True),
        position=dict(kind="none"), attention=schema.attention(qk, bias=bias, causal=False, **attention),
    )  # fmt: skip


def joined(parameters, kind, prefix=""):
    """q, k and v one above the other, as timm stores them."""
    return torch.cat([parameters[f"{prefix}{part}.{kind}"] for part in "qkv"])


def timm():
    qk = schema.qk_norm("layernorm", "head", "shared", 1e-6, "weight_then_cast", bias=True)

    def build():
        module = Attention(WIDTH, HEADS, qkv_bias=True, qk_norm=True, norm_layer=LayerNorm).eval()

        def run(parameters, x):
            theirs = {f"{part}_norm.{kind}": parameters[f"{part}_norm.{kind}"] for part in "qk" for kind in KINDS}
            for kind in KINDS:
                theirs |= {f"qkv.{kind}": joined(parameters, kind), f"proj.{kind}": parameters[f"out.{kind}"]}
            return call(module, theirs, x=x)

        return run

    return _model(qk, bias="all"), build, "", {}, "timm"


def vit22b():
    """The attention of the parallel block alone: its norm of the input is the identity, and its MLP gives nothing."""
    qk = schema.qk_norm("layernorm", "head", "shared", 1e-6, "weight_then_cast")

    def build():
        module = ParallelScalingBlock(WIDTH, HEADS, 1.0, qk_norm=True, proj_bias=False, norm_layer=NO_BIAS).eval()
        module.in_norm = torch.nn.Identity()

        def run(parameters, x):
            idle = torch.zeros(WIDTH, WIDTH)  # rows and columns of the MLP
            theirs = {f"{part}_norm.weight": parameters[f"{part}_norm.weight"] for part in "qk"}
            theirs["in_proj.weight"] = torch.cat([idle, joined(parameters, "weight")])
            theirs["mlp_bias"] = torch.zeros(WIDTH)
            theirs |= {"attn_out_proj.weight": parameters["out.weight"], "mlp_out_proj.weight": idle}
            return call(module, theirs, x=x) - x

        return run

    note = "timm's norms have biases by default; here norm_layer is LayerNorm with bias=False, as the paper has it"
    return _model(qk, bias="none"), build, note, {}, "timm"


def swinv2():
    """Cosine attention with a temperature a head, held at 100. The network of position biases is zero: it then adds
    16 sigmoid(0) to every score. Their bias of k is a buffer of zeros; as a parameter it has a gradient."""
    qk = schema.qk_norm("l2", "head", "none", 1e-12, "weight_then_cast")
    scale = dict(kind="learned", per_head=True, form="exp", init=10.0, max=100.0)

    def build():
        module = WindowAttention(WIDTH, WINDOW, HEADS).eval()
        del module.k_bias
        module.k_bias = torch.nn.Parameter(torch.zeros(WIDTH))

        def run(parameters, x):
            theirs = {f"{part}_bias": parameters[f"{part}.bias"] for part in "qkv"}
            theirs |= {"qkv.weight": joined(parameters, "weight"), "logit_scale": parameters["scale"].view(HEADS, 1, 1)}
            theirs |= {f"proj.{kind}": parameters[f"out.{kind}"] for kind in KINDS}
            theirs |= {name: torch.zeros(p.shape) for name, p in module.named_parameters() if name.startswith("cpb_")}
            return call(module, theirs, x=x)

        return run

    factors = (3.0, 150.0, 10.0, 37.0)
    fixed = {"scale": torch.tensor([math.log(factor) for factor in factors]), "k.bias": torch.zeros(WIDTH)}
    note = "scale holds the logarithm; head 1 is above the largest, so that its gradient is zero"
    return _model(qk, bias="all", scale=scale), build, note, fixed, "timm"


KINDS = ("weight", "bias")
PRESETS = dict(timm=timm, vit22b=vit22b, swinv2=swinv2)
assert math.prod(WINDOW) == LENGTH
