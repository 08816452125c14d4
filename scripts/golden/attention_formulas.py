"""The presets that no library implements, written from their papers' formulae: Henry et al. 2020 and nGPT.

Kept apart from every other code, and as plain as the formulae: nothing here is shared with what it judges.
"""

import math

import torch

import schema
from attention import LENGTH

WIDTH, HEADS, HEAD = 32, 4, 16


def _heads(x, parameters, name):
    y = x @ parameters[f"{name}.weight"].T
    if f"{name}.bias" in parameters:
        y = y + parameters[f"{name}.bias"]
    return y.unflatten(-1, (-1, HEAD)).transpose(1, 2)  # B, heads, T, D


def _attend(q, k, v, factor, parameters):
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    scores = factor * (q @ k.transpose(-1, -2))
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    weights = torch.softmax(scores.masked_fill(later, -math.inf), -1)
    out = (weights @ v).transpose(1, 2).flatten(2) @ parameters["out.weight"].T
    return out + parameters["out.bias"] if "out.bias" in parameters else out


def _decoder(qk, kv_heads, position, **attention):
    return schema.decoder(
        width=WIDTH, heads=HEADS, kv_heads=kv_heads, head_width=HEAD,
        norm=schema.norm("rmsnorm", 1e-6, "weight_then_cast"), mlp=dict(kind="swiglu", width=48, bias=False),
        position=position, attention=schema.attention(qk, **attention),
    )  # fmt: skip


def henry2020():
    """softmax(g q̂ k̂ᵀ) v with q̂ = q / max(|q|, 1e-12) per head and one learned g in place of 1/sqrt(D)."""
    qk = schema.qk_norm("l2", "head", "none", 1e-12, "weight_then_cast")
    scale = dict(kind="learned", per_head=False, form="linear", init="henry", length=LENGTH)

    def build():
        def run(parameters, x):
            q, k, v = (_heads(x, parameters, name) for name in "qkv")
            q = q / q.norm(dim=-1, keepdim=True).clamp_min(1e-12)
            k = k / k.norm(dim=-1, keepdim=True).clamp_min(1e-12)
            return _attend(q, k, v, parameters["scale"], parameters)

        return run

    model = _decoder(qk, 2, dict(kind="none"), scale=scale, bias="all")
    return model, build, "scale holds g, which starts at log2(L^2 - L)", dict(scale=torch.full((1,), 6.25))


def ngpt():
    """Per head, after the rotary embedding: q̂ = s q/|q|, k̂ = s k/|k| with one s [H, D] for both; scores times
    sqrt(D). nGPT stores s times 1/sqrt(width) and multiplies by sqrt(width) when it is used; here s is what acts."""
    qk = schema.qk_norm("l2", "head", "per_head", 0.0, "weight_then_cast", rope="after", tie_qk=True)

    def turn(y):
        rate = 10000.0 ** (-torch.arange(0, HEAD, 2, dtype=y.dtype) / HEAD)
        angle = torch.arange(y.shape[-2], dtype=y.dtype)[:, None] * rate
        low, high = y[..., : HEAD // 2], y[..., HEAD // 2 :]
        cos, sin = angle.cos(), angle.sin()
        return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)

    def build():
        def run(parameters, x):
            q, k, v = (_heads(x, parameters, name) for name in "qkv")
            s = parameters["qk_norm.weight"][:, None, :]
            q, k = (s * y / y.norm(dim=-1, keepdim=True) for y in (turn(q), turn(k)))
            return _attend(q, k, v, math.sqrt(HEAD), parameters)

        return run

    scale = dict(kind="constant", value=HEAD**0.5)
    model = _decoder(qk, HEADS, schema.rope(HEAD), scale=scale)
    return model, build, "qk_norm.weight is the effective s: nGPT's stored sqk times sqrt(width)"


PRESETS = dict(henry2020=henry2020, ngpt=ngpt)
