"""Golden file of norms in bf16: the bits that the real modules give, beside the float64 value before each rounding.

An element may differ from the rounded truth only where the truth lies within four fp32 ulp of a boundary between two
bf16 numbers; that is checked here for every element, so the stated formula and rounding order are those of the module.
"""

from dataclasses import dataclass

import numpy as np
import torch
from transformers.models.chameleon.modeling_chameleon import ChameleonLayerNorm
from transformers.models.cohere.modeling_cohere import CohereLayerNorm
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama4.modeling_llama4 import Llama4TextL2Norm
from transformers.models.olmo2.modeling_olmo2 import Olmo2RMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

import files

NAME, ROWS, WIDTH = "norm_bf16", 256, 64
NEAR = 4  # fp32 ulp


@dataclass
class Case:
    module: torch.nn.Module
    kind: str
    cast: str
    eps: float
    parameters: str = "fp32"  # storage of weight and bias
    zero_centered: bool = False
    note: str = ""


def cases():
    promoted = "the module gives fp32 with this weight (type promotion); y is that rounded to bf16"
    apart = "the bias's sum is rounded apart from the weight's product: y = t(t(w * t(n)) + b)"
    return dict(
        qwen3=Case(Qwen3RMSNorm(WIDTH, 1e-6), "rmsnorm", "cast_then_weight", 1e-6, "bf16"),
        qwen3_fp32=Case(Qwen3RMSNorm(WIDTH, 1e-6), "rmsnorm", "cast_then_weight", 1e-6, note=promoted),
        olmo2=Case(Olmo2RMSNorm(WIDTH, 1e-6), "rmsnorm", "weight_then_cast", 1e-6),
        gemma3=Case(Gemma3RMSNorm(WIDTH, 1e-6), "rmsnorm", "weight_then_cast", 1e-6, zero_centered=True),
        llama4=Case(Llama4TextL2Norm(1e-5), "rmsnorm", "weight_then_cast", 1e-5, note="no weight: both orders agree"),
        cohere=Case(CohereLayerNorm(WIDTH, 1e-5), "layernorm", "weight_then_cast", 1e-5),
        layernorm=Case(torch.nn.LayerNorm(WIDTH, 1e-6), "layernorm", "weight_then_cast", 1e-6, "bf16"),
        layernorm_fp32=Case(torch.nn.LayerNorm(WIDTH, 1e-6), "layernorm", "weight_then_cast", 1e-6),
        chameleon=Case(ChameleonLayerNorm((1, WIDTH)), "layernorm", "cast_then_weight", 1e-5, "bf16", note=apart),
    )


def generate():
    tensors, described, report = {}, {}, {}
    for name, case in cases().items():
        values = _inputs(name, case)
        with torch.no_grad():
            values["y"] = case.module(values["x"]).to(torch.bfloat16)
        stages = _stages(case, values)
        report[name] = _check(name, case, values, stages)
        values |= {key: torch.from_numpy(value) for key, value in stages.items() if key in ("n64", "y64")}
        tensors |= {f"{name}.{key}": value for key, value in values.items()}
        described[name] = dict(
            kind=case.kind, cast=case.cast, eps=case.eps, zero_centered=case.zero_centered, weight="weight" in values,
            bias="bias" in values, parameters=case.parameters, note=case.note,
        )  # fmt: skip
    return files.write(NAME, tensors, {"cases": described}), report


def _inputs(name, case):
    """Rows of very different size, so that eps matters in some, and off centre for the kinds that centre."""
    draw = files.generator(NAME, name)
    x = draw.standard_normal((ROWS, WIDTH))
    if case.kind == "layernorm":
        x += draw.uniform(-1.5, 1.5, (ROWS, 1))
    x *= 10 ** draw.uniform(-3.0, 1.0, (ROWS, 1))
    values = {"x": torch.from_numpy(x).to(torch.bfloat16)}
    if case.parameters == "bf16":
        case.module.to(torch.bfloat16)
    for key, parameter in case.module.named_parameters():
        low, high = (0.5, 1.5) if key == "weight" else (-0.5, 0.5)
        drawn = draw.uniform(low, high, tuple(parameter.shape)) - (1.0 if case.zero_centered else 0.0)
        parameter.data = torch.from_numpy(drawn).to(parameter.dtype)
        values[key] = parameter.data.reshape(-1)
    return values


def _stages(case, values):
    """Float64 values before each rounding, each from the rounded one before: n64 after the statistics and p64 after
    the weight where these are rounded, y64 at the end."""
    x, weight, bias = (values[key].double().numpy() if key in values else None for key in ("x", "weight", "bias"))
    centred = x - x.mean(-1, keepdims=True) if case.kind == "layernorm" else x
    n = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + case.eps)
    factor = 1.0 if weight is None else weight + (1.0 if case.zero_centered else 0.0)
    if case.cast == "weight_then_cast":
        return {"y64": n * factor + (0.0 if bias is None else bias)}
    product = round_bf16(n) * factor
    if bias is None:
        return {"n64": n, "y64": product}
    return {"n64": n, "p64": product, "y64": round_bf16(product) + bias}


def round_bf16(x):
    """To the nearest, ties to even. (Torch's own conversion from float64 rounds twice, by way of float32.)"""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.rint(fraction * 256), exponent - 8)


def near_boundary(x):
    """Within NEAR fp32 ulp of the middle between two bf16 numbers; an ulp is 2^-24 of the power of two above |x|.
    A value that fp32 holds exactly, as a product of two bf16 numbers, is rounded without any doubt."""
    fraction, _ = np.frexp(x)
    return (np.abs((np.abs(fraction) * 256) % 1 - 0.5) * 2**16 < NEAR) & (x.astype(np.float32) != x)


def _check(name, case, values, stages):
    y, expected = values["y"].double().numpy(), round_bf16(stages["y64"])
    near = np.any([near_boundary(value) for value in stages.values()], axis=0)
    differ = y != expected
    stray = differ & ~near
    assert not stray.any(), f"{name}: {stray.sum()} elements differ far from a boundary: {stages['y64'][stray][:5]}"
    if case.cast == "weight_then_cast":
        step = np.ldexp(1.0, np.frexp(stages["y64"])[1] - 8)
        assert (np.abs(y - expected) <= step)[near].all(), name
    return f"{near.sum()} near a boundary, {differ.sum()} differ"
