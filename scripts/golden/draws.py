"""Parameter values that a wrong implementation cannot get right by luck.

Norm factors lie in [0.5, 1.5] and differ between q and k, no bias is zero, and under a QK-norm the heads have very
different energy, so that statistics over the wrong axis, a forgotten eps or a swapped head show.
"""

import numpy as np
import torch

import schema
from files import generator

Q_ENERGY = (0.02, 1.0, 8.0, 0.3)
K_ENERGY = {1: (3.0,), 2: (5.0, 0.1), 4: (0.3, 6.0, 0.05, 1.0)}


def parameters(file, shapes, model):
    return {name: torch.from_numpy(_one(file, name, shape, model)) for name, shape in shapes.items()}


def normal(file, name, shape, deviation=1.0):
    values = generator(file, name).standard_normal(shape) * deviation
    return torch.from_numpy(values.astype(np.float32))


def _one(file, name, shape, model):
    draw = generator(file, name)
    module, _, kind = name.rpartition(".")
    module = module.rpartition(".")[2]
    if module.endswith("norm") and kind == "weight":
        of_qk = module in ("q_norm", "k_norm", "qk_norm")
        section = model["attention"]["qk_norm"] if of_qk else model["norm"]
        value = draw.uniform(0.5, 1.5, shape) - (1.0 if section["zero_centered"] else 0.0)
    elif module.endswith("norm") or kind == "bias":
        value = draw.uniform(0.1, 0.5, shape) * draw.choice((-1.0, 1.0), shape)
    elif module in ("embedding", "position") or kind in ("class_token", "registers"):
        value = draw.standard_normal(shape) * 0.4
    elif kind in ("attention_scale", "mlp_scale"):
        value = draw.uniform(0.3, 1.5, shape) * draw.choice((-1.0, 1.0), shape)
    elif kind == "probe":
        value = draw.standard_normal(shape)
    else:
        value = draw.standard_normal(shape) / np.sqrt(shape[-1])
    return (value * _energy(name, module, model, shape)).astype(np.float32)


def _energy(name, module, model, shape):
    qk_norm = schema.pool_qk_norm(model) if name.startswith("pool.") else model["attention"]["qk_norm"]
    if module not in ("q", "k") or qk_norm["kind"] == "none":
        return 1.0
    energy = Q_ENERGY if module == "q" else K_ENERGY[model["kv_heads"]]
    rows = np.repeat(np.array(energy), model["head_width"])
    return rows.reshape((-1,) + (1,) * (len(shape) - 1))
