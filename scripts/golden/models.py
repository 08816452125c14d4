"""Golden files of whole tiny models: logits, summed loss and every gradient, from transformers."""

import numpy as np
import torch
import torch.nn.functional as F

import draws
import files
import schema
from attention import call
from model_families import FAMILIES
from proof import truth

BATCH, LENGTH = 2, 20
IGNORED = -1


def generate(family):
    name = f"model_{family}"
    model, model_class, config, rename, zero = FAMILIES[family]()
    parameters = draws.parameters(name, schema.model_shapes(model), model)
    tokens, targets = _text(name, model["vocabulary"])

    def build():
        config._attn_implementation = "eager"
        module = model_class(config).eval()

        def function(tensors):
            logits = call(module, rename(tensors), input_ids=tokens, use_cache=False).logits
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum")
            return {"logits": logits, "loss_sum": loss.detach()}, loss

        return function

    outputs, gradients, report = truth(build, parameters, zero)
    tensors = {**parameters, **outputs, **{f"grad.{key}": value for key, value in gradients.items()}}
    tensors |= dict(tokens=tokens, targets=targets, targets_count=(targets != IGNORED).sum())
    metadata = {"model": schema.text(model), "zero_gradients": list(zero)}
    return files.write(name, tensors, metadata), report


def _text(name, vocabulary):
    """Random ids; the targets are the next ids, with one target in five, and a whole stretch, ignored."""
    draw = files.generator(name, "tokens")
    text = draw.integers(0, vocabulary, (BATCH, LENGTH + 1))
    targets = np.where(draw.random((BATCH, LENGTH)) < 0.2, IGNORED, text[:, 1:])
    targets[0, :3] = IGNORED
    return torch.from_numpy(text[:, :-1].copy()), torch.from_numpy(targets)
