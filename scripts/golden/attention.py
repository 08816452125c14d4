"""Golden files of single attention blocks: forward and every gradient, for each preset."""

from importlib.metadata import version

import torch
from torch.func import functional_call

import draws
import files
import schema
from proof import truth

BATCH, LENGTH = 2, 12


def causal_mask(length, dtype):
    """Additive, as transformers' eager attention takes it."""
    upper = torch.ones(length, length, dtype=torch.bool).triu(1)
    return torch.zeros(1, 1, length, length, dtype=dtype).masked_fill(upper, torch.finfo(dtype).min)


def call(module, parameters, **arguments):
    """The module with its parameters replaced, all of them: gradients reach ours through the renaming itself."""
    wanted = {name for name, _ in module.named_parameters()}
    assert wanted == parameters.keys(), f"differ: {sorted(wanted ^ parameters.keys())}"
    for name, value in module.named_parameters():
        assert value.shape == parameters[name].shape, name
    return functional_call(module, parameters, (), arguments)


def from_transformers(attention_class, rotary_class, config, rename):
    """A `build` of proof.py over a transformers attention class; `rename`: our parameters to theirs."""

    def build():
        config._attn_implementation = "eager"
        module, rotary = attention_class(config, 0).eval(), rotary_class(config)

        def run(parameters, x):
            positions = torch.arange(x.shape[1])[None]
            return call(
                module, rename(parameters), hidden_states=x, position_embeddings=rotary(x, positions),
                attention_mask=causal_mask(x.shape[1], x.dtype),
            )[0]  # fmt: skip

        return run

    return build


def generate(preset, model, build, note="", fixed=None, package=None):
    """`fixed`: parameters that are not drawn, by name. `package`: where the module is from, if not transformers."""
    name = f"attention_{preset}"
    shapes = schema.attention_shapes(model)
    inputs = draws.parameters(name, shapes, model)
    inputs |= fixed or {}
    shape = (BATCH, LENGTH, model["width"])
    inputs["x"] = draws.normal(name, "x", shape)
    cotangent = draws.normal(name, "grad.out", shape)
    weights = {torch.float32: cotangent, torch.float64: cotangent.double()}

    def built():
        run = build()

        def function(tensors):
            parameters = {key: value for key, value in tensors.items() if key != "x"}
            out = run(parameters, tensors["x"])
            return {"out": out}, (out * weights[out.dtype]).sum()

        return function

    zero = schema.unseen(model["attention"]["qk_norm"]) if model["position"]["kind"] == "none" else []
    outputs, gradients, report = truth(built, inputs, zero)
    tensors = {**inputs, "grad.out": cotangent, **outputs, **{f"grad.{k}": v for k, v in gradients.items()}}
    metadata = {"model": schema.text(model), "preset": preset} | ({"note": note} if note else {})
    metadata |= {"zero_gradients": zero} if zero else {}
    metadata |= {package: version(package)} if package else {}
    return files.write(name, tensors, metadata), report
